import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("The model that a store carries")
struct CoreDataModelTests {
  @Test(
    "the model is read from every real store that has one",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"), arguments: RealStores.all)
  func realStore(_ path: String) throws {
    let name = URL(fileURLWithPath: path).lastPathComponent
    let (model, metadata) = try read(name)
    let hasNone = ["GroceryDude", "BookMigration"].contains { name.contains($0) }
    #expect((model == nil) == hasNone)
    guard let model else { return }
    // A cache of another model than the store's would name other entities.
    #expect(Set(model.schema.entities.map(\.name)) == Set(metadata.entityHashes.keys))
    #expect(model.details.values.allSatisfy { $0.notes.isEmpty })
    #expect(model.schema.version == metadata.version ?? Schema.Version(1, 0, 0))
  }

  @Test(
    "the model of a store holds the schema and what a schema cannot express",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
  func contents() throws {
    let model = try #require(try read("alemar11__CoreDataPlus__SampleModel2_V2.sqlite").0)
    let book = try #require(model.schema.entity(named: "Book"))
    #expect(book.attributesByName["pagesCount"]?.derivation == "count:(pages)")
    let cover = try #require(book.attributesByName["frontCover"])
    #expect(cover.originalName == "cover")
    #expect(cover.options == [.transformable(by: "CoverTransformer")])
    #expect(book.uniquenessConstraints == [["uniqueID"]])
    #expect(book.attributesByName["price"]?.type == .decimal)
    let pages = try #require(book.relationshipsByName["pages"])
    #expect(pages.minimumModelCount == 1)
    #expect(pages.maximumModelCount == 10_000)
    #expect(!pages.isOptional)
    #expect(pages.deleteRule == .cascade)
    let novel = try #require(model.schema.entity(named: "GraphicNovel"))
    #expect(novel.superentityName == "Book")
    #expect(novel.attributes.map(\.name) == ["isBlackAndWhite"])
    #expect(novel.attributesByName["isBlackAndWhite"]?.storedDefault == .integer(0))
    #expect(model.schema.entity(named: "Writer")?.isAbstract == true)
    #expect(model.details["Author"]?.fetchedProperties == ["favFeedbacks", "feedbacks"])

    let cars = try #require(try read("alemar11__CoreDataPlus__SampleModel_V2.sqlite").0)
    #expect(cars.schema.entity(named: "LuxuryCar")?.originalName == "ExpensiveSportCar")
    #expect(
      cars.schema.entity(named: "Car")?.fetchIndexes == [
        Schema.FetchIndex(
          name: "byMakerAndNumberPlate",
          elements: [Schema.FetchIndex.Element("maker"), Schema.FetchIndex.Element("numberPlate")])
      ])
    let first = try #require(try read("alemar11__CoreDataPlus__SampleModel_V1.sqlite").0)
    let person = try #require(first.schema.entity(named: "Person"))
    #expect(person.attributesByName["isDriving"]?.isEphemeral == true)
    #expect(person.attributesByName["id"]?.options == [.preserveValueOnDeletion])
    let moody = try #require(try read("objcio__core-data__Moody.moody").0)
    #expect(
      moody.schema.entity(named: "Mood")?.indices == [
        ["markedForDeletionDate"], ["remoteIdentifier"],
        ["markedForRemoteDeletion", "markedForDeletionDate", "date"],
      ])
  }

  @Test("the model of a store describes composites and enums as the columns they are kept in")
  func composites() throws {
    func attribute(_ name: String, _ type: Int, _ more: [String: ModelArchive.Value] = [:])
      -> ModelArchive.Value
    {
      .object(
        "NSAttributeDescription",
        ["NSPropertyName": .text(name), "NSAttributeType": .integer(type)].merging(more) { $1 })
    }
    func composite(_ name: String, _ elements: [ModelArchive.Value], isEnumeration: Bool)
      -> ModelArchive.Value
    {
      .object(
        "NSCompositeAttributeDescription",
        [
          "NSPropertyName": .text(name), "NSAttributeType": .integer(2100),
          "NSIsOptional": .boolean(false), "NSCompositeElements": .array(elements),
          "NSUserInfo": .entries(isEnumeration ? [("EnumType", .boolean(true))] : []),
        ])
    }
    let optional = ["NSIsOptional": ModelArchive.Value.boolean(true)]
    let bytes = ModelArchive.model(
      [
        (
          "Recipe",
          [
            ("unit", composite("unit", [attribute("unit", 700, optional)], isEnumeration: true)),
            (
              "kind",
              composite(
                "kind", [attribute("soup", 700, optional), attribute("cake", 700, optional)],
                isEnumeration: true)
            ),
            (
              "author",
              composite(
                "author", [attribute("person", 700, optional), attribute("id", 1100, optional)],
                isEnumeration: false)
            ),
            ("id", attribute("id", 1100)),
            ("photo", attribute("photo", 1000, ["NSFlagsKey": .integer(4)])),
            (
              "price",
              attribute(
                "price", 400,
                [
                  "NSDefaultValue": .object(
                    "NSDecimalNumber",
                    [
                      "NS.mantissa": .data([0xF3, 0x03] + [UInt8](repeating: 0, count: 14)),
                      "NS.length": .integer(1), "NS.exponent": .integer(-2),
                      "NS.mantissa.bo": .integer(1), "NS.negative": .boolean(true),
                    ])
                ])
            ),
          ]
        )
      ], identifier: "2.1.0")
    let model = try CoreDataModel(archive: bytes)
    #expect(model.schema.version == Schema.Version(2, 1, 0))
    let recipe = try #require(model.schema.entity(named: "Recipe"))
    #expect(
      recipe.attributes.map(\.name) == [
        "author.person", "author.id", "id", "kind.soup", "kind.cake", "photo", "price", "unit",
      ])
    #expect(recipe.attributesByName["unit"]?.isOptional == false)
    #expect(recipe.attributesByName["photo"]?.options == [.externalStorage])
    #expect(recipe.attributesByName["price"]?.storedDefault == .real(-10.11))
    #expect(
      recipe.attributes.filter(\.declaration.isEnumeration).map(\.name)
        == ["kind.soup", "kind.cake", "unit"])
    // Section 3.3: the composite's field comes first, and keeps the bare name.
    let layout = try CoreDataLayout(schema: model.schema)
    let columns = try #require(layout.entity(named: "Recipe")).attributes
    #expect(columns.first { $0.attribute.name == "author.id" }?.column.name == "ZID")
    #expect(columns.first { $0.attribute.name == "id" }?.column.name == "ZID1")
  }

  // MARK: Hostile input

  @Test("a model is refused when it unpacks to more than any model has")
  func deflateBomb() {
    // One block of fixed codes: a zero byte, then "258 bytes as the last one" ten thousand times.
    var bits = "1" + "10" + "00110000"
    for _ in 0..<10_000 { bits += "11000101" + "00000" }
    var bomb: [UInt8] = []
    for (index, bit) in bits.enumerated() {
      if index % 8 == 0 { bomb.append(0) }
      if bit == "1" { bomb[bomb.count - 1] |= 1 << UInt8(index % 8) }
    }
    #expect(throws: DeflateReader.Problem.tooLarge) {
      try DeflateReader.bytes(of: bomb, limit: 2_580_000)
    }
    #expect(throws: DeflateReader.Problem.truncated) {
      try DeflateReader.bytes(of: bomb, limit: 2_580_001)
    }
    let zeros = [UInt8](repeating: 0, count: 100_000)
    #expect(throws: DeflateReader.Problem.tooLarge) {
      try DeflateReader.bytes(of: HostileStores.stored(zeros), limit: 99_999)
    }
    #expect(throws: Never.self) {
      try DeflateReader.bytes(of: HostileStores.stored(zeros), limit: 100_000)
    }
    #expect(throws: DeflateReader.Problem.truncated) {
      try DeflateReader.bytes(of: Array(HostileStores.stored(zeros).dropLast()), limit: 100_000)
    }
  }

  @Test(
    "a model is refused when its entities share so many properties that it would be large in memory"
  )
  func amplification() throws {
    // Every entity has the same thousand properties: small in the archive, a million when read.
    let properties = (0..<1000).map { number in
      (
        "property\(number)",
        ModelArchive.Value.object("NSAttributeDescription", ["NSAttributeType": .integer(700)])
      )
    }
    // Objects are numbered as they are written: 1 is the model, 2 its entities, and so on.
    let shared = ModelArchive.Value.object(
      "NSEntityDescription", ["NSProperties": .entries(properties)])
    let names = (0..<1000).map { "Entity\($0)" }
    let bytes = ModelArchive.bytes(
      .object(
        "NSManagedObjectModel",
        [
          "NSEntities": .object(
            "NSDictionary",
            [
              "NS.keys": .list(names.map { .text($0) }),
              "NS.objects": .list([shared] + names.dropFirst().map { _ in .reference(1003) }),
            ])
        ]))
    let error = #expect(throws: InstarError.self) { try CoreDataModel(archive: bytes) }
    #expect(error?.code == .corruptStore)
    #expect(error?.cause == "the archived model takes too much work to read")
  }

  @Test("a model is refused when its objects refer to each other in a circle or to nothing")
  func circles() throws {
    let nested = ModelArchive.bytes(
      .object(
        "NSManagedObjectModel",
        [
          "NSEntities": .entries([
            (
              "Loop",
              .object(
                "NSEntityDescription",
                [
                  "NSSuperentity": .reference(1), "NSProperties": .reference(1),
                  "NSUniqueTuples": .reference(1),
                ])
            )
          ])
        ]))
    let model = try CoreDataModel(archive: nested)
    #expect(model.schema.entities.map(\.name) == ["Loop"])
    for root in [ModelArchive.Value.reference(999_999), .text("text"), .list([])] {
      #expect(throws: InstarError.self) { try CoreDataModel(archive: ModelArchive.bytes(root)) }
    }
  }

  @Test("a model is read or refused, never more, however its bytes are changed")
  func damagedBytes() throws {
    var attributes: [(String, ModelArchive.Value)] = []
    for number in 0..<20 {
      attributes.append(
        (
          "attribute\(number)",
          .object(
            "NSAttributeDescription",
            ["NSAttributeType": .integer(700), "NSDefaultValue": .text("value\(number)")])
        ))
    }
    let sound = ModelArchive.model([("Entity", attributes), ("Other", [])])
    #expect(throws: Never.self) { try CoreDataModel(archive: sound) }
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    for attempt in 0..<2000 {
      var bytes = attempt % 2 == 0 ? sound : HostileStores.stored(sound)
      for _ in 0..<Int.random(in: 1...8, using: &generator) {
        bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
          in: 0...255, using: &generator)
      }
      if attempt % 5 == 0 {
        bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
      }
      // Damaged input may fail with an error, but must not trap.
      if attempt % 2 == 1 {
        bytes = (try? DeflateReader.bytes(of: bytes, limit: 1 << 20)) ?? []
      }
      do {
        _ = try CoreDataModel(archive: bytes)
      } catch {
        #expect(error.code == .corruptStore, "seed \(seed), attempt \(attempt)")
      }
    }
  }

  private func read(_ name: String) throws -> (CoreDataModel?, CoreDataMetadata) {
    let folder = try TemporaryFolder()
    let copy = try #require(try RealStores.copy(name, to: folder))
    let queue = try GuardedConnection.open(copy, access: .immutable)
    return try queue.inDatabase { (try CoreDataModel.read($0), try CoreDataMetadata.read($0)) }
  }
}
