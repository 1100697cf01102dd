import Foundation
import InstarSchema
import Testing

@Suite("Schema values")
struct SchemaTests {
  @Test("versions are compared number by number")
  func versionOrder() {
    #expect(Schema.Version(1, 2, 0) < Schema.Version(1, 10, 0))
    #expect(Schema.Version(1, 2, 3).description == "1.2.3")
    #expect(Schema.Version("1.2.3") == Schema.Version(1, 2, 3))
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3", "1..3", "+1.2.3", "٣.1.2"] {
      #expect(Schema.Version(text) == nil)
    }
  }

  @Test("a schema is the same after its way through JSON")
  func schemaThroughJSON() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: [
            Schema.Attribute(
              name: "uid", type: .string, options: [.unique], defaultValue: .text("x"))
          ],
          relationships: [
            Schema.Relationship(name: "folder", destination: "Folder", isToOneRelationship: true)
          ], uniquenessConstraints: [["uid"]]),
        Schema.Entity(name: "Folder"),
      ], version: Schema.Version(1, 1, 0))
    let data = try JSONEncoder().encode(schema)
    #expect(try JSONDecoder().decode(Schema.self, from: data) == schema)
    #expect(schema.entities.map(\.name) == ["Folder", "Note"])
  }
}
