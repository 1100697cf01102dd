import GRDB
import Instar
import InstarStore
import InstarTestSupport
import Testing

private enum Gallery: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Picture.self] }

  @Model
  final class Picture {
    var name: String
    @Attribute(.externalStorage) var image: Data?

    init(name: String, image: Data? = nil) {
      self.name = name
      self.image = image
    }
  }
}

@Suite("Values that may lie in files")
struct LargeValueTests {
  private typealias Picture = Gallery.Picture
  private let folder: TemporaryFolder
  private let path: String
  private let large = Data(repeating: 7, count: 200_000)

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("Gallery.store")
  }

  private func container() throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: Gallery.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  private func files() -> [String] {
    (try? FileManager.default.contentsOfDirectory(
      atPath: folder.path(".Gallery_SUPPORT/_EXTERNAL_DATA"))) ?? []
  }

  private func stored() throws -> [Data?] {
    try StoreReader.withReadOnlyStore(path) {
      try (Data?).fetchAll($0, sql: "SELECT ZIMAGE FROM ZPICTURE ORDER BY Z_PK")
    }
  }

  @Test("a small value is stored behind a mark, a large one in a file whose name is stored")
  func forms() throws {
    let container = try container()
    let context = ModelContext(container)
    context.insert(Picture(name: "a", image: Data([9, 8])))
    context.insert(Picture(name: "b", image: large))
    context.insert(Picture(name: "c"))
    try context.save()
    #expect(files().count == 1)
    try container.close()
    let stored = try stored()
    #expect(stored[0] == Data([1, 9, 8]))
    #expect(stored[1] == Data([2]) + Data(files().joined().utf8) + Data([0]))
    #expect(stored[2] == nil)

    let again = try self.container()
    // A file is read when its value is asked for, which takes the context.
    let read = ModelContext(again)
    let pictures = try read.fetch(
      FetchDescriptor<Picture>(sortBy: [SortDescriptor(\.name)]))
    #expect(pictures.map(\.image) == [Data([9, 8]), large, nil])
    let found = try read.fetch(
      FetchDescriptor<Picture>(predicate: #Predicate { $0.image == nil }))
    #expect(found.map(\.name) == ["c"])
    try again.close()
  }

  @Test("large values are read as Apple's frameworks write them, and bare ones too")
  func foreignForms() throws {
    let first = try container()
    let context = ModelContext(first)
    for name in ["a", "b", "c"] { context.insert(Picture(name: name)) }
    try context.save()
    try first.close()
    let name = "6B29FC40-CA47-1067-B31D-00DD010662DA"
    try FileManager.default.createDirectory(
      atPath: folder.path(".Gallery_SUPPORT/_EXTERNAL_DATA"), withIntermediateDirectories: true)
    try large.write(
      to: folder.url.appendingPathComponent(".Gallery_SUPPORT/_EXTERNAL_DATA/\(name)"))
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      try db.execute(
        sql: """
          UPDATE ZPICTURE SET ZIMAGE = CAST(x'02' || '\(name)' AS BLOB) WHERE Z_PK = 1;
          UPDATE ZPICTURE SET ZIMAGE = x'89504E47' WHERE Z_PK = 2;
          UPDATE ZPICTURE SET ZIMAGE = CAST(x'02' || '6B29FC40-CA47-1067-B31D-00DD010662DB' AS BLOB)
            WHERE Z_PK = 3
          """)
    }
    try queue.close()
    let container = try container()
    let read = ModelContext(container)
    let pictures = try read.fetch(FetchDescriptor<Picture>(sortBy: [SortDescriptor(\.name)]))
    #expect(pictures[0].image == large)
    #expect(pictures[1].image == Data([0x89, 0x50, 0x4E, 0x47]))
    // A getter cannot throw: the next call that can does.
    #expect(pictures[2].image == nil)
    #expect(throws: InstarError.self) { try read.save() }
    try container.close()
  }

  @Test("without its context, a value that was not read before is an error of the next fetch")
  func withoutContext() throws {
    let container = try container()
    let filling = ModelContext(container)
    for name in ["a", "b"] { filling.insert(Picture(name: name, image: large)) }
    try filling.save()
    let pictures = try container.read { context in
      let found = try context.fetch(FetchDescriptor<Picture>(sortBy: [SortDescriptor(\.name)]))
      #expect(found[0].image == large)
      return found
    }
    #expect(pictures.map(\.name) == ["a", "b"])
    #expect(pictures.map(\.image) == [large, nil])
    let error = #expect(throws: InstarError.self) {
      try ModelContext(container).fetch(FetchDescriptor<Picture>())
    }
    #expect(error?.what == "cannot read Picture 2")
    #expect(
      error?.cause == "'image' was read after the row was deleted or the context was released")
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Picture>()) == 2)
    try container.close()
  }

  @Test("a file goes with the value that was in it, and stays where the save fails")
  func replacement() throws {
    let container = try container()
    let context = ModelContext(container)
    for name in ["a", "b"] { context.insert(Picture(name: name, image: large)) }
    try context.save()
    let before = Set(files())
    let pictures = try context.fetch(FetchDescriptor<Picture>(sortBy: [SortDescriptor(\.name)]))
    pictures[0].image = large + large
    try context.save()
    #expect(files().count == 2)
    #expect(before.subtracting(files()).count == 1)
    context.delete(pictures[1])
    try context.save()
    #expect(files().count == 1)

    let kept = files()
    let other = try DatabaseQueue(path: path)
    try other.write {
      try $0.execute(
        sql: """
          CREATE TRIGGER refuse BEFORE INSERT ON ZPICTURE BEGIN SELECT raise(ABORT, 'no'); END
          """)
    }
    context.insert(Picture(name: "c", image: large))
    #expect(throws: (any Error).self) { try context.save() }
    #expect(files() == kept)
    try other.close()
    try container.close()
  }

  @Test("erasing the store removes the files too, once the rows are gone, and no others")
  func erasing() throws {
    let container = try container()
    let context = ModelContext(container)
    for name in ["a", "b"] { context.insert(Picture(name: name, image: large)) }
    context.insert(Picture(name: "c", image: Data([1])))
    try context.save()
    let strange = folder.path(".Gallery_SUPPORT/_EXTERNAL_DATA/strange")
    try Data([1]).write(to: URL(filePath: strange))
    #expect(files().count == 3)

    let other = try DatabaseQueue(path: path)
    try other.write {
      try $0.execute(
        sql: """
          CREATE TRIGGER refuse BEFORE DELETE ON ZPICTURE BEGIN SELECT raise(ABORT, 'no'); END
          """)
    }
    #expect(throws: (any Error).self) { try container.erase() }
    #expect(files().count == 3)
    try other.write { try $0.execute(sql: "DROP TRIGGER refuse") }
    try other.close()

    try container.erase()
    #expect(files() == ["strange"])
    #expect(try context.fetchCount(FetchDescriptor<Picture>()) == 0)
    context.insert(Picture(name: "d", image: large))
    try context.save()
    container.deleteAllData()
    #expect(files() == ["strange"])
    try container.close()
  }
}
