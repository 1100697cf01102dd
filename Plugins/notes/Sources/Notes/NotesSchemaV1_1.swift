import Instar

/// 1.1.0: the new content stands beside the old one, empty. Only `Note` differs from 1.0.0; a
/// schema names every model all the same.
enum NotesSchemaV1_1: VersionedSchema {
  static var versionIdentifier = Schema.Version(1, 1, 0)
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
    @Attribute(originalName: "content") var contentOld: String
    var contentNew: Data?
    var isPinned: Bool
    var createdAt: Date
    var folder: Folder?
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []

    init(uid: String, title: String, contentOld: String, isPinned: Bool, createdAt: Date) {
      self.uid = uid
      self.title = title
      self.contentOld = contentOld
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
