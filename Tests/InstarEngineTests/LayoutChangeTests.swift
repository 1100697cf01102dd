import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarChange

@Suite(
  "The change of schema of stores that Apple's frameworks wrote",
  .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
struct LayoutChangeTests {
  private func model(_ name: String, in folder: TemporaryFolder) throws -> (String, CoreDataModel) {
    let path = try #require(try RealStores.copy(name, to: folder))
    let model = try StoreReader.withReadOnlyStore(path) { try CoreDataModel.read($0) }
    return (path, try #require(model))
  }

  /// The SQL of all tables, indexes and triggers of a model.
  private func statements(_ path: String) throws -> Set<String> {
    try StoreReader.withReadOnlyStore(path) { db in
      try String.fetchSet(
        db,
        sql: """
          SELECT sql FROM sqlite_schema
          WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL
            AND name NOT IN ('Z_PRIMARYKEY', 'Z_METADATA', 'Z_MODELCACHE')
            AND tbl_name NOT GLOB 'ACHANGE' AND tbl_name NOT GLOB 'ATRANSACTION*'
          """)
    }
  }

  /// Changes a store from its own model to that of another one.
  private func change(
    _ path: String, from old: Schema, to new: Schema,
    style: CoreDataSchemaChange.TableStyle = .fresh
  ) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.write { db in
      let conventions = try CoreDataConventions(of: db)
      let difference = SchemaDifference(from: old, to: new)
      let change = CoreDataSchemaChange(
        from: try CoreDataLayout(schema: old, conventions: conventions),
        to: try CoreDataLayout(schema: new, conventions: conventions), difference, style: style)
      for step in change.steps { try db.execute(sql: step.sql) }
      return change.steps.map(\.sql)
    }
  }

  @Test("SampleModel 1 → 2 ends as Apple's own migration of it ended, byte for byte")
  func sampleModel() throws {
    let folder = try TemporaryFolder()
    let (path, old) = try model("alemar11__CoreDataPlus__SampleModel_V1.sqlite", in: folder)
    let (target, new) = try model("alemar11__CoreDataPlus__SampleModel_V2.sqlite", in: folder)
    let statements = try change(path, from: old.schema, to: new.schema)
    #expect(try self.statements(path) == self.statements(target))
    #expect(statements.filter { $0.hasPrefix("INSERT INTO ZCAR") }.count == 1)
    let values = """
      SELECT 'car', Z_PK, Z_ENT, Z_OPT, ZOWNER, ZISLIMITEDEDITION, ZMARKEDFORDELETIONASOF, ZMAKER,
        ZMODEL, ZNUMBERPLATE FROM ZCAR
      UNION ALL SELECT 'person', Z_PK, Z_ENT, Z_OPT, NULL, NULL, NULL, ZFIRSTNAME, ZLASTNAME, NULL
        FROM ZPERSON ORDER BY 1, 2
      """
    func rows(_ path: String) throws -> [String] {
      try StoreReader.withReadOnlyStore(path) { db in
        try Row.fetchAll(db, sql: values).map { "\(Array($0.databaseValues))" }
      }
    }
    let originals = try TemporaryFolder()
    let (original, _) = try model("alemar11__CoreDataPlus__SampleModel_V1.sqlite", in: originals)
    #expect(try rows(path) == rows(original))
    #expect(try rows(path).count == 145)
  }

  @Test("each step of Moody's five versions ends with the tables and indexes of the real store")
  func moody() throws {
    for step in 1..<5 {
      let folder = try TemporaryFolder()
      func name(_ number: Int) -> String {
        "objcio__core-data__Moody\(number == 1 ? "" : "\(number)").moody"
      }
      let (path, old) = try model(name(step), in: folder)
      let (target, new) = try model(name(step + 1), in: folder)
      _ = try change(path, from: old.schema, to: new.schema)
      let ours = try statements(path)
      let theirs = try statements(target)
      #expect(ours == theirs, "Moody \(step) → \(step + 1)")
    }
  }

  @Test(
    "SampleModel2 1 → 2 keeps the triggers of a derived attribute, and the counts that they made")
  func derivedAttribute() throws {
    let folder = try TemporaryFolder()
    let (path, old) = try model("alemar11__CoreDataPlus__SampleModel2_V1.sqlite", in: folder)
    let (target, new) = try model("alemar11__CoreDataPlus__SampleModel2_V2.sqlite", in: folder)
    let connection = try StoreConnection(path: path, durability: .clone)
    let counts = "SELECT sum(Z_PK * ZPAGESCOUNT) FROM ZBOOK"
    try connection.perform { session in
      let before = try session.integer(counts)
      let difference = SchemaDifference(from: old.schema, to: new.schema)
      let conventions = try CoreDataConventions(of: session.database)
      let layouts = (
        try CoreDataLayout(schema: old.schema, conventions: conventions),
        try CoreDataLayout(schema: new.schema, conventions: conventions)
      )
      let triggers = try DerivedTriggers(
        of: session, from: layouts.0, to: layouts.1, difference)
      let change = CoreDataSchemaChange(from: layouts.0, to: layouts.1, difference, style: .fresh)
      for step in triggers.dropSteps + change.steps + triggers.createSteps {
        try session.run(step.sql)
      }
      #expect(try session.integer(counts) == before)
      // A plan's code may go on writing: what Core Data would be told is told to nobody.
      try session.run(
        "INSERT INTO ZPAGE (Z_PK, Z_ENT, ZBOOK) SELECT 99999, 1, min(Z_PK) FROM ZBOOK")
      #expect(try session.integer(counts) != before)
    }
    try connection.close()
    #expect(try statements(path) == statements(target))
  }

  @Test("a change of names alone is made without touching rows where order does not matter")
  func altered() throws {
    let folder = try TemporaryFolder()
    let (path, old) = try model("alemar11__CoreDataPlus__SampleModel_V1.sqlite", in: folder)
    let (_, new) = try model("alemar11__CoreDataPlus__SampleModel_V2.sqlite", in: folder)
    let statements = try change(path, from: old.schema, to: new.schema, style: .altered)
    #expect(!statements.contains { $0.hasPrefix("INSERT INTO ZCAR") })
    let structure = try StoreReader.withReadOnlyStore(path) {
      try StoreStructure.read($0, format: .coredata)
    }
    #expect(structure == (try CoreDataLayout(schema: new.schema).structure))
  }
}
