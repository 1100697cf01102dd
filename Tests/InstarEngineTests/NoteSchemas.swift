import Foundation
import Instar

/// Notes in stores of the Core Data format, for stages of each kind.
enum NotesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Model final class Note {
    var title: String
    var body: String
    var pages: String?
    var length: Int
    var made: Date?
    init(title: String, body: String, pages: String?, length: Int) {
      (self.title, self.body, self.pages, self.length) = (title, body, pages, length)
      made = Date(timeIntervalSinceReferenceDate: Double(length))
    }
  }
}

/// 'body' has another name, 'pages' another type, 'length' is gone, and the others are new.
enum NotesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Model final class Note {
    var title: String
    @Attribute(originalName: "body") var content: String
    var pages: Int?
    var words: Int = -1
    var heading: String = ""
    var made: Date?
    var seconds: Int?
    init(title: String, content: String) { (self.title, self.content) = (title, content) }
  }
}

/// The same notes in ordinary tables.
enum RowNotesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Table("note")
  @Model final class Note {
    var id: Int
    var title: String
    var body: String
    var pages: String?
    var length: Int
    var made: Date?
    init(id: Int, title: String, body: String, length: Int) {
      (self.id, self.title, self.body, self.length) = (id, title, body, length)
    }
  }

  static let tables = """
    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, pages TEXT,
      length INTEGER NOT NULL, made TEXT);
    INSERT INTO note VALUES (1, 'a', 'one two', '12', 7, '2001-01-01T00:00:07.000Z'),
      (2, 'b', 'one', NULL, 8, '2001-01-01T00:00:08.000Z'),
      (5, 'c', 'one two  three', 'x', 9, NULL)
    """
}

/// 'words' and 'heading' are required and have no default: SQLite needs their values when it makes the columns.
enum RowNotesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Table("note")
  @Model final class Note {
    var id: Int
    var title: String
    @Attribute(originalName: "body") var content: String
    var pages: Int?
    var words: Int
    var heading: String
    var made: Date?
    var seconds: Int?
    init(id: Int, title: String, content: String, words: Int, heading: String) {
      (self.id, self.title, self.content) = (id, title, content)
      (self.words, self.heading) = (words, heading)
    }
  }
}

extension MigratedStore {
  /// Makes three notes: with 'pages' that are a number, none, and not a number.
  func makeNotes(_ format: StoreFormat) throws {
    if format == .plain { return try makeTables(RowNotesV1.tables) }
    try make(
      NotesV1.self,
      [
        NotesV1.Note(title: "a", body: "one two", pages: "12", length: 7),
        NotesV1.Note(title: "b", body: "one", pages: nil, length: 8),
        NotesV1.Note(title: "c", body: "one two  three", pages: "x", length: 9),
      ])
  }

  func migrateNotes(_ format: StoreFormat) throws {
    if format == .plain {
      try migrate(RowNotesV1.self, RowNotesV2.self)
    } else {
      try migrate(NotesV1.self, NotesV2.self)
    }
  }

  func refusalOfNotes(_ format: StoreFormat) throws -> InstarError {
    try format == .plain
      ? refusal(RowNotesV1.self, RowNotesV2.self) : refusal(NotesV1.self, NotesV2.self)
  }

  /// The values of one property of all notes, in the order of their keys; "nil" for none.
  func notes(_ property: String, _ format: StoreFormat) throws -> [String] {
    try format == .plain
      ? read("SELECT ifnull(\(property), 'nil') FROM note ORDER BY id")
      : read("SELECT ifnull(Z\(property.uppercased()), 'nil') FROM ZNOTE ORDER BY Z_PK")
  }
}
