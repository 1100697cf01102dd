import Instar

/// 2.0.0: a note loses its date.
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
    var folder: Folder?
    @Relationship(inverse: \Tag.notes) var tags: [Tag] = []
    init(uid: String, title: String, content: String) {
      self.uid = uid
      self.title = title
      self.content = content
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

enum DropColumnPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
  static var stages: [MigrationStage] { [drop] }

  static let drop = MigrationStage.lightweight(
    fromVersion: NotesV1.self, toVersion: NotesV2.self)
}

#InstarPlugin(DropColumnPlan.self)
