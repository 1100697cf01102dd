import GRDB
import InstarSchema
import InstarStore
import Testing

@testable import InstarChange

@Suite("The change of schema of a relationship that is its own inverse")
struct OwnInverseChangeTests {
  private func schema(_ version: Int, with others: [String] = []) -> Schema {
    let person = Schema.Entity(
      name: "Person", attributes: [Schema.Attribute(name: "name", type: .string)],
      relationships: [
        Schema.Relationship(
          name: "friends", destination: "Person", inverseName: "friends",
          isToOneRelationship: false)
      ])
    return Schema(
      entities: [person] + others.map { Schema.Entity(name: $0) },
      version: Schema.Version(version, 0, 0))
  }

  @Test(
    "a change to a relationship that is its own inverse leaves both directions of each link, as a fresh store has them",
    arguments: [CoreDataSchemaChange.TableStyle.altered, .fresh])
  func renumbered(_ style: CoreDataSchemaChange.TableStyle) throws {
    // "Animal" sorts first: Person has another number, which the table and its column are named after.
    let (old, new) = (schema(1), schema(2, with: ["Animal"]))
    let layouts = (try CoreDataLayout(schema: old), try CoreDataLayout(schema: new))
    try DatabaseQueue().write { db in
      for statement in layouts.0.createStatements { try db.execute(sql: statement) }
      try db.execute(sql: "INSERT INTO Z_1FRIENDS VALUES (1, 2), (2, 1), (1, 3), (3, 1)")
      let change = CoreDataSchemaChange(
        from: layouts.0, to: layouts.1, SchemaDifference(from: old, to: new), style: style)
      for step in change.steps { try db.execute(sql: step.sql) }
      #expect(try StoreStructure.read(db, format: .coredata) == layouts.1.structure)
      let links = try String.fetchAll(
        db, sql: "SELECT Z_2FRIENDS || '-' || REFLEXIVE FROM Z_2FRIENDS ORDER BY 1")
      #expect(links == ["1-2", "1-3", "2-1", "3-1"])
      let indexes = try String.fetchAll(
        db,
        sql:
          "SELECT sql FROM sqlite_schema WHERE tbl_name = 'Z_2FRIENDS' AND sql LIKE 'CREATE INDEX%'"
      )
      #expect(
        indexes
          == layouts.1.indexes.filter { $0.table == "Z_2FRIENDS" }.map(\.createStatement))
    }
  }
}
