import Instar

/// 2.0.0: the content of a note is a list of paragraphs, kept as JSON.
enum NotesSchemaV2: VersionedSchema {
  static var versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Folder.self, Note.self, Tag.self] }

  @Model
  final class Folder {
    @Attribute(.unique) var uid: String
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Note.folder) var notes: [Note] = []

    init(uid: String, name: String) {
      self.uid = uid
      self.name = name
    }
  }

  @Model
  final class Note {
    @Attribute(.unique) var uid: String
    var title: String
    @Attribute(originalName: "contentNew") var content: Data?
    var isPinned: Bool
    var createdAt: Date
    var folder: Folder?
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []

    init(uid: String, title: String, content: Data?, isPinned: Bool, createdAt: Date) {
      self.uid = uid
      self.title = title
      self.content = content
      self.isPinned = isPinned
      self.createdAt = createdAt
    }
  }

  @Model
  final class Tag {
    @Attribute(.unique) var uid: String
    var name: String
    var notes: [Note] = []

    init(uid: String, name: String) {
      self.uid = uid
      self.name = name
    }
  }
}
