import Foundation
import InstarSchema
import Testing

@Suite("The difference of two schemas")
struct SchemaDifferenceTests {
  private func schema(_ attributes: Schema.Attribute...) -> Schema {
    Schema(
      entities: [Schema.Entity(name: "Note", attributes: attributes)],
      version: Schema.Version(1, 0, 0))
  }

  @Test("an explicit rename goes before a property of the same name")
  func renameFirst() {
    let difference = SchemaDifference(
      from: schema(Schema.Attribute(name: "content", type: .string)),
      to: schema(
        Schema.Attribute(name: "content", type: .data, isOptional: true),
        Schema.Attribute(name: "contentOld", originalName: "content", type: .string)))
    #expect(
      difference.changes.map(\.sentence) == [
        "adds Note.content (Data?)", "renames Note.content to contentOld",
      ])
    #expect(difference.changes.allSatisfy { $0.reasonForCustomStage == nil })
  }

  @Test("an original name that is gone already means the property itself")
  func staleOriginalName() {
    let attribute = Schema.Attribute(name: "title", originalName: "name", type: .string)
    #expect(SchemaDifference(from: schema(attribute), to: schema(attribute)).changes.isEmpty)
  }

  @Test("a difference that needs code says why")
  func needsCode() {
    let difference = SchemaDifference(
      from: schema(
        Schema.Attribute(name: "size", type: .string),
        Schema.Attribute(name: "title", type: .string, isOptional: true),
        Schema.Attribute(name: "rank", type: .int16)),
      to: schema(
        Schema.Attribute(name: "size", type: .int64),
        Schema.Attribute(name: "title", type: .string),
        Schema.Attribute(name: "uid", type: .string), Schema.Attribute(name: "rank", type: .int64)))
    #expect(
      difference.changes.compactMap(\.reasonForCustomStage) == [
        "values of Note.size must be converted from String to Int",
        "Note.title becomes required, and rows without a value need one",
        "Note.uid is required, and existing rows have no value for it",
      ])
  }

  @Test("an attribute in memory only has no values to lose or to require")
  func inMemoryOnly() {
    func attribute(_ name: String, isStored: Bool) -> Schema.Attribute {
      Schema.Attribute(name: name, type: .bool, options: isStored ? [] : [.ephemeral])
    }
    let difference = SchemaDifference(
      from: schema(
        attribute("isOpen", isStored: false), attribute("isShown", isStored: true),
        attribute("isRead", isStored: false), attribute("isGone", isStored: false)),
      to: schema(
        attribute("isOpen", isStored: false), attribute("isShown", isStored: false),
        attribute("isRead", isStored: true), attribute("isNew", isStored: false)))
    #expect(
      difference.changes.map { "\($0.kind): \($0.sentence)" } == [
        "bookkeeping: removes Note.isGone, which is in memory only",
        "destructive: keeps Note.isShown in memory only, and removes the values of Note.isShown",
        "additive: stores Note.isRead, which was in memory only",
        "additive: adds Note.isNew (in memory only)",
      ])
    #expect(
      difference.changes.compactMap(\.reasonForCustomStage) == [
        "Note.isRead is required, and existing rows have no value for it"
      ])
  }

  @Test("only a column that SQLite does not fill is empty when an ordinary table gets it")
  func emptyColumns() {
    func schema(_ attributes: [Schema.Attribute] = [], isPlain: Bool = true) -> Schema {
      var note = Schema.Entity(name: "Note", attributes: attributes)
      if isPlain { note.table = Schema.Table("note") }
      if !attributes.isEmpty {
        note.relationships = [
          Schema.Relationship(name: "parent", destination: "Note", isToOneRelationship: true),
          Schema.Relationship(
            name: "owner", destination: "Note", isOptional: false, isToOneRelationship: true),
        ]
      }
      return Schema(entities: [note], version: Schema.Version(1, 0, 0))
    }
    func column(_ name: String, _ column: Schema.Column) -> Schema.Attribute {
      var attribute = Schema.Attribute(name: name, type: .int64)
      attribute.column = column
      return attribute
    }
    let attributes = [
      Schema.Attribute(name: "id", type: .int64), Schema.Attribute(name: "empty", type: .int64),
      Schema.Attribute(name: "filled", type: .int64, defaultValue: .integer(1)),
      Schema.Attribute(name: "free", type: .int64, isOptional: true),
      column("preset", Schema.Column(.default("7"))),
    ]
    for isPlain in [true, false] {
      let difference = SchemaDifference(
        from: schema(isPlain: isPlain), to: schema(attributes, isPlain: isPlain))
      let empty = difference.changes.filter(difference.addsEmptyColumn)
      #expect(empty.compactMap(\.property) == (isPlain ? ["empty", "owner"] : []))
      #expect(
        empty.last.map(difference.cureOfEmptyColumn)
          == (isPlain
            ? "add Note.owner as optional in one version, set it in didMigrate, and require it in the next version"
            : nil))
    }
  }
}
