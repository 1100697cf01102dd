import Instar

/// 2.0.0: a note has its content twice, the second time with its words in reverse.
enum NotesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Folder.self, Note.self, Tag.self] }

  @Table("folder")
  @Model final class Folder {
    var id: Int
    var name: String
    @Relationship(inverse: \Note.folder) var notes: [Note] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("note")
  @Model final class Note {
    var id: Int
    @Attribute(.unique) var uid: String
    var title: String
    var content: String
    var created: Double
    var content2: String?
    var folder: Folder?
    @Column(.junction("note_tag", own: "note_id", other: "tag_id"))
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(id: Int, uid: String, title: String, content: String, created: Double) {
      self.id = id
      self.uid = uid
      self.title = title
      self.content = content
      self.created = created
    }
  }

  @Table("tag")
  @Model final class Tag {
    var id: Int
    @Attribute(.unique) var name: String
    var notes: [Note] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}
