import Instar

/// 2.0.0: a note has its content twice, the second time with its words in reverse.
enum NotesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Folder.self, Note.self, Tag.self] }

  @Model final class Folder {
    var name: String
    @Relationship(inverse: \Note.folder) var notes: [Note] = []
    init(name: String) {
      self.name = name
    }
  }

  @Model final class Note {
    @Attribute(.unique) var uid: String
    var title: String
    var content: String
    var created: Double
    var content2: String?
    var folder: Folder?
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(uid: String, title: String, content: String, created: Double) {
      self.uid = uid
      self.title = title
      self.content = content
      self.created = created
    }
  }

  @Model final class Tag {
    @Attribute(.unique) var name: String
    var notes: [Note] = []
    init(name: String) {
      self.name = name
    }
  }
}
