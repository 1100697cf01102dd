import Foundation
import Instar
import InstarStore
import Testing

/// Whole runs of an app's container over a stage that adds a property whose values may be in files.
@Suite("The initial value of a new property with external storage", .serialized)
struct ExternalInitialValueTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  @Test("an initial value is stored behind the mark of a value inside the store")
  func mark() throws {
    try store.make(PicturesV1.self, [PicturesV1.Picture(), PicturesV1.Picture()])
    let container = try store.open(PicturesV2.self, ScriptedPlan<PicturesV1, PicturesV2>.self)
    let pictures = try ModelContext(container).fetch(FetchDescriptor<PicturesV2.Picture>())
    #expect(pictures.map(\.image) == [Data([1, 2]), Data([1, 2])])
    try container.close()
    #expect(try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE") == ["010102", "010102"])
  }

  @Test(
    "an initial value is stored behind the same mark where an optional property becomes required")
  func required() throws {
    try store.make(
      PicturesV0.self, [PicturesV0.Picture(nil), PicturesV0.Picture(Data([9]))])
    let container = try store.open(PicturesV2.self, ScriptedPlan<PicturesV0, PicturesV2>.self)
    try container.close()
    #expect(
      try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE ORDER BY 1") == ["010102", "0109"])
  }

  @Test(
    "an initial value is stored once where a property becomes required and its values may be in files from then on",
    arguments: [false, true])
  func becomesExternal(isApples: Bool) throws {
    try store.make(
      InlineV1.self,
      [
        InlineV1.Picture("empty", nil, nil, nil),
        InlineV1.Picture("full", Data([1, 9]), ["old"], Data([1])),
      ])
    if isApples { try store.passForApples() }
    let container = try store.open(ExternalV2.self, ScriptedPlan<InlineV1, ExternalV2>.self)
    let context = ModelContext(container)
    let pictures = try context.fetch(
      FetchDescriptor<ExternalV2.Picture>(sortBy: [SortDescriptor(\.name)]))
    #expect(pictures.map(\.image) == [Data([1, 2]), Data([1, 9])])
    #expect(pictures.map(\.tags) == [["new"], ["old"]])
    #expect(pictures.map(\.large) == [Self.large, Data([1])])
    #expect(pictures.map(\.cover) == [Data([1, 3]), Data([1, 3])])
    // A value in a file is read when it is asked for.
    withExtendedLifetime(context) {}
    try container.close()
    #expect(try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE ORDER BY 1") == ["010102", "010109"])
    #expect(try store.read("SELECT hex(ZCOVER) FROM ZPICTURE") == ["010103", "010103"])
    #expect(try filesOfValues().count == 1)
    try requireRebuild(isApples)
  }

  @Test(
    "an initial value is stored without a mark where a property becomes required and its values are no longer in files",
    arguments: [false, true])
  func becomesInline(isApples: Bool) throws {
    try store.make(
      ExternalV1.self,
      [
        ExternalV1.Picture("empty", nil, nil, nil),
        ExternalV1.Picture("full", Data([1, 9]), ["old"], Self.large),
      ])
    #expect(try filesOfValues().count == 1)
    if isApples { try store.passForApples() }
    let container = try store.open(InlineV2.self, ScriptedPlan<ExternalV1, InlineV2>.self)
    let pictures = try ModelContext(container).fetch(
      FetchDescriptor<InlineV2.Picture>(sortBy: [SortDescriptor(\.name)]))
    #expect(pictures.map(\.image) == [Data([1, 2]), Data([1, 9])])
    #expect(pictures.map(\.tags) == [["new"], ["old"]])
    #expect(pictures.map(\.large) == [Self.large, Self.large])
    #expect(pictures.map(\.cover) == [Data([1, 3]), Data([1, 3])])
    try container.close()
    #expect(try store.read("SELECT hex(ZIMAGE) FROM ZPICTURE ORDER BY 1") == ["0102", "0109"])
    #expect(try filesOfValues().isEmpty)
    try requireRebuild(isApples)
  }

  /// A value that is in a file where it may be.
  private static let large = Data(repeating: 1, count: 150_000)

  private func filesOfValues() throws -> [String] {
    let folder = ExternalValues.folder(ofStore: store.path)
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: folder)
  }

  /// Both ways of the change are to be tested: only a rebuilt table has the new column before the old one.
  private func requireRebuild(_ isRebuilt: Bool) throws {
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'ZPICTURE' AND sql LIKE '%ZALBUM%ZNAME%'"
    #expect(try store.read(sql).isEmpty != isRebuilt)
  }

  @Test("an initial value is stored without a mark in an ordinary table, which has no files")
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

  enum InlineV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var name: String
      var image: Data?
      var tags: [String]?
      var large: Data?
      init(_ name: String, _ image: Data?, _ tags: [String]?, _ large: Data?) {
        self.name = name
        self.image = image
        self.tags = tags
        self.large = large
      }
    }
  }

  enum InlineV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var album: String = ""
      var name: String
      var image: Data = Data([1, 2])
      var tags: [String] = ["new"]
      var large: Data = Data(repeating: 1, count: 150_000)
      var cover: Data = Data([1, 3])
      init(_ name: String) { self.name = name }
    }
  }

  enum ExternalV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var name: String
      @Attribute(.externalStorage) var image: Data?
      @Attribute(.externalStorage) var tags: [String]?
      @Attribute(.externalStorage) var large: Data?
      init(_ name: String, _ image: Data?, _ tags: [String]?, _ large: Data?) {
        self.name = name
        self.image = image
        self.tags = tags
        self.large = large
      }
    }
  }

  enum ExternalV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Picture.self] }

    @Model final class Picture {
      var album: String = ""
      var name: String
      @Attribute(.externalStorage) var image: Data = Data([1, 2])
      @Attribute(.externalStorage) var tags: [String] = ["new"]
      @Attribute(.externalStorage) var large: Data = Data(repeating: 1, count: 150_000)
      @Attribute(.externalStorage) var cover: Data = Data([1, 3])
      init(_ name: String) { self.name = name }
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
