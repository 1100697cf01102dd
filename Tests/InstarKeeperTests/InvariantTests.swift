import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("An invariant of a plan")
struct InvariantTests {
  /// A change of the notes, and the invariant that it violates.
  struct Violation: Sendable, CustomTestStringConvertible {
    var invariant: Invariant
    var sql: String
    var cause: String
    var keys: [String]

    var testDescription: String { invariant.name }
  }

  private static let violations = [
    Violation(
      invariant: .rowsKept(of: "Note"), sql: "DELETE FROM ZNOTE WHERE Z_PK IN (3, 5)",
      cause: "Note had 10 rows and has 8: missing are rows 3, 5", keys: ["3", "5"]),
    Violation(
      invariant: .rowsKept, sql: "DELETE FROM ZNOTE WHERE Z_PK > 3",
      cause: "Note had 10 rows and has 3: missing are rows 4, 5, 6, 7, 8 and 2 others",
      keys: ["4", "5", "6", "7", "8"]),
    Violation(
      invariant: .relationshipsKept(of: "Note.folder", named: "notes stay in their folders"),
      sql: "UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK = 4",
      cause: "Note.folder had 10 links and has 9; row 4 of Note has lost its link", keys: ["4"]),
    Violation(
      invariant: .relationshipsKept, sql: "UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK = 4",
      cause: "Folder.notes had 10 links and has 9; row 4 of Note has lost its link", keys: ["4"]),
    Violation(
      invariant: .relationshipsKept(of: "Folder.notes"),
      sql: "UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK IN (4, 6)",
      cause: "Folder.notes had 10 links and has 8; rows 4, 6 of Note have lost their links",
      keys: ["4", "6"]),
    Violation(
      invariant: .returnsNothing("SELECT Z_PK FROM ZNOTE WHERE ZTITLE = ''"),
      sql: "UPDATE ZNOTE SET ZTITLE = '' WHERE Z_PK > 8", cause: "the query returns rows 9, 10",
      keys: ["9", "10"]),
    Violation(
      invariant: .staysEqual("SELECT count(*) FROM ZNOTE"), sql: "DELETE FROM ZNOTE WHERE Z_PK = 1",
      cause: "the query returned 10 before the run and 9 after it", keys: []),
    Violation(
      invariant: .staysEqual("SELECT Z_PK, ZTITLE FROM ZNOTE ORDER BY Z_PK"),
      sql: "DELETE FROM ZNOTE WHERE Z_PK = 7",
      cause: "the query returned 10 rows before the run and 9 rows after it; "
        + "missing: row (7, 'note 7')", keys: ["(7, 'note 7')"]),
    Violation(
      invariant: .staysEqual("SELECT ZTITLE FROM ZNOTE ORDER BY Z_PK"),
      sql:
        "UPDATE ZNOTE SET ZTITLE = CASE Z_PK WHEN 1 THEN 'note 2' WHEN 2 THEN 'note 1' ELSE ZTITLE END",
      cause: "the query returned 10 rows before the run and other values after it, "
        + "in another order or with repeated rows", keys: []),
    Violation(
      invariant: .staysEqual(
        "SELECT Z_PK, 'it''s ' || ZTITLE, X'00FF' FROM ZNOTE WHERE Z_PK < 3"),
      sql: "DELETE FROM ZNOTE WHERE Z_PK = 2",
      cause: "the query returned 2 rows before the run and 1 row after it; "
        + "missing: row (2, 'it''s note 2', X'00ff')", keys: ["(2, 'it''s note 2', X'00ff')"]),
    Violation(
      invariant: .staysEqual(
        "SELECT Z_PK, 'a text of which an error shows the beginning alone: ' || ZTITLE FROM ZNOTE"),
      sql: "UPDATE ZNOTE SET ZTITLE = 'other' WHERE Z_PK = 2",
      cause: "the query returned 10 rows before the run and other values after it; "
        + "missing: row (2, 'a text of which an error shows the begin…'); "
        + "new: row (2, 'a text of which an error shows the begin…')",
      keys: ["(2, 'a text of which an error shows the begin…')"]),
    Violation(
      invariant: .staysEqual(
        "\(endless) SELECT x, (SELECT count(*) FROM ZNOTE) FROM n LIMIT 100001"),
      sql: "DELETE FROM ZNOTE WHERE Z_PK = 1",
      cause: "the query returned 100001 rows before the run and other values after it; "
        + "they are too many to find those that differ", keys: []),
  ]

  private func host(_ invariants: [Invariant], sql: String = "SELECT 1") -> SQLHost {
    SQLHost(
      kind: .custom, sql: "\(KeeperFixture.addPinned); \(sql)", invariants: invariants)
  }

  @Test(
    "an invariant that a stage violates ends the run with the rows, and the store is untouched",
    arguments: violations, [false, true])
  func violated(_ violation: Violation, rehearses: Bool) throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    var request = fixture.request()
    request.rehearses = rehearses
    let (report, conversation) = try fixture.migrate(
      host([violation.invariant], sql: violation.sql), request: request)
    let error = try #require(report.error)
    #expect(report.result == .failed)
    #expect(error.code == .invariantViolated)
    #expect(
      error.cause
        == "invariant '\(violation.invariant.name)' of plan NotesPlan is violated: \(violation.cause)"
    )
    #expect(error.rows?.keys ?? [] == violation.keys)
    #expect(error.state == "unchanged")
    #expect(report.invariants == nil)
    #expect(conversation.asked.map(\.phase) == [.cloning])
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar ?? [] == before.instar ?? [])
  }

  @Test("an invariant that holds is in the report, whatever else the stage changes")
  func holds() throws {
    let fixture = try KeeperFixture()
    let invariants = Self.violations.map(\.invariant)
    let (report, _) = try fixture.migrate(
      host(invariants, sql: "UPDATE ZNOTE SET ZPINNED = 1"))
    #expect(report.result == .migrated, "\(report.error.map(String.init(describing:)) ?? "")")
    #expect(report.invariants == invariants.map(\.name))
    let without = try KeeperFixture().migrate().report
    #expect(without.result == .migrated)
    #expect(without.invariants == nil)
  }

  @Test("an invariant finds its rows in a store whose own file would become the backup")
  func departingStore() throws {
    let fixture = try KeeperFixture()
    let request = fixture.request(cutover: .exchange)
    let (report, _) = try fixture.migrate(
      host([.rowsKept], sql: "DELETE FROM ZNOTE WHERE Z_PK = 2"), request: request)
    #expect(report.error?.rows == AffectedRows(count: 1, keys: ["2"]))
  }

  /// SQLite says of the statement that it writes nothing. But it runs ANALYZE, which makes a table.
  private static let analyzing =
    "SELECT Z_PK FROM ZNOTE WHERE ZFOLDER = 7 UNION ALL SELECT 1 FROM pragma_optimize"

  @Test(
    "an invariant whose query would write fails, also in a store whose own file would become the backup",
    arguments: [CutoverPolicy.exchange, .writeBack], ["delete", "wal"])
  func writingQuery(cutover: CutoverPolicy, journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let before = fixture.state()
    var request = fixture.request()
    request.cutover = cutover
    let (report, _) = try fixture.migrate(host([.staysEqual(Self.analyzing)]), request: request)
    #expect(report.error?.code == .invalidPlan)
    #expect(
      report.error?.cause.contains("attempt to write a readonly database") == true,
      "\(report.error?.cause ?? "")")
    #expect(report.error?.state == "unchanged")
    #expect(fixture.state().bytes == before.bytes)
  }

  @Test("an invariant leaves the connection as it was, whether or not its query fails")
  func restoredConnection() throws {
    let fixture = try KeeperFixture()
    try GuardedConnection.use(fixture.store, access: .readWrite) { db in
      for query in ["SELECT 1", "SELECT", "SELECT hex(zeroblob(60000000))", Self.analyzing] {
        _ = try? PlanQuery(query).answer(db)
      }
      let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"
      #expect(try Int.fetchOne(db, sql: tables) == 0)
      // Longer than a query may make it.
      #expect(try Int.fetchOne(db, sql: "SELECT length(zeroblob(70000000))") == 70_000_000)
      _ = try Row.fetchAll(db, sql: Self.analyzing)
      #expect(try Int.fetchOne(db, sql: tables) == 1)
    }
  }

  @Test("the answer of a plan has the invariants")
  func planned() throws {
    let fixture = try KeeperFixture()
    let conversation = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: conversation, host: host([.rowsKept])).serve()
    #expect(conversation.plans.first?.invariants == [.rowsKept])
  }

  @Test(
    "an invariant whose query cannot be run is refused before anything is made",
    arguments: [
      ("SELECT ZTITEL FROM ZNOTE", "does not compile: no such column: ZTITEL"),
      ("SELECT Z_PK FROM ZNOTE WHERE \"ZTITEL\" = ''", "does not compile: no such column"),
      ("SELECT Z_PK FROM NOTE", "does not compile: no such table: NOTE"),
      ("SELECT plugin_function(Z_PK) FROM ZNOTE", "does not compile: no such function"),
      ("SELECT", "does not compile"),
      ("", "not one SELECT statement"),
      ("SELECT Z_PK FROM ZNOTE WHERE ZTITLE = ?", "not one SELECT statement"),
      ("SELECT 1; SELECT 2", "not one SELECT statement"),
      ("DELETE FROM ZNOTE", "not one SELECT statement"),
      ("DELETE FROM ZNOTE RETURNING Z_PK", "not one SELECT statement"),
      ("WITH n AS (SELECT 1) DELETE FROM ZNOTE", "not one SELECT statement"),
      ("PRAGMA journal_mode", "not one SELECT statement"),
      ("ATTACH '/etc/passwd' AS other", "not one SELECT statement"),
      ("VACUUM INTO '/tmp/copy'", "not one SELECT statement"),
      ("EXPLAIN SELECT 1", "not one SELECT statement"),
      ("BEGIN", "not one SELECT statement"),
    ])
  func refusedQuery(query: String, cause: String) throws {
    let fixture = try KeeperFixture()
    let invariants = [Invariant.returnsNothing(query, named: "a query")]
    let before = fixture.state()
    let (report, conversation) = try fixture.migrate(host(invariants))
    #expect(report.result == .refused)
    #expect(report.error?.code == .invalidPlan)
    #expect(report.error?.cause.contains(cause) == true, "\(report.error?.cause ?? "")")
    #expect(report.error?.cause.contains("'a query'") == true, "\(report.error?.cause ?? "")")
    #expect(conversation.asked.isEmpty)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
  }

  @Test("an invariant may have a comment, a semicolon at its end, and WITH or VALUES")
  func acceptedQuery() throws {
    for query in [
      "-- every note\n SELECT Z_PK FROM ZNOTE ; ", "WITH n AS (SELECT 1) SELECT * FROM n",
      "VALUES (1), (2)", "select Z_PK from ZNOTE /* all */",
    ] {
      let (report, _) = try KeeperFixture().migrate(host([.staysEqual(query)]))
      #expect(report.result == .migrated, "\(query): \(report.error?.cause ?? "")")
    }
  }

  @Test(
    "an invariant names an entity or a relationship of the last version, else the plan is refused")
  func unknownNames() throws {
    for (invariant, next) in [
      (Invariant.rowsKept(of: "Nota"), "write \"Note\""),
      (.relationshipsKept(of: "Note.foldr"), "write \"Note.folder\""),
    ] {
      let (report, _) = try KeeperFixture().migrate(host([invariant]))
      #expect(report.error?.code == .invalidPlan)
      #expect(report.error?.next == next)
    }
  }

  private static let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"

  @Test(
    "an invariant whose query does not end is stopped by its limit of processor time",
    arguments: ["\(endless) SELECT max(x) FROM n", "\(endless) SELECT x FROM n"])
  func endlessQuery(query: String) throws {
    let fixture = try KeeperFixture()
    let error = #expect(throws: InstarError.self) {
      try GuardedConnection.use(fixture.store, access: .readOnly) {
        _ = try PlanQuery(query, of: "no end").answer($0, processorSeconds: 0.05)
      }
    }
    #expect(error?.code == .timeLimit)
    #expect(error?.cause.hasPrefix("invariant 'no end': ") == true)
    #expect(error?.cause.contains(query) == true)
  }

  @Test("an invariant whose query takes too long to compile is stopped")
  func slowToCompile() throws {
    let doublings = (1...16).map { "c\($0) AS (SELECT 1 FROM c\($0 - 1) AS a, c\($0 - 1) AS b)" }
    let tables = (["c0 AS (SELECT 1)"] + doublings).joined(separator: ", ")
    // The second value is compiled, and never computed.
    let query = PlanQuery("WITH \(tables) SELECT coalesce(1, (SELECT count(*) FROM c16))")
    let fixture = try KeeperFixture()
    try GuardedConnection.use(fixture.store, access: .readOnly) { db in
      let error = #expect(throws: InstarError.self) {
        _ = try query.answer(db, processorSeconds: 0.01)
      }
      #expect(error?.code == .timeLimit)
      let answer = try query.answer(db)
      #expect(answer.onlyValue == "1")
    }
  }

  @Test(
    "an invariant whose query makes a huge value is refused",
    arguments: [GuardedConnection.Access.immutable, .readWrite])
  func hugeValue(access: GuardedConnection.Access) throws {
    let fixture = try KeeperFixture()
    let error = #expect(throws: InstarError.self) {
      try GuardedConnection.use(fixture.store, access: access) {
        _ = try PlanQuery("SELECT hex(zeroblob(60000000))").answer($0)
      }
    }
    #expect(error?.code == .invalidPlan)
    #expect(error?.cause.contains("memory") == true, "\(error?.cause ?? "")")
  }

  @Test("an invariant has one text for each range of versions")
  func earlierTexts() {
    let one = Schema.Version(1, 0, 0)
    let two = Schema.Version(2, 0, 0)
    let rule = Invariant.staysEqual("new", upTo: [two: "middle", one: "old"]).rule
    #expect(rule.query(before: Schema.Version(0, 9, 0)) == "old")
    #expect(rule.query(before: one) == "old")
    #expect(rule.query(before: Schema.Version(1, 0, 1)) == "middle")
    #expect(rule.query(before: two) == "middle")
    #expect(rule.query(before: Schema.Version(2, 0, 1)) == "new")
    #expect(rule.query == "new")
  }
}
