import GRDB
import Instar
import InstarTestSupport
import Testing

/// Models with every kind of property type that is not a plain value.
enum Kitchen {
  enum Unit: String, Codable, CaseIterable { case dash, ounce }
  enum Priority: Int, Codable { case low = 1, high = 2 }
  enum Glass: Codable { case coupe, highball, rocks }
  enum Origin: Codable, Equatable {
    case unknown
    case place(String)
  }

  struct Author: Codable, Equatable {
    var id: UUID
    var person: String
    var born: Date?
    var unit: Unit?
    var links: [String]
  }

  struct Renamed: Codable, Equatable {
    var value: Int
    enum CodingKeys: String, CodingKey { case value = "v" }
  }

  @Model
  final class Cocktail {
    var id: UUID
    var name: String
    var unit: Unit = Unit.dash
    var otherUnit: Unit?
    var priority: Priority
    var glass: Glass = Glass.coupe
    var otherGlass: Glass?
    var origin: Origin = Origin.unknown
    var author: Author
    var editor: Author?
    var tags: [String] = []
    var scores: [Double]?
    var units: Set<Unit> = []
    var amounts: [String: Int] = [:]
    var renamed: Renamed?

    init(name: String, author: Author) {
      id = UUID()
      self.name = name
      self.author = author
      priority = .low
    }
  }
}

@Suite("Property types")
struct PropertyTypeTests {
  typealias Cocktail = Kitchen.Cocktail

  private let author = Kitchen.Author(
    id: UUID(), person: "Ada", born: Date(timeIntervalSinceReferenceDate: 0.1), unit: .ounce,
    links: ["a", "ü"])

  private func container(_ path: String) throws -> ModelContainer {
    try ModelContainer(
      for: Cocktail.self, configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  @Test("enums, structs and collections are read back as they were saved")
  func roundTrip() throws {
    let folder = try TemporaryFolder()
    let container = try container(folder.path("a.store"))
    let context = ModelContext(container)
    let full = Cocktail(name: "full", author: author)
    full.unit = .ounce
    full.otherUnit = .dash
    full.priority = .high
    full.glass = .rocks
    full.otherGlass = .highball
    full.origin = .place("Riga")
    full.editor = Kitchen.Author(id: UUID(), person: "Bo", links: [])
    full.tags = ["Stirred", "Martini Variation"]
    full.scores = [0.1, 2]
    full.units = [.dash, .ounce]
    full.amounts = ["gin": 2]
    full.renamed = Kitchen.Renamed(value: 3)
    context.insert(full)
    context.insert(Cocktail(name: "plain", author: author))
    try context.save()

    let other = ModelContext(container)
    let found = try other.fetch(FetchDescriptor<Cocktail>(sortBy: [SortDescriptor(\.name)]))
    let (one, two) = (try #require(found.first), try #require(found.last))
    #expect(one.unit == .ounce && one.otherUnit == .dash && one.priority == .high)
    #expect(one.id == full.id && one.author == author && one.editor == full.editor)
    #expect(one.origin == .place("Riga"))
    if case .rocks = one.glass {} else { Issue.record("\(one.glass)") }
    if case .highball? = one.otherGlass {
    } else {
      Issue.record("\(String(describing: one.otherGlass))")
    }
    #expect(one.tags == ["Stirred", "Martini Variation"] && one.scores == [0.1, 2])
    #expect(one.units == [.dash, .ounce] && one.amounts == ["gin": 2])
    #expect(one.renamed == Kitchen.Renamed(value: 3))
    #expect(two.unit == .dash && two.otherUnit == nil && two.priority == .low)
    #expect(two.editor == nil && two.otherGlass == nil && two.scores == nil && two.renamed == nil)
    #expect(two.origin == .unknown && two.tags.isEmpty && two.amounts.isEmpty)

    // Changed, saved, and set to nil again.
    two.author.person = "Cy"
    two.editor = author
    one.editor = nil
    one.glass = .coupe
    one.tags.append("x")
    #expect(other.changedModelsArray.count == 2)
    try other.save()
    let again = try ModelContext(container).fetch(
      FetchDescriptor<Cocktail>(sortBy: [SortDescriptor(\.name)]))
    #expect(again[1].author.person == "Cy" && again[1].editor == author)
    #expect(again[0].editor == nil && again[0].tags.last == "x")
    if case .coupe = again[0].glass {} else { Issue.record("\(again[0].glass)") }
  }

  @Test(
    "columns are those of Core Data: a field each, named without the property, a case each, JSON in BLOB"
  )
  func columns() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try container(path)
    let context = ModelContext(container)
    let cocktail = Cocktail(name: "a", author: author)
    cocktail.glass = .highball
    cocktail.tags = ["Stirred", "Martini Variation"]
    context.insert(cocktail)
    try context.save()
    try container.close()
    try DatabaseQueue(path: path).read { db in
      let types = try Row.fetchAll(db, sql: "PRAGMA table_info(ZCOCKTAIL)").reduce(into: [:]) {
        $0[$1["name"] as String] = $1["type"] as String
      }
      #expect(types["ZUNIT"] == "VARCHAR" && types["ZPRIORITY"] == "INTEGER")
      #expect(types["ZHIGHBALL"] == "VARCHAR" && types["ZHIGHBALL1"] == "VARCHAR")
      #expect(
        types["ZPERSON"] == "VARCHAR" && types["ZBORN"] == "TIMESTAMP" && types["ZLINKS"] == "BLOB")
      #expect(types["ZTAGS"] == "BLOB" && types["ZORIGIN"] == "BLOB" && types["ZAUTHOR"] == nil)
      let row = try #require(try Row.fetchOne(db, sql: "SELECT * FROM ZCOCKTAIL"))
      // "author" comes before "id": its field has the bare name.
      let (authorKey, editorKey, ownKey): (Data?, Data?, Data?) = (
        row["ZID"], row["ZID1"], row["ZID2"]
      )
      #expect(authorKey == withUnsafeBytes(of: author.id.uuid) { Data($0) })
      #expect(editorKey == nil)
      #expect(ownKey == withUnsafeBytes(of: cocktail.id.uuid) { Data($0) })
      #expect(row["ZUNIT1"] as String? == nil || row["ZUNIT"] as String? != nil)
      let cases: [String?] = [row["ZCOUPE"], row["ZHIGHBALL"], row["ZROCKS"]]
      #expect(cases == [nil, "highball", nil])
      #expect(row["ZTAGS"] as Data? == Data(#"["Stirred","Martini Variation"]"#.utf8))
    }
  }

  @Test("a stored value that is not of the type makes the fetch throw, and names the property")
  func wrongValue() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let first = try container(path)
    let context = ModelContext(first)
    context.insert(Cocktail(name: "a", author: author))
    try context.save()
    try first.close()
    for (sql, cause) in [
      (
        "UPDATE ZCOCKTAIL SET ZPRIORITY = 9", "'priority' holds 9; Priority accepts 1, 2"
      ),
      (
        "UPDATE ZCOCKTAIL SET ZPRIORITY = 1, ZTAGS = x'00'",
        "the value stored in 'tags' is not of type Array<String>: "
          + "the value is damaged or was written for another type"
      ),
      (
        "UPDATE ZCOCKTAIL SET ZTAGS = CAST('[]' AS BLOB), ZPERSON = NULL",
        "the value stored in 'author' is not of type Author: the value has no String at 'person'"
      ),
      (
        "UPDATE ZCOCKTAIL SET ZPERSON = 'Ada', ZUNIT = 'pint'",
        "'author.unit' holds 'pint'; Unit accepts 'dash', 'ounce'"
      ),
      (
        "UPDATE ZCOCKTAIL SET ZUNIT = 'dash', ZUNITS = CAST('[\"dash\",\"pint\"]' AS BLOB)",
        "'units[1]' holds 'pint'; Unit accepts 'dash', 'ounce'"
      ),
    ] {
      try DatabaseQueue(path: path).write { try $0.execute(sql: sql) }
      let container = try container(path)
      let error = #expect(throws: InstarError.self) {
        try ModelContext(container).fetch(FetchDescriptor<Cocktail>())
      }
      #expect(error?.what == "cannot read Cocktail 1")
      #expect(error?.cause == cause)
      try container.close()
    }
  }

  @Test("rows from before a composite property was added have its initial value")
  func compositeWithoutValue() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let first = try container(path)
    let context = ModelContext(first)
    context.insert(Cocktail(name: "a", author: author))
    try context.save()
    try first.close()
    try DatabaseQueue(path: path).write {
      try $0.execute(sql: "UPDATE ZCOCKTAIL SET ZCOUPE = NULL")
    }
    let cocktail = try #require(
      try ModelContext(container(path)).fetch(FetchDescriptor<Cocktail>()).first)
    if case .coupe = cocktail.glass {} else { Issue.record("\(cocktail.glass)") }
  }

  @Test("enums with raw values are compared in predicates as their values")
  func predicates() throws {
    let context = ModelContext(
      try ModelContainer(
        for: Cocktail.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    for (name, unit) in [("a", Kitchen.Unit.dash), ("b", .ounce)] {
      let cocktail = Cocktail(name: name, author: author)
      cocktail.unit = unit
      cocktail.otherUnit = name == "a" ? nil : .dash
      context.insert(cocktail)
    }
    try context.save()
    let ounce = Kitchen.Unit.ounce
    let units: [Kitchen.Unit] = [.ounce]
    #expect(
      try context.fetch(FetchDescriptor<Cocktail>(predicate: #Predicate { $0.unit == ounce })).map(
        \.name)
        == ["b"])
    #expect(
      try context.fetch(
        FetchDescriptor<Cocktail>(predicate: #Predicate { units.contains($0.unit) })
      )
      .map(\.name) == ["b"])
    #expect(
      try context.fetch(FetchDescriptor<Cocktail>(predicate: #Predicate { $0.otherUnit == nil }))
        .map(\.name) == ["a"])
    #expect(
      try context.fetch(FetchDescriptor<Cocktail>(predicate: #Predicate { $0.scores == nil })).count
        == 2)
  }

  private enum CustomAttribute: CodableAttributedStringKey {
    typealias Value = Int
    static let name = "com.example.custom"
  }

  @Test("a text attribute of another scope makes the save throw, and names the property")
  func customTextAttribute() throws {
    let context = ModelContext(
      try ModelContainer(
        for: EveryType.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let model = EveryType()
    model.text = AttributedString("a")
    model.text[CustomAttribute.self] = 7
    context.insert(model)
    let refusal = #expect(throws: InstarError.self) { try context.save() }
    #expect(refusal?.what.contains("'text' of a new EveryType") == true)
  }
}
