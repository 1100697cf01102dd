import GRDB
import Instar
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarChange

/// Whole runs of an app's container over a stage that removes a subclass and keeps its superclass.
@Suite("Links of a class that a lightweight stage removes", .serialized)
struct RemovedSubclassTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  /// One medium, two photos and a clip in an album, each with the same tag and a note, and albums with each as cover.
  private func makeLibrary() throws {
    let album = LibraryV1.Album(name: "all")
    let tag = LibraryV1.Tag(name: "red")
    let media = [
      LibraryV1.Medium("medium"), LibraryV1.Photo("photo 1"), LibraryV1.Photo("photo 2"),
      LibraryV1.Clip("clip"),
    ]
    var models: [any PersistentModel] = [album, tag]
    for (position, medium) in media.enumerated() {
      medium.album = album
      medium.tags = [tag]
      medium.next = media[(position + 1) % media.count]
      medium.notes = [LibraryV1.Note(text: "of \(medium.title)")]
      (medium as? LibraryV1.Photo)?.place = LibraryV1.Place(name: "of \(medium.title)")
      let covered = LibraryV1.Album(name: medium.title)
      covered.cover = medium
      models += [medium, covered]
    }
    try store.make(LibraryV1.self, models)
  }

  @Test("links to and from the rows of a removed class vanish with them, and all others stay")
  func links() throws {
    try makeLibrary()
    let container = try store.open(LibraryV2.self, ScriptedPlan<LibraryV1, LibraryV2>.self)
    let context = ModelContext(container)
    let media = try context.fetch(
      FetchDescriptor<LibraryV2.Medium>(sortBy: [SortDescriptor(\.title)]))
    #expect(media.map { "\(type(of: $0)) \($0.title)" } == ["Clip clip", "Medium medium"])
    #expect(media.map { $0.album?.name } == ["all", "all"])
    #expect(media.map { $0.tags.map(\.name) } == [["red"], ["red"]])
    #expect(media.map { $0.next?.title } == ["medium", nil])
    #expect(media.map { $0.notes.map(\.text) } == [["of clip"], ["of medium"]])
    let albums = try context.fetch(
      FetchDescriptor<LibraryV2.Album>(sortBy: [SortDescriptor(\.name)]))
    #expect(
      albums.map { "\($0.name): \($0.cover?.title ?? "-")" } == [
        "all: -", "clip: clip", "medium: medium", "photo 1: -", "photo 2: -",
      ])
    #expect(albums.first?.media.map(\.title).sorted() == ["clip", "medium"])
    #expect(albums.first?.mediaCount == 2)
    let tags = try context.fetch(FetchDescriptor<LibraryV2.Tag>())
    #expect(tags.map { $0.media.map(\.title).sorted() } == [["clip", "medium"]])
    #expect(try context.fetchCount(FetchDescriptor<LibraryV2.Note>()) == 4)
    #expect(try context.fetchCount(FetchDescriptor<LibraryV2.Place>()) == 2)
    let notes = try store.notes
    #expect(
      notes.contains(
        "Album.cover had 4 links and has 2: 2 ended with the rows of removed entities"),
      "\(notes)")
    // A context does not show the other parts of a link.
    let parts = try store.read(
      "SELECT name FROM pragma_table_info('ZALBUM') WHERE name GLOB 'Z[0-9]*_COVER'")
    #expect(parts.count == 1)
    for part in parts {
      #expect(
        try store.read("SELECT ZNAME FROM ZALBUM WHERE ZCOVER IS NULL AND \(part) IS NOT NULL")
          == [])
    }
  }

  @Test("a row that belongs to no entity stays, with any number or none")
  func strayRow() throws {
    try makeLibrary()
    try store.execute("UPDATE ZMEDIUM SET Z_ENT = 77 WHERE ZTITLE = 'clip'")
    try store.execute("UPDATE ZMEDIUM SET Z_ENT = NULL WHERE ZTITLE = 'medium'")
    _ = try store.open(LibraryV2.self, ScriptedPlan<LibraryV1, LibraryV2>.self)
    let rows = try store.read(
      "SELECT ZTITLE || ' ' || ifnull(Z_ENT, 'none') FROM ZMEDIUM ORDER BY ZTITLE")
    #expect(rows == ["clip 77", "medium none"])
  }

  @Test("links of a removed class end by statements that the plan shows with the removal")
  func statements() throws {
    try makeLibrary()
    let removal = try store.plan(LibraryV1.self, LibraryV2.self).stages[0].planned.first {
      $0.reason == "removes entity Photo with its rows"
    }
    let (planned, executed) = try store.statements(LibraryV1.self, LibraryV2.self)
    #expect(planned == executed)
    #expect(planned.contains { $0.hasPrefix("UPDATE ZALBUM SET ZCOVER = NULL") })
    #expect(removal?.statements.contains { $0.comment == Self.endOfLinks } == true)
  }

  private static let endOfLinks = "ends links to rows of removed entities"

  @Test(
    "links of a removed class end also where the last subclass is removed, where tables are rebuilt and numbers change",
    arguments: [CoreDataSchemaChange.TableStyle.altered, .fresh], [[], ["Animal"]])
  func tables(_ style: CoreDataSchemaChange.TableStyle, _ others: [String]) throws {
    func schema(_ version: Int, _ others: [Schema.Entity]) -> Schema {
      let club = Schema.Entity(
        name: "Club",
        relationships: [
          Schema.Relationship(
            name: "head", destination: "Person", maximumModelCount: 1, isToOneRelationship: true),
          Schema.Relationship(
            name: "guests", destination: "Person", inverseName: "visited",
            isToOneRelationship: false),
        ])
      let person = Schema.Entity(
        name: "Person",
        relationships: [
          Schema.Relationship(
            name: "friends", destination: "Person", inverseName: "friends",
            isToOneRelationship: false),
          Schema.Relationship(
            name: "visited", destination: "Club", inverseName: "guests", isToOneRelationship: false),
          Schema.Relationship(name: "dogs", destination: "Dog", isToOneRelationship: false),
        ])
      return Schema(
        entities: [club, Schema.Entity(name: "Dog"), person] + others,
        version: Schema.Version(version, 0, 0))
    }
    let old = schema(1, [Schema.Entity(name: "Student", superentityName: "Person")])
    let new = schema(2, others.map { Schema.Entity(name: $0) })
    let layouts = (try CoreDataLayout(schema: old), try CoreDataLayout(schema: new))
    func key(_ name: String, _ layout: CoreDataLayout) throws -> (table: String, columns: [String])
    {
      let join = try #require(
        layout.joinTables.first { $0.relationship == name || $0.otherRelationship == name })
      return (join.name, [join.column, join.otherColumn])
    }
    try DatabaseQueue().write { db in
      for statement in layouts.0.createStatements { try db.execute(sql: statement) }
      try db.execute(
        sql: """
          INSERT INTO ZPERSON (Z_PK, Z_ENT) VALUES (1, 3), (2, 3), (3, 4);
          INSERT INTO ZCLUB (Z_PK, Z_ENT, ZHEAD, Z3_HEAD) VALUES (1, 1, 1, 3), (2, 1, 3, 4), (3, 1, 9, 3);
          INSERT INTO Z_3FRIENDS VALUES (1, 2), (2, 1), (1, 3), (3, 1);
          INSERT INTO Z_1GUESTS VALUES (1, 1), (1, 3);
          INSERT INTO ZDOG (Z_PK, Z_ENT, Z3DOGS) VALUES (1, 2, 1), (2, 2, 3);
          """)
      let change = CoreDataSchemaChange(
        from: layouts.0, to: layouts.1, SchemaDifference(from: old, to: new), style: style)
      for step in change.steps { try db.execute(sql: step.sql) }
      #expect(try StoreStructure.read(db, format: .coredata) == layouts.1.structure)
      func read(_ sql: String) throws -> [String] { try String.fetchAll(db, sql: sql) }
      // A link that was broken before stays broken.
      #expect(
        try read("SELECT Z_PK || ':' || ifnull(ZHEAD, '-') FROM ZCLUB ORDER BY 1")
          == ["1:1", "2:-", "3:9"])
      let friends = try key("friends", layouts.1)
      let guests = try key("guests", layouts.1)
      #expect(
        try read(
          "SELECT \(friends.columns.joined(separator: " || '-' || ")) FROM \(friends.table) ORDER BY 1"
        ) == ["1-2", "2-1"])
      #expect(
        try read("SELECT \(guests.columns.joined(separator: " || '-' || ")) FROM \(guests.table)")
          == ["1-1"])
      let owner = try #require(
        layouts.1.tables.first { $0.name == "ZDOG" }?.columns.first {
          $0.role == .ownerKey(entity: "Person", name: "dogs")
        })
      #expect(
        try read("SELECT Z_PK || ':' || ifnull(\(owner.name), '-') FROM ZDOG ORDER BY 1") == [
          "1:1", "2:-",
        ])
    }
  }

  // MARK: Models

  enum LibraryV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
      [Album.self, Medium.self, Photo.self, Clip.self, Tag.self, Note.self, Place.self]
    }

    @Model
    final class Album {
      var name: String
      @Relationship(.ordered, inverse: \Medium.album) var media: [Medium] = []
      @Attribute(.derived("count:(media)")) var mediaCount: Int?
      var cover: Medium?
      init(name: String) { self.name = name }
    }

    @Model
    class Medium {
      var title: String
      var album: Album?
      @Relationship(inverse: \Tag.media) var tags: [Tag] = []
      var next: Medium?
      var notes: [Note] = []
      init(_ title: String) { self.title = title }
    }

    @Model
    final class Photo: Medium {
      var camera: String = "none"
      @Relationship(inverse: \Place.photos) var place: Place?
      override init(_ title: String) { super.init(title) }
    }

    @Model
    final class Clip: Medium {
      var seconds: Int = 0
      override init(_ title: String) { super.init(title) }
    }

    @Model
    final class Tag {
      var name: String
      var media: [Medium] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }

    @Model
    final class Place {
      var name: String
      var photos: [Photo] = []
      init(name: String) { self.name = name }
    }
  }

  enum LibraryV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] {
      [Album.self, Medium.self, Clip.self, Tag.self, Note.self, Place.self]
    }

    @Model
    final class Album {
      var name: String
      @Relationship(.ordered, inverse: \Medium.album) var media: [Medium] = []
      @Attribute(.derived("count:(media)")) var mediaCount: Int?
      var cover: Medium?
      init(name: String) { self.name = name }
    }

    @Model
    class Medium {
      var title: String
      var album: Album?
      @Relationship(inverse: \Tag.media) var tags: [Tag] = []
      var next: Medium?
      var notes: [Note] = []
      init(_ title: String) { self.title = title }
    }

    @Model
    final class Clip: Medium {
      var seconds: Int = 0
      override init(_ title: String) { super.init(title) }
    }

    @Model
    final class Tag {
      var name: String
      var media: [Medium] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }

    @Model
    final class Place {
      var name: String
      init(name: String) { self.name = name }
    }
  }
}
