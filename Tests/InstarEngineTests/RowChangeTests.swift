import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarChange

@Suite("What a lightweight stage does to rows")
struct RowChangeTests {
  private static func note(
    _ version: Int, _ attributes: [String], unique: [[String]] = []
  ) -> Schema {
    Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: attributes.map {
            Schema.Attribute(name: $0, type: .string, isOptional: true)
          },
          uniquenessConstraints: unique)
      ], version: Schema.Version(version, 0, 0))
  }

  /// - Parameters:
  ///   - hasHistory: Whether the store records the history of its changes.
  ///   - code: A statement of the app, which no model describes.
  private func outcome(
    of new: Schema, hasHistory: Bool = false, code: String = ""
  ) throws -> (before: SchemaText, expected: ExpectedSchema) {
    let versions = try [Self.note(1, ["title", "text"]), new].map {
      PlanVersion(schema: $0, layout: try $0.layout(), name: "V\($0.version)")
    }
    let stage = SchemaStage(
      from: versions[0], to: versions[1], kind: .lightweight, columnOrder: .asAdded,
      isImplicit: false)
    let (layout, queue) = (versions[0].layout, try DatabaseQueue())
    return try queue.write { db in
      let statements = layout.createStatements + (hasHistory ? layout.historyStatements : [])
      for statement in statements + [code] { try db.execute(sql: statement) }
      try CoreDataMetadata(newStoreFor: versions[0].schema).write(db)
      let schema = try SchemaText(db)
      return (
        schema,
        try schema.after([stage], rows: StoreFormat.coredata.bookkeepingStatements(db))
      )
    }
  }

  @Test("adding a property writes no row, and updates the history of a store that has one")
  func addedProperty() throws {
    let new = Self.note(2, ["title", "text", "tone"])
    #expect(try outcome(of: new).expected.rows == .none)
    #expect(try outcome(of: new, hasHistory: true).expected.rows == .updatesHistory)
  }

  @Test("a uniqueness constraint keeps all values, and removing a property only drops its column")
  func others() throws {
    let unique = Self.note(2, ["title", "text"], unique: [["title"]])
    #expect(try outcome(of: unique).expected.rows == .keepsValues)
    #expect(try outcome(of: Self.note(2, ["title"])).expected.rows == .dropsColumn)
  }

  @Test(
    "the statements of a lightweight stage follow from the schema where no row decides about them",
    arguments: [false, true])
  func knownStatements(hasHistory: Bool) throws {
    let (before, expected) = try outcome(
      of: Self.note(2, ["title", "text", "tone"]), hasHistory: hasHistory)
    let statements = try #require(expected.statements)
    #expect(statements.count == 1)
    #expect(statements.first?.count == (hasHistory ? 2 : 1))
    let store = try EmptyStore(copying: before, rows: [])
    let after = try store.perform { session in
      for statement in statements.joined() { try session.run(statement) }
      return try SchemaText(session.database)
    }
    #expect(after.differences(from: expected.text) == [])
    #expect(before.differences(from: expected.text) != [])
  }

  @Test(
    "rows decide about values that become unique or required",
    arguments: [
      note(2, ["title", "text"], unique: [["title"]]),
      Schema(
        entities: [
          Schema.Entity(
            name: "Note",
            attributes: ["title", "text"].map { Schema.Attribute(name: $0, type: .string) })
        ], version: Schema.Version(2, 0, 0)),
    ])
  func unknownStatements(new: Schema) throws {
    #expect(try outcome(of: new).expected.statements == nil)
  }

  @Test(
    "the app's own views, triggers and table functions decide about the statements of a lightweight stage too",
    arguments: [
      "CREATE VIEW titles AS SELECT ZTITLE FROM ZNOTE",
      "CREATE TRIGGER counted AFTER INSERT ON ZNOTE BEGIN SELECT 1; END",
      "CREATE VIRTUAL TABLE words USING fts4 (text)",
      "CREATE TABLE pragma_table_info (name)", "CREATE INDEX newest ON ZNOTE (ZTITLE DESC)",
    ])
  func statementsBesideCode(code: String) throws {
    let new = Self.note(2, ["title", "text", "tone"])
    #expect(try outcome(of: new, code: code).expected.statements == nil)
  }

  @Test(
    "a condition that calls a JSON function needs a connection that trusts the schema",
    arguments: [("length(k) > 1", true), ("json_valid(k)", false), ("k ->> 'a' > 1", false)])
  func condition(check: String, isKnown: Bool) throws {
    let expected = try outcome(ofAdding: true, Schema.Column("k", .check(check)))
    #expect(expected.rows == .none)
    #expect((expected.statements != nil) == isKnown)
  }

  @Test(
    "a removed property drops its column, whatever SQL the name of the column contains",
    arguments: ["k", "x RENAME TO y", "x RENAME COLUMN y", "x ADD COLUMN y"])
  func droppedColumn(name: String) throws {
    let expected = try outcome(ofAdding: false, Schema.Column(name))
    #expect(expected.rows == .dropsColumn)
    #expect(expected.statements?.joined().contains { $0.contains("DROP COLUMN") } == true)
  }

  /// - Parameter adds: Whether the stage adds the column to the table `note`, or else drops it.
  private func outcome(ofAdding adds: Bool, _ column: Schema.Column) throws -> ExpectedSchema {
    func version(_ number: Int, hasColumn: Bool) throws -> PlanVersion {
      var attribute = Schema.Attribute(name: "k", type: .string, isOptional: true)
      attribute.column = column
      var note = Schema.Entity(
        name: "Note",
        attributes: [Schema.Attribute(name: "id", type: .int64)] + (hasColumn ? [attribute] : []))
      note.table = Schema.Table("note")
      let schema = Schema(entities: [note], version: Schema.Version(number, 0, 0))
      return PlanVersion(schema: schema, layout: try schema.layout(), name: "V\(number)")
    }
    let (old, new) = (try version(1, hasColumn: !adds), try version(2, hasColumn: adds))
    let stage = SchemaStage(
      from: old, to: new, kind: .lightweight, columnOrder: .asAdded, isImplicit: false)
    return try DatabaseQueue().write { db in
      for statement in old.layout.createStatements { try db.execute(sql: statement) }
      return try SchemaText(db).after([stage], rows: [])
    }
  }
}
