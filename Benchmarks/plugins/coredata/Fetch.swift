import Instar

enum FetchPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [NotesV1.self, NotesV2.self] }
  static var stages: [MigrationStage] { [fill] }

  static let fill = MigrationStage.custom(
    fromVersion: NotesV1.self, toVersion: NotesV2.self, willMigrate: nil,
    didMigrate: { context in
      for note in try context.fetch(FetchDescriptor<NotesV2.Note>()) {
        note.content2 = reversedWords(note.content)
      }
    })
}

#InstarPlugin(FetchPlan.self)
