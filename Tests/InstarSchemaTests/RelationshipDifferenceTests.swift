import InstarSchema
import Testing

@Suite("The difference of relationships")
struct RelationshipDifferenceTests {
  private func schema(_ relationship: Schema.Relationship?, inverse: Schema.Relationship? = nil)
    -> Schema
  {
    Schema(
      entities: [
        Schema.Entity(name: "Note", relationships: relationship.map { [$0] } ?? []),
        Schema.Entity(name: "Folder", relationships: inverse.map { [$0] } ?? []),
        Schema.Entity(name: "Tag"),
      ], version: Schema.Version(1, 0, 0))
  }

  private func one(
    _ name: String = "folder", _ destination: String = "Folder", isOptional: Bool = true,
    originalName: String? = nil, deleteRule: Schema.Relationship.DeleteRule = .nullify
  ) -> Schema.Relationship {
    Schema.Relationship(
      name: name, originalName: originalName, destination: destination, deleteRule: deleteRule,
      maximumModelCount: 1, isOptional: isOptional, isToOneRelationship: true)
  }

  private func many(_ destination: String = "Folder") -> Schema.Relationship {
    Schema.Relationship(name: "folder", destination: destination, isToOneRelationship: false)
  }

  private func changes(_ old: Schema.Relationship?, _ new: Schema.Relationship?) -> [String] {
    SchemaDifference(from: schema(old), to: schema(new)).changes.map {
      $0.sentence + ($0.reasonForCustomStage.map { ": \($0)" } ?? "")
    }
  }

  @Test("each change is one sentence, with the reason where it needs code")
  func sentences() {
    #expect(changes(nil, one()) == ["adds relationship Note.folder to one Folder"])
    #expect(changes(one(), nil) == ["removes relationship Note.folder with its links"])
    #expect(
      changes(one(), one("place", originalName: "folder")) == [
        "renames relationship Note.folder to place"
      ])
    #expect(
      changes(one(), one("folder", "Tag")) == [
        "changes the destination of Note.folder from Folder to Tag: "
          + "links of Note.folder must be set again"
      ])
    #expect(changes(one(), many()) == ["makes Note.folder a to-many relationship"])
    #expect(
      changes(many(), one()) == [
        "makes Note.folder a to-one relationship: links of Note.folder must be set again"
      ])
    #expect(
      changes(one(), one(isOptional: false)) == [
        "makes Note.folder required: Note.folder becomes required, and rows without a value need one"
      ])
    #expect(
      changes(one(), one(deleteRule: .cascade)) == [
        "changes the delete rule of Note.folder from nullify to cascade"
      ])
  }

  @Test("a relationship that becomes to-many needs its links set again in a plain store")
  func plain() {
    let difference = SchemaDifference(from: schema(one()), to: schema(many()))
    #expect(difference.linksToMoveBetweenTables == ["links of Note.folder must be set again"])
  }
}
