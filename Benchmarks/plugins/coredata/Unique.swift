import Instar

/// 2.0.0: no two notes have the same title.
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
    @Attribute(.unique) var title: String
    var created: Double
    var content: String
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

enum UniquePlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
  static var stages: [MigrationStage] { [removeDuplicates] }

  /// The first note of each title stays.
  static let removeDuplicates = MigrationStage.custom(
    fromVersion: NotesV1.self, toVersion: NotesV2.self,
    willMigrate: { context in
      try context.enumerateDuplicates(of: \NotesV1.Note.title) { _, duplicate in
        context.delete(duplicate)
      }
    }, didMigrate: nil
  )
  .labeled("RemoveDuplicates")
}

#InstarPlugin(UniquePlan.self)
