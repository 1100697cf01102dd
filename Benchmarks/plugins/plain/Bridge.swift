import Instar

/// 2.0.0: a note has its content with the words in reverse, under another name.
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
    var created: Double
    @Attribute(originalName: "content") var content2: String
    var folder: Folder?
    @Column(.junction("note_tag", own: "note_id", other: "tag_id"))
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(id: Int, uid: String, title: String, content2: String, created: Double) {
      self.id = id
      self.uid = uid
      self.title = title
      self.content2 = content2
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

enum BridgePlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
  static var stages: [MigrationStage] { [reverse] }

  static let reverse = MigrationStage.bridge(
    fromVersion: NotesV1.self, toVersion: NotesV2.self, label: "ReverseWords"
  ) { old, new in
    try new.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
      guard let before = try old.counterpart(of: note, as: NotesV1.Note.self) else { return }
      note.content2 = reversedWords(before.content)
    }
  }
}

#InstarPlugin(BridgePlan.self)
