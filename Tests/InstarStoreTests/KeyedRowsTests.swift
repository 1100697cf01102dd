import GRDB
import InstarStore
import Testing

@Suite("Rows that conditions choose")
struct KeyedRowsTests {
  @Test(
    "a table may have more conditions than SQLite takes in one expression",
    arguments: [1, 399, 400, 1_100])
  func manyConditions(count: Int) throws {
    let queue = try DatabaseQueue()
    try queue.write { db in
      let columns = (0..<count).map { "c\($0) INTEGER DEFAULT 1" }
      try db.execute(sql: "CREATE TABLE item (\(columns.joined(separator: ", ")))")
      try db.execute(sql: "INSERT INTO item DEFAULT VALUES")
      let rows = KeyedRows(table: "item", keys: [])
      let conditions = (0..<count).map { "c\($0) IS NULL" }
      #expect(try !rows.hasRows(db, whereAny: conditions))
      try db.execute(sql: "UPDATE item SET c\(count - 1) = NULL")
      #expect(try rows.hasRows(db, whereAny: conditions))
    }
  }
}
