import Instar

/// 3.0.0: a note keeps the second content only.
enum NotesV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
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
    var content2: String?
    var folder: Folder?
    @Column(.junction("note_tag", own: "note_id", other: "tag_id"))
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(id: Int, uid: String, title: String, created: Double) {
      self.id = id
      self.uid = uid
      self.title = title
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

enum ObjectsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self, NotesV3.self] }
  static var stages: [MigrationStage] { [fill, drop] }

  static let fill = MigrationStage.custom(
    fromVersion: NotesV1.self, toVersion: NotesV2.self, willMigrate: nil,
    didMigrate: { context in
      try context.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
        note.content2 = reversedWords(note.content)
      }
    })

  static let drop = MigrationStage.lightweight(
    fromVersion: NotesV2.self, toVersion: NotesV3.self)
}

#InstarPlugin(ObjectsPlan.self)
