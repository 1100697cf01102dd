import InstarSchema
import InstarSource
import Testing

@Suite("a comparison of schemas")
struct SchemaComparisonTests {
  private func schema(
    _ version: Int, _ attributes: [Schema.Attribute], unique: [[String]] = []
  ) -> Schema {
    Schema(
      entities: [
        Schema.Entity(name: "Note", attributes: attributes, uniquenessConstraints: unique)
      ], version: Schema.Version(version, 0, 0))
  }

  private func compare(_ old: Schema, _ new: Schema) -> SchemaComparison {
    SchemaComparison(
      from: .init(old, typeName: "NotesV1"), to: .init(new, typeName: "NotesV2"))
  }

  @Test("a change that the engine derives needs a lightweight stage")
  func lightweight() {
    let comparison = compare(
      schema(1, [Schema.Attribute(name: "text", type: .string)]),
      schema(
        2,
        [
          Schema.Attribute(name: "content", originalName: "text", type: .string),
          Schema.Attribute(name: "pinned", type: .bool, defaultValue: .integer(0)),
        ]))
    #expect(comparison.stage == .lightweight)
    #expect(
      comparison.changes.map(\.sentence) == [
        "renames Note.text to content", "adds Note.pinned (Bool)",
      ])
    #expect(
      comparison.stageSource == ".lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self)")
  }

  @Test("a custom stage has loops with placeholders to fill")
  func custom() {
    let comparison = compare(
      schema(1, [Schema.Attribute(name: "uid", type: .string, isOptional: true)]),
      schema(
        2,
        [
          Schema.Attribute(name: "uid", type: .string),
          Schema.Attribute(name: "words", type: .int64),
        ]))
    #expect(comparison.stage == .custom)
    #expect(
      comparison.stageSource == """
        .custom(
          fromVersion: NotesV1.self, toVersion: NotesV2.self,
          willMigrate: { context in
            // Note.uid becomes required, and rows without a value need one
            try context.enumerate(FetchDescriptor<NotesV1.Note>()) { note in
              if note.uid == nil {
                note.uid = <#String#>
              }
            }
          },
          didMigrate: { context in
            // Note.words is new and required, and existing rows have no value for it
            try context.enumerate(FetchDescriptor<NotesV2.Note>()) { note in
              note.words = <#Int#>
            }
          })
        """)
  }

  @Test(
    "a required property that an ordinary table gets as a column is not set in a loop, which would run too late"
  )
  func newColumn() {
    func schema(_ version: Int, _ attributes: Schema.Attribute...) -> Schema {
      var note = Schema.Entity(
        name: "Note", attributes: [Schema.Attribute(name: "id", type: .int64)] + attributes)
      note.table = Schema.Table("note")
      return Schema(entities: [note], version: Schema.Version(version, 0, 0))
    }
    let words = Schema.Attribute(name: "words", type: .int64)
    let comment =
      "// Before you use this stage: give Note.words an initial value, which didMigrate can replace; or set it in a "
      + "Transform of a transform stage; or add Note.words as optional in one version, set it in didMigrate, and "
      + "require it in the next version."
    let added = compare(schema(1), schema(2, words))
    #expect(added.stage == .lightweight)
    #expect(
      added.stageSource
        == "\(comment)\n.lightweight(fromVersion: NotesV1.self, toVersion: NotesV2.self)")

    let both = compare(
      schema(1, Schema.Attribute(name: "uid", type: .string, isOptional: true)),
      schema(2, Schema.Attribute(name: "uid", type: .string), words))
    #expect(both.stage == .custom)
    #expect(both.stageSource.hasPrefix("\(comment)\n.custom("), "\(both.stageSource)")
    #expect(both.stageSource.contains("note.uid = <#String#>"), "\(both.stageSource)")
    #expect(!both.stageSource.contains("note.words"), "\(both.stageSource)")
  }

  @Test("a computed default is not a change, whatever value it had when it was asked for")
  func computedDefaults() {
    func side(_ byte: UInt8, computed: Set<String>?) -> SchemaComparison.Side {
      let uid = Schema.Attribute(
        name: "uid", type: .uuid, defaultValue: .blob(Array(repeating: byte, count: 16)))
      return .init(schema(1, [uid]), typeName: "NotesV1", computedDefaults: computed)
    }
    let document = side(0, computed: ["Note.uid"])
    #expect(SchemaComparison(from: document, to: side(7, computed: ["Note.uid"])).notes == [])
    #expect(SchemaComparison(from: side(7, computed: nil), to: document).notes == [])
    #expect(
      SchemaComparison(from: document, to: side(1, computed: [])).notes == [
        "the default of Note.uid changes from a value computed for each row to "
          + "01010101-0101-0101-0101-010101010101: existing rows keep their values"
      ])
  }

  @Test(
    "a removed property whose entity gets one of the same type may be renamed, and a note says what to write"
  )
  func possibleRename() {
    let title = Schema.Attribute(name: "title", type: .string)
    let titel = Schema.Attribute(name: "titel", type: .string, isOptional: true)
    let hint =
      "if Note.titel is title under a new name, write @Attribute(originalName: \"title\") before titel"
    #expect(compare(schema(1, [title]), schema(2, [titel])).notes == [hint])
    let renamed = Schema.Attribute(name: "titel", originalName: "title", type: .string)
    #expect(compare(schema(1, [title]), schema(2, [renamed])).notes == [])
    let number = Schema.Attribute(name: "titel", type: .int64, isOptional: true)
    #expect(compare(schema(1, [title]), schema(2, [number])).notes == [])
    let heading = Schema.Attribute(name: "heading", type: .string, isOptional: true)
    #expect(compare(schema(1, [title]), schema(2, [titel, heading])).notes == [])
  }

  @Test("a change that leaves stores as they are is a note")
  func notes() {
    let comparison = compare(
      schema(1, [Schema.Attribute(name: "pages", type: .int16)]),
      schema(
        2,
        [
          Schema.Attribute(
            name: "pages", type: .int64, options: [.spotlight], defaultValue: .integer(1))
        ]))
    #expect(comparison.changes.isEmpty)
    #expect(
      comparison.notes == [
        "the default of Note.pages changes from none to 1: existing rows keep their values",
        "Note.pages changes from Int16 to Int, which is stored the same way",
        "Note.pages gets the option .spotlight",
      ])
  }

  @Test("a schema that was read from tables takes from the other what tables cannot show")
  func alignment() {
    let tables = Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: [
            Schema.Attribute(name: "ispinned", type: .int64, isOptional: true),
            Schema.Attribute(name: "extra", type: .string, isOptional: true),
          ])
      ], version: Schema.Version(1, 0, 0))
    let models = schema(1, [Schema.Attribute(name: "isPinned", type: .bool)])
    let comparison = compare(tables.aligned(to: models), models)
    #expect(comparison.changes.map(\.sentence) == ["removes Note.extra with its values"])
  }
}
