import Instar

/// Brings a note's content from text (1.0.0) to paragraphs (2.0.0).
///
/// A property cannot change its type and keep its values in one step, so it takes two: 1.1.0 puts
/// the new property beside the old one, and the stage to 2.0.0 fills it while both are there. Then
/// the old one goes and the new one takes its name.
enum NotesMigrationPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    [NotesSchemaV1.self, NotesSchemaV1_1.self, NotesSchemaV2.self]
  }

  static var stages: [MigrationStage] { [addParagraphs, convertToParagraphs] }

  static let addParagraphs = MigrationStage.lightweight(
    fromVersion: NotesSchemaV1.self, toVersion: NotesSchemaV1_1.self)

  static let convertToParagraphs = MigrationStage.custom(
    fromVersion: NotesSchemaV1_1.self, toVersion: NotesSchemaV2.self,
    willMigrate: { context in
      try context.enumerate(FetchDescriptor<NotesSchemaV1_1.Note>()) { note in
        note.contentNew = try Paragraph.encoded(from: note.contentOld)
      }
      try context.save()
    },
    didMigrate: nil)
}

#InstarPlugin(NotesMigrationPlan.self)
