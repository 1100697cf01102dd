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

  @Test("are found where SQLite takes two different ones for equal")
  func equalValues() throws {
    #expect(try mayRepeat(["1", "'1'", "x'31'", "1.5", "'a'", "'b'", "''", "NULL"]) == false)
    #expect(try mayRepeat(["2", "2.0"]))
    #expect(try mayRepeat(["'Abc'", "'aBC'"], collation: "NOCASE"))
    #expect(try mayRepeat(["'abc'", "'abc  '"], collation: "RTRIM"))
    // NOCASE compares nothing behind a zero byte but the lengths.
    #expect(
      try mayRepeat(["CAST(x'610062' AS TEXT)", "CAST(x'410063' AS TEXT)"], collation: "NOCASE"))
  }

  @Test("are never missed, in rows of random values")
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

  @Test("are told apart in many rows, and their keys are named")
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
}
