import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("Values that repeat")
struct RepeatedValuesTests {
  private func mayRepeat(_ values: [String], collation: String = "BINARY") throws -> Bool {
    try DatabaseQueue().inDatabase { db in
      try db.execute(sql: "CREATE TABLE t (a COLLATE \(collation))")
      for value in values { try db.execute(sql: "INSERT INTO t VALUES (\(value))") }
      return try RepeatedValues.mayRepeat(db, "SELECT a FROM t")
    }
  }

  @Test("repeated values are found where SQLite takes two different ones for equal")
  func equalValues() throws {
    #expect(try mayRepeat(["1", "'1'", "x'31'", "1.5", "'a'", "'b'", "''", "NULL"]) == false)
    #expect(try mayRepeat(["2", "2.0"]))
    #expect(try mayRepeat(["'Abc'", "'aBC'"], collation: "NOCASE"))
    #expect(try mayRepeat(["'abc'", "'abc  '"], collation: "RTRIM"))
    // NOCASE compares nothing behind a zero byte but the lengths.
    #expect(
      try mayRepeat(["CAST(x'610062' AS TEXT)", "CAST(x'410063' AS TEXT)"], collation: "NOCASE"))
  }

  @Test("repeated values are never missed, in rows of random values")
  func randomRows() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    let parts = ["a", "A", "b", " ", "é", "\u{0}"]
    for _ in 0..<300 {
      let collation = ["BINARY", "NOCASE", "RTRIM"].randomElement(using: &random) ?? "BINARY"
      let count = Int.random(in: 1...20, using: &random)
      let values: [DatabaseValue] = (0..<count).map { _ in
        switch Int.random(in: 0..<4, using: &random) {
        case 0: Int.random(in: -3...30, using: &random).databaseValue
        case 1: (Double(Int.random(in: -6...60, using: &random)) / 2).databaseValue
        default:
          (0..<Int.random(in: 0...9, using: &random)).map { _ in
            parts.randomElement(using: &random) ?? ""
          }.joined().databaseValue
        }
      }
      try DatabaseQueue().inDatabase { db in
        try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, a COLLATE \(collation), b)")
        for value in values {
          let other = Int.random(in: 0...1, using: &random)
          try db.execute(sql: "INSERT INTO t (a, b) VALUES (?, ?)", arguments: [value, other])
        }
        let repeated = try Bool.fetchOne(
          db, sql: "SELECT count(*) > 0 FROM (SELECT 1 FROM t GROUP BY a, b HAVING count(*) > 1)")
        if repeated == true {
          #expect(try RepeatedValues.mayRepeat(db, "SELECT a, b FROM t"), "seed \(seed)")
        }
      }
    }
  }

  @Test("repeated values are told apart in many rows, and their keys are named")
  func manyRows() throws {
    try DatabaseQueue().inDatabase { db in
      try db.execute(
        sql: """
          CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50000)
          INSERT INTO t SELECT x, 'title ' || x FROM n;
          INSERT INTO t VALUES (0, NULL), (-1, NULL)
          """)
      let rows = KeyedRows(table: "t", keys: ["id"])
      #expect(try RepeatedValues.mayRepeat(db, "SELECT a FROM t WHERE id > 0") == false)
      #expect(try rows.repeated(db, ["a"]) == nil)
      try db.execute(sql: "UPDATE t SET a = 'title 3' WHERE id = 40000")
      let found = try #require(try rows.repeated(db, ["a"]))
      #expect(found.count == 2 && found.keys == ["3", "40000"])
    }
  }

  /// The keys of a table's rows in pages of `size`.
  private func pages(_ sql: String, size: Int, _ query: String) throws -> [[Int64]] {
    let connection = try StoreConnection(inMemory: nil)
    let found = try connection.perform { session in
      try session.database.execute(sql: sql)
      let found = RepeatedRows(try session.statement(query))
      while try found.read(atMost: 100) { #expect(found.nextPage(of: size).isEmpty) }
      return found
    }
    var pages: [[Int64]] = []
    while case let page = found.nextPage(of: size), !page.isEmpty { pages.append(page) }
    #expect(pages.reduce(0) { $0 + $1.count } == found.count)
    return pages
  }

  @Test("repeated values are listed by the keys of their rows, in whole groups, by the lowest keys")
  func keys() throws {
    let table = """
      CREATE TABLE t (id INTEGER PRIMARY KEY, a, b);
      INSERT INTO t VALUES (-9, 'x', 1), (7, 'y', 1), (-2, 'y', 1.0), (4, 'X ', 1), (5, NULL, 1), (6, NULL, 1),
        (8, 'x', 2), (9, 1, 1), (10, '1', 1), (11, x'31', 1), (12, 1.0, 1), (13, 0.5, 1), (14, 0.5, 1);
      """
    let query = "SELECT id, a, b FROM t"
    #expect(try pages(table, size: 1, query) == [[-9, 4], [-2, 7], [9, 12], [13, 14]])
    #expect(try pages(table, size: 5, query) == [[-9, 4, -2, 7], [9, 12, 13, 14]])
    #expect(try pages("CREATE TABLE t (id, a, b)", size: 5, query).isEmpty)
  }

  @Test(
    "repeated values are listed among many rows, in any order of their keys and with many equal ones"
  )
  func manyKeys() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    let ids = Set((0..<3000).map { _ in Int64.random(in: -100_000...100_000, using: &random) })
    for kinds in [1, 40, 2000, 1_000_000] {
      let values = ids.map { ($0, Int.random(in: 0..<kinds, using: &random)) }
      let rows = values.shuffled(using: &random).map { "(\($0), 'value \($1)')" }
      let found = try pages(
        "CREATE TABLE t (id, a); INSERT INTO t VALUES \(rows.joined(separator: ", "))", size: 1,
        "SELECT id, a FROM t")
      let groups = Dictionary(grouping: values, by: \.1).values.map { $0.map(\.0).sorted() }
      let expected = groups.filter { $0.count > 1 }.sorted { $0[0] < $1[0] }
      #expect(found == expected, "seed \(seed), \(kinds) kinds")
    }
  }
}
