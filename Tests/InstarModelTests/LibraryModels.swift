import Instar

/// The models most tests of this target use: a unique text, every kind of value, one-to-many, many-to-many.
enum Library: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Folder.self, Note.self, Tag.self] }

  @Model
  final class Folder {
    @Attribute(.unique) var uid: String
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Note.folder) var notes: [Note] = []

    init(uid: String, name: String = "") {
      self.uid = uid
      self.name = name
    }
  }

  @Model
  final class Note {
    @Attribute(.unique) var uid: String
    var title: String
    var count: Int = 3
    var score: Double?
    var createdAt: Date = Date(timeIntervalSinceReferenceDate: 100)
    var key: UUID = UUID()
    var payload: Data?
    var isPinned: Bool = false
    var link: URL?
    var price: Decimal?
    var folder: Folder?
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    @Transient var isOpen = false
    var shout: String { title.uppercased() }

    init(uid: String, title: String = "") {
      self.uid = uid
      self.title = title
    }
  }

  @Model
  final class Tag {
    var name: String
    var notes: [Note] = []

    init(name: String) { self.name = name }
  }

  /// A container over a store in memory.
  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: Library.self),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}
