import Instar
import Testing

/// Whole runs of an app's container over a stage that adds a property whose values may be in files.
@Suite("The initial value of a new property with external storage", .serialized)
struct ExternalInitialValueTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  @Test("is stored behind the mark of a value inside the store")
  func mark() throws {
    try store.make(PicturesV1.self, [PicturesV1.Picture(), PicturesV1.Picture()])
    let container = try store.open(PicturesV2.self, ScriptedPlan<PicturesV1, PicturesV2>.self)
    let pictures = try ModelContext(container).fetch(FetchDescriptor<PicturesV2.Picture>())
    #expect(pictures.map(\.image) == [Data([1, 2]), Data([1, 2])])
    try container.close()
    #expect(try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE") == ["010102", "010102"])
  }

  @Test("is stored so where an optional property becomes required")
  func required() throws {
    try store.make(
      PicturesV0.self, [PicturesV0.Picture(nil), PicturesV0.Picture(Data([9]))])
    let container = try store.open(PicturesV2.self, ScriptedPlan<PicturesV0, PicturesV2>.self)
    try container.close()
    #expect(
      try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE ORDER BY 1") == ["010102", "0109"])
  }

  @Test("is stored as it is in an ordinary table, which has no files")
  func tables() throws {
    try store.makeTables(
      "CREATE TABLE picture (id INTEGER PRIMARY KEY); INSERT INTO picture VALUES (1)")
    let container = try store.open(TablesV2.self, ScriptedPlan<TablesV1, TablesV2>.self)
    let pictures = try ModelContext(container).fetch(FetchDescriptor<TablesV2.Picture>())
    #expect(pictures.map(\.image) == [Data([1, 2])])
    try container.close()
    #expect(try store.read("SELECT hex(image) FROM picture") == ["0102"])
  }

  // MARK: Models

  enum PicturesV0: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var name: String = ""
      @Attribute(.externalStorage) var image: Data?
      init(_ image: Data?) { self.image = image }
    }
  }

  enum PicturesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var name: String = ""
      init() {}
    }
  }

  enum PicturesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var name: String = ""
      @Attribute(.externalStorage) var image: Data = Data([1, 2])
      init() {}
    }
  }

  enum TablesV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Table
    @Model final class Picture {
      @Column(.primaryKey) var id: Int
      init(id: Int) { self.id = id }
    }
  }

  enum TablesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Table
    @Model final class Picture {
      @Column(.primaryKey) var id: Int
      @Attribute(.externalStorage) var image: Data = Data([1, 2])
      init(id: Int) { self.id = id }
    }
  }
}
