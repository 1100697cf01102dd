import GRDB
import Testing

@testable import InstarStore

@Suite("Keys of rows without rowid")
struct RowKeysTests {
  private let keys = RowKeys()
  private let queue: DatabaseQueue

  init() throws {
    queue = try DatabaseQueue()
    let keys = keys
    try queue.inDatabase { db in
      keys.register(db)
      try db.execute(
        sql: """
          CREATE TABLE t (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
          INSERT INTO t VALUES ('x', 1), ('x', 2), ('y', 1);
          """)
    }
  }

  private func integer(_ sql: String) throws -> Int? {
    try queue.inDatabase { try Int.fetchOne($0, sql: sql) }
  }

  @Test("keys of rows without rowid stay the same for a primary key, and differ between two")
  func numbers() throws {
    let read = "SELECT \(RowKey(primaryKey: ["a", "b"], ofTable: "t").reading.sql("t"))"
    let first = try queue.inDatabase { try Int.fetchAll($0, sql: "\(read) FROM t ORDER BY a, b") }
    #expect(Set(first).count == 3)
    let again = try queue.inDatabase { try Int.fetchAll($0, sql: "\(read) FROM t ORDER BY a, b") }
    #expect(again == first)
    #expect(try integer("SELECT instar_key('other', 'x', 1)") == 1)
  }

  @Test("keys of rows without rowid find their row by the parts of its primary key")
  func parts() throws {
    let key = try #require(try integer("SELECT instar_key('t', 'x', 2)"))
    let condition = RowKey(primaryKey: ["a", "b"], ofTable: "t").condition("t", equals: "\(key)")
    #expect(try integer("SELECT count(*) FROM t WHERE \(condition)") == 1)
    #expect(try integer("SELECT b FROM t WHERE \(condition)") == 2)
  }

  @Test("keys are NULL for a primary key with a NULL, and for one that nobody asked for")
  func unknown() throws {
    #expect(try integer("SELECT instar_key('t', 'x', NULL)") == nil)
    #expect(try integer("SELECT instar_key_part('t', 0, 99)") == nil)
    #expect(try integer("SELECT instar_key_part('t', 0, -1)") == nil)
    #expect(try integer("SELECT instar_key_part('nowhere', 0, 1)") == nil)
  }

  @Test("keys of rows without rowid go with their tables, also where two exchange their names")
  func renamed() throws {
    _ = try integer("SELECT instar_key('t', 'x', 1)")
    _ = try integer("SELECT instar_key('u', 'y', 7)")
    keys.rename([("t", "u"), ("u", "t")])
    #expect(try integer("SELECT instar_key_part('t', 1, 1)") == 7)
    #expect(try integer("SELECT instar_key_part('u', 1, 1)") == 1)
  }
}
