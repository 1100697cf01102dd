import InstarSchema
import Testing

@Suite("Original names that the version before does not have")
struct OriginalNameTests {
  private func schema(
    _ major: Int, _ attributes: [Schema.Attribute], entity: String = "Note",
    was originalEntity: String? = nil, _ relationships: [Schema.Relationship] = []
  ) -> Schema {
    Schema(
      entities: [
        Schema.Entity(
          name: entity, originalName: originalEntity, attributes: attributes,
          relationships: relationships)
      ], version: Schema.Version(major, 0, 0))
  }

  private func text(_ name: String, was originalName: String? = nil) -> Schema.Attribute {
    Schema.Attribute(name: name, originalName: originalName, type: .string, isOptional: true)
  }

  private func unknown(_ old: Schema, _ new: Schema) -> [String] {
    SchemaDifference(from: old, to: new).unknownOriginalNames.map {
      "\($0.sentence): \($0.correction)"
    }
  }

  @Test("unknown original names of a property are found, with the nearest name")
  func property() {
    let old = schema(1, [text("content")])
    #expect(
      unknown(old, schema(2, [text("body", was: "nope")])) == [
        "originalName 'nope' of Note.body in 2.0.0 names no property of 1.0.0: "
          + "write its name in 1.0.0; if it is new, remove originalName"
      ])
    #expect(
      unknown(old, schema(2, [text("body", was: "contnet")])) == [
        "originalName 'contnet' of Note.body in 2.0.0 names no property of 1.0.0: "
          + "write originalName: \"content\""
      ])
    #expect(unknown(old, schema(2, [text("body", was: "content")])) == [])
    #expect(unknown(old, schema(2, [text("body")])) == [])
    let link = Schema.Relationship(
      name: "parent", originalName: "nope", destination: "Note", isToOneRelationship: true)
    #expect(unknown(old, schema(2, [text("content")], [link])).count == 1)
  }

  @Test(
    "unknown original names of an entity are found, and those of the properties of a new entity are not"
  )
  func entity() {
    let old = schema(1, [text("content")])
    let renamed = schema(2, [text("body", was: "nope")], entity: "Memo", was: "Nota")
    #expect(
      unknown(old, renamed) == [
        "originalName 'Nota' of Memo in 2.0.0 names no entity of 1.0.0: write originalName: \"Note\""
      ])
    #expect(unknown(old, schema(2, [text("content")], entity: "Memo", was: "Note")) == [])
  }

  @Test("an original name may be of an earlier version, where the new name exists already")
  func chains() {
    let (first, second) = (schema(1, [text("a")]), schema(2, [text("b", was: "a")]))
    #expect(unknown(first, second) == [])
    #expect(unknown(second, schema(3, [text("b", was: "a")])) == [])
    #expect(
      unknown(second, schema(3, [text("c", was: "a")])) == [
        "originalName 'a' of Note.c in 3.0.0 names no property of 2.0.0: write originalName: \"b\""
      ])
  }

  @Test("unknown original names of a composite are found once, and a known one may have new fields")
  func composite() {
    let old = schema(1, [text("place.street")])
    func address(_ originalName: String) -> Schema {
      schema(
        2,
        ["street", "city"].map { text("address.\($0)", was: "\(originalName).\($0)") })
    }
    #expect(unknown(old, address("place")) == [])
    #expect(
      unknown(old, address("plaec")) == [
        "originalName 'plaec' of Note.address in 2.0.0 names no property of 1.0.0: "
          + "write originalName: \"place\""
      ])
  }
}
