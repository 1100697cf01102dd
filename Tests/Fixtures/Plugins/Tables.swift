import Instar

// Plans for the stores of `Tests/Fixtures/Tables`: each takes over an app's tables from another tool.

// MARK: Alembic

enum NotesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Folder.self, Note.self, Tag.self] }

  @Table("folder")
  @Model final class Folder {
    var id: Int
    @Column(.type("VARCHAR(120)")) @Attribute(.unique) var name: String
    @Relationship(inverse: \Note.folder) var notes: [Note] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("note")
  @Model final class Note {
    #Index<Note>([\.createdAt])
    var id: Int
    @Column(.type("VARCHAR(200)"), .collation("NOCASE")) var title: String
    var body: String?
    @Column(.type("BOOLEAN")) var isPinned: Bool
    @Column(.type("DATETIME"), .encoding(.dateTime)) var createdAt: Date
    var folder: Folder?
    @Column(.junction("note_tag", own: "note_id", other: "tag_id"))
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(id: Int, title: String, isPinned: Bool, createdAt: Date) {
      self.id = id
      self.title = title
      self.isPinned = isPinned
      self.createdAt = createdAt
    }
  }

  @Table("tag")
  @Model final class Tag {
    var id: Int
    @Column(.type("VARCHAR(40)")) var label: String
    var notes: [Note] = []
    init(id: Int, label: String) {
      self.id = id
      self.label = label
    }
  }
}

/// A column and its uniqueness change, one becomes required, one is new with a default, one without; a table is new.
enum NotesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Folder.self, Note.self, Tag.self, Attachment.self]
  }

  @Table("folder")
  @Model final class Folder {
    var id: Int
    @Column(.type("VARCHAR(120)")) @Attribute(originalName: "name") var title: String
    @Relationship(inverse: \Note.folder) var notes: [Note] = []
    init(id: Int, title: String) {
      self.id = id
      self.title = title
    }
  }

  @Table("note")
  @Model final class Note {
    var id: Int
    @Column(.type("VARCHAR(200)"), .collation("NOCASE")) var title: String
    var body: String = ""
    @Column(.type("BOOLEAN")) var isPinned: Bool
    @Column(.type("DATETIME"), .encoding(.dateTime)) var createdAt: Date
    var archivedAt: Date?
    var rating: Int = 0
    var folder: Folder?
    @Column(.junction("note_tag", own: "note_id", other: "tag_id"))
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    @Relationship(deleteRule: .cascade, inverse: \Attachment.note) var attachments: [Attachment] =
      []
    init(id: Int, title: String, isPinned: Bool, createdAt: Date) {
      self.id = id
      self.title = title
      self.isPinned = isPinned
      self.createdAt = createdAt
    }
  }

  @Table("tag")
  @Model final class Tag {
    var id: Int
    @Column(.type("VARCHAR(40)")) var label: String
    var colour: String = "it's none"
    var notes: [Note] = []
    init(id: Int, label: String) {
      self.id = id
      self.label = label
    }
  }

  @Table
  @Model final class Attachment {
    var name: String
    var data: Data
    var note: Note
    init(name: String, data: Data, note: Note) {
      self.name = name
      self.data = data
      self.note = note
    }
  }
}

enum NotesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
  static var importedVersions: [ToolVersion: Schema.Version] {
    [.alembic("ae1027a6acf"): Schema.Version(1, 0, 0)]
  }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self)]
  }
}

// MARK: Django

enum LibraryV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Author.self, Book.self] }

  @Table("library_author")
  @Model final class Author {
    @Column(.autoincrement) var id: Int
    @Column(.type("varchar(100)")) var name: String
    @Relationship(inverse: \Book.author) var books: [Book] = []
    init(name: String) {
      self.id = 0
      self.name = name
    }
  }

  @Table("library_book")
  @Model final class Book {
    @Column(.primaryKey, .type("char(32)"), .encoding(.uuidHexadecimal)) var id: UUID
    @Column(.type("varchar(200)")) var title: String
    @Column(.type("datetime"), .encoding(.dateTime)) var published: Date?
    @Column(.type("decimal")) var price: Decimal
    @Column(.type("bool")) var inPrint: Bool
    var data: [String: Int]
    var author: Author
    init(id: UUID, title: String, price: Decimal, author: Author) {
      self.id = id
      self.title = title
      self.price = price
      self.inPrint = true
      self.data = [:]
      self.author = author
    }
  }
}

/// A column is renamed that an index and a view speak of, one goes, and a foreign key need not have a value any more.
enum LibraryV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 1, 0)
  static var models: [any PersistentModel.Type] { [Author.self, Book.self] }

  @Table("library_author")
  @Model final class Author {
    @Column(.autoincrement) var id: Int
    @Column(.type("varchar(100)")) var name: String
    @Relationship(inverse: \Book.author) var books: [Book] = []
    init(name: String) {
      self.id = 0
      self.name = name
    }
  }

  @Table("library_book")
  @Model final class Book {
    @Column(.primaryKey, .type("char(32)"), .encoding(.uuidHexadecimal)) var id: UUID
    @Column(.type("varchar(200)")) @Attribute(originalName: "title") var name: String
    @Column(.type("decimal")) var price: Decimal
    @Column(.type("bool")) var inPrint: Bool
    var data: [String: Int]
    var author: Author?
    init(id: UUID, name: String, price: Decimal) {
      self.id = id
      self.name = name
      self.price = price
      self.inPrint = true
      self.data = [:]
    }
  }
}

enum LibraryPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [LibraryV1.self, LibraryV2.self] }
  static var importedVersions: [ToolVersion: Schema.Version] {
    [.django(app: "library", "0002_book_in_print"): Schema.Version(1, 0, 0)]
  }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: LibraryV1.self, toVersion: LibraryV2.self,
        willMigrate: { context in
          for book in try context.fetch(FetchDescriptor<LibraryV1.Book>()) {
            if let published = book.published {
              book.data["year"] = Calendar(identifier: .gregorian).component(.year, from: published)
            }
          }
        },
        didMigrate: { context in
          let unprinted = FetchDescriptor<LibraryV2.Book>(predicate: #Predicate { !$0.inPrint })
          for book in try context.fetch(unprinted) { book.author = nil }
          context.insert(LibraryV2.Author(name: "Unknown"))
        })
    ]
  }
}

// MARK: GRDB

enum GameV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Player.self, Team.self] }

  @Table("team")
  @Model final class Team {
    var id: String
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Player.team) var players: [Player] = []
    init(id: String, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("player")
  @Model final class Player {
    @Column(.autoincrement) var id: Int
    @Column(.collation("NOCASE")) @Attribute(.unique) var name: String
    var score: Int = 0
    var bonus: Int = 0
    @Column("totalScore", .generated("score + bonus")) var totalScore: Int = 0
    @Column(.type("DATETIME"), .encoding(.dateTime)) var joined: Date?
    @Column("teamId", .onDelete(.cascade), .onUpdate(.cascade)) var team: Team?
    init(name: String) {
      self.id = 0
      self.name = name
    }
  }
}

/// Names may repeat, and a column that a generated one is made of has another name.
enum GameV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Player.self, Team.self] }

  @Table("team")
  @Model final class Team {
    var id: String
    var name: String
    var colour: String?
    @Relationship(deleteRule: .cascade, inverse: \Player.team) var players: [Player] = []
    init(id: String, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("player")
  @Model final class Player {
    @Column(.autoincrement) var id: Int
    @Column(.collation("NOCASE")) var name: String
    @Attribute(originalName: "score") var points: Int = 0
    var bonus: Int = 0
    @Column("totalScore", .generated("score + bonus")) var totalScore: Int = 0
    @Column(.type("DATETIME"), .encoding(.dateTime)) var joined: Date?
    @Column("teamId", .onDelete(.cascade), .onUpdate(.cascade)) var team: Team?
    init(name: String) {
      self.id = 0
      self.name = name
    }
  }
}

enum GamePlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [GameV1.self, GameV2.self] }
  static var importedVersions: [ToolVersion: Schema.Version] {
    [.grdb("addBonus"): Schema.Version(1, 0, 0)]
  }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: GameV1.self, toVersion: GameV2.self)]
  }
}

// MARK: Room

enum WordsV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Word.self, Meaning.self] }

  @Table("word")
  @Model final class Word {
    @Column(.primaryKey) var text: String
    @Column(.primaryKey) var lang: String
    var rank: Int = 0
    @Column(.encoding(.unixMilliseconds)) var added: Date
    @Relationship(deleteRule: .cascade, inverse: \Meaning.word) var meanings: [Meaning] = []
    init(text: String, lang: String, added: Date) {
      self.text = text
      self.lang = lang
      self.added = added
    }
  }

  @Table("meaning")
  @Model final class Meaning {
    @Column(.autoincrement) var id: Int
    @Column(.columns("word", "lang")) var word: Word
    var gloss: String
    init(word: Word, gloss: String) {
      self.id = 0
      self.word = word
      self.gloss = gloss
    }
  }
}

enum WordsV4: VersionedSchema {
  static let versionIdentifier = Schema.Version(4, 0, 0)
  static var models: [any PersistentModel.Type] { [Word.self, Meaning.self] }

  @Table("word")
  @Model final class Word {
    @Column(.primaryKey) var text: String
    @Column(.primaryKey) var lang: String
    var rank: Int?
    @Column(.encoding(.unixMilliseconds)) var added: Date
    @Relationship(deleteRule: .cascade, inverse: \Meaning.word) var meanings: [Meaning] = []
    init(text: String, lang: String, added: Date) {
      self.text = text
      self.lang = lang
      self.added = added
    }
  }

  @Table("meaning")
  @Model final class Meaning {
    @Column(.autoincrement) var id: Int
    @Column(.columns("word", "lang")) var word: Word
    var gloss: String
    var hint: String?
    init(word: Word, gloss: String) {
      self.id = 0
      self.word = word
      self.gloss = gloss
    }
  }
}

enum WordsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [WordsV3.self, WordsV4.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: WordsV3.self, toVersion: WordsV4.self, willMigrate: nil,
        didMigrate: { context in
          for meaning in try context.fetch(FetchDescriptor<WordsV4.Meaning>()) {
            meaning.hint = "\(meaning.word.lang): \(meaning.word.meanings.count)"
          }
          let word = WordsV4.Word(text: "mot", lang: "fr", added: Date(timeIntervalSince1970: 1))
          context.insert(WordsV4.Meaning(word: word, gloss: "word"))
        })
    ]
  }
}

// MARK: golang-migrate

enum ReadingsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Device.self, Reading.self] }

  @Table("device", .strict, .withoutRowID)
  @Model final class Device {
    @Column(.primaryKey) var serial: String
    var model: String = "unknown"
    @Column(.encoding(.unixSeconds)) var seen: Date?
    @Relationship(deleteRule: .cascade, inverse: \Reading.device) var readings: [Reading] = []
    init(serial: String) { self.serial = serial }
  }

  @Table("reading", .strict, .withoutRowID)
  @Model final class Reading {
    @Column(.primaryKey, .encoding(.unixSeconds)) var at: Date
    @Column("device", .primaryKey) var device: Device
    var value: Double
    init(at: Date, device: Device, value: Double) {
      self.at = at
      self.device = device
      self.value = value
    }
  }
}

enum ReadingsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 3, 4)
  static var models: [any PersistentModel.Type] { [Device.self, Reading.self] }

  @Table("device", .strict, .withoutRowID)
  @Model final class Device {
    @Column(.primaryKey) var serial: String
    @Attribute(originalName: "model") var kind: String = "unknown"
    @Column(.encoding(.unixSeconds)) var seen: Date?
    @Relationship(deleteRule: .cascade, inverse: \Reading.device) var readings: [Reading] = []
    init(serial: String) { self.serial = serial }
  }

  @Table("reading", .strict, .withoutRowID)
  @Model final class Reading {
    @Column(.primaryKey, .encoding(.unixSeconds)) var at: Date
    @Column("device", .primaryKey) var device: Device
    var value: Double?
    init(at: Date, device: Device, value: Double?) {
      self.at = at
      self.device = device
      self.value = value
    }
  }
}

enum ReadingsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ReadingsV1.self, ReadingsV2.self] }
  static var versionSource: VersionSource { .table("schema_version", column: "version") }
  static var importedVersions: [ToolVersion: Schema.Version] {
    [.golangMigrate(20_240_115_093_000): Schema.Version(1, 0, 0)]
  }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: ReadingsV1.self, toVersion: ReadingsV2.self,
        willMigrate: { context in
          let device = ReadingsV1.Device(serial: "C-3")
          context.insert(
            ReadingsV1.Reading(
              at: Date(timeIntervalSince1970: 1_700_000_500), device: device, value: 1))
        },
        didMigrate: { context in
          let hot = FetchDescriptor<ReadingsV2.Reading>(
            predicate: #Predicate { $0.value ?? 0 > 100 })
          for reading in try context.fetch(hot) { reading.value = nil }
        })
    ]
  }
}

#InstarPlugin(
  NotesPlan.self, LibraryPlan.self, GamePlan.self, WordsPlan.self, ReadingsPlan.self)
