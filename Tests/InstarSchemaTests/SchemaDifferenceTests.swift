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
}
