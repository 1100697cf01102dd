import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Synchronization
import Testing

@testable import InstarKeeper

/// Tables, columns and indexes that no model describes, when a clone of a plain store is verified.
@Suite("Verifying a clone of ordinary tables")
struct PlainVerificationTests {
  private static func schema(_ version: Int, _ names: [String]) -> Schema {
    var note = Schema.Entity(
      name: "Note",
      attributes: (["id"] + names).map {
        Schema.Attribute(name: $0, type: $0 == "id" ? .int64 : .string, isOptional: $0 != "id")
      })
    note.table = Schema.Table("note")
    return Schema(entities: [note], version: Schema.Version(version, 0, 0))
  }

  /// Runs SQL as the change of schema, and verifies the outcome.
  ///
  /// - Parameter trace: Gets the statements of the verification.
  private func verify(
    _ sql: String, _ policy: VerificationPolicy = .standard, _ invariants: [Invariant] = [],
    trace: @escaping @Sendable (String) -> Void = { _ in }
  ) throws {
    let schemas = [Self.schema(1, ["title", "old"]), Self.schema(2, ["title", "new"])]
    let versions = try schemas.map { schema in
      let structure = try schema.layout().structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    var plan = PlanManifest(
      name: "P", versions: versions,
      stages: [
        StageManifest(from: schemas[0].version, to: schemas[1].version, kind: .lightweight)
      ])
    plan.invariants = invariants
    let path = try MigrationPath(from: schemas[0].version, in: plan)
    try DatabaseQueue().writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, old TEXT, rank INTEGER UNIQUE, x);
          CREATE TABLE log (what TEXT);
          CREATE INDEX by_rank ON note (title, rank);
          CREATE INDEX by_old ON note (old, rank);
          CREATE INDEX by_length ON note (length(title));
          CREATE INDEX by_what ON log (what);
          """)
      let before = try SchemaBaseline(db, format: .plain)
      let census = try StoreCensus(
        db, layout: schemas[0].layout(), queries: path.queriesBefore)
      try db.execute(
        sql: """
          DROP INDEX by_old; ALTER TABLE note DROP COLUMN old; ALTER TABLE note ADD COLUMN new TEXT;
          """ + sql)
      let layout = try schemas[1].layout()
      db.trace { trace($0.description) }
      _ = try CloneVerification(path: path, layout: layout, before: before, policy: policy)
        .verify(
          db, before: { census },
          of: EarlierStore(layout: schemas[0].layout(), read: { try $0(db) }))
    }
  }

  @Test("a clone with the schema that the change leaves is accepted")
  func sound() throws {
    try verify("")
  }

  @Test("a full verification runs SQLite's check before the queries of invariants")
  func integrityFirst() throws {
    let query = "SELECT title FROM note"
    for (policy, expected) in [
      (VerificationPolicy.full, ["PRAGMA integrity_check(5)", query]), (.standard, [query]),
    ] {
      let found = Mutex<[String]>([])
      try verify("", policy, [.staysEqual(query)]) { statement in
        guard statement == query || statement.contains("integrity_check") else { return }
        found.withLock { $0.append(statement) }
      }
      #expect(found.withLock { $0 } == expected)
    }
  }

  @Test(
    "a table, column or index that the change does not remove must be kept",
    arguments: [
      ("DROP TABLE log", "table 'log' is missing"),
      ("ALTER TABLE note DROP COLUMN x", "table 'note' has '"),
      ("DROP INDEX by_rank", "index 'by_rank' is missing"),
      ("DROP INDEX by_what", "index 'by_what' is missing"),
      ("DROP INDEX by_rank; CREATE INDEX other ON note (title, rank)", "index 'other' is new"),
      (
        """
        CREATE TABLE other (id INTEGER PRIMARY KEY, title TEXT, rank INTEGER, x, new TEXT);
        DROP TABLE note; ALTER TABLE other RENAME TO note;
        CREATE INDEX by_rank ON note (title, rank);
        """, "index 'sqlite_autoindex_note_1' is missing"
      ),
    ])
  func taken(_ sql: String, _ subject: String) throws {
    let error = #expect(throws: InstarError.self) { try verify(sql) }
    #expect(error?.code == .unexpectedStructure)
    #expect(error?.cause.contains(subject) == true, "\(String(describing: error))")
  }
}
