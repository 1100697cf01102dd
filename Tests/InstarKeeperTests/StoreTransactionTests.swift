import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarKeeper

@Suite("The transaction of a locked store")
struct StoreTransactionTests {
  /// Far more than SQLite's page cache holds.
  private static let change = "UPDATE ZNOTE SET ZTITLE = hex(zeroblob(1000000))"

  private static func open(
    _ fixture: KeeperFixture
  ) throws -> (lock: StoreLock, transaction: StoreTransaction) {
    let lock = try StoreLock(try StoreProbe.read(fixture.store).file, busyTimeout: 1)
    let transaction = lock.transaction(making: [])
    #expect(try lock.beginChange())
    return (lock, transaction)
  }

  private static func title(_ db: Database) throws -> Int? {
    try Int.fetchOne(db, sql: "SELECT max(length(ZTITLE)) FROM ZNOTE")
  }

  @Test(
    "the transaction of a locked store, however large, writes no page before its commit, and leaves nothing without one",
    arguments: ["delete", "wal"])
  func rollsBack(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let before = fixture.state().bytes
    let (lock, transaction) = try Self.open(fixture)
    try transaction.change { try $0.execute(sql: Self.change) }
    #expect(try transaction.read(Self.title) == 2_000_000)
    #expect(try transaction.size() > 20_000_000)
    #expect(fixture.state().bytes == before)
    if journalMode == "wal" {
      #expect(try FileCopy.size(of: fixture.store + "-wal") == 0)
      #expect(try fixture.query(Int.self, "SELECT max(length(ZTITLE)) FROM ZNOTE") ?? 0 < 10)
    } else {
      #expect(!StoreFile.journalHasContent(fixture.store + "-journal"))
    }
    lock.release()
    #expect(fixture.state().bytes == before)
    #expect(fixture.names == ["Notes.so", "Notes.store"])
  }

  @Test("the transaction of a locked store commits what it made", arguments: ["delete", "wal"])
  func commits(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (lock, transaction) = try Self.open(fixture)
    try transaction.change { try $0.execute(sql: Self.change) }
    try lock.commitChange()
    #expect(try lock.read(Self.title) == 2_000_000)
    lock.release()
    #expect(fixture.names == ["Notes.so", "Notes.store"])
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
  }

  @Test(
    "the transaction of a locked store changes nothing once it has ended",
    arguments: ["delete", "wal"])
  func ended(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (lock, transaction) = try Self.open(fixture)
    defer { lock.release() }
    try transaction.change { try $0.execute(sql: "ROLLBACK") }
    let error = #expect(throws: DatabaseError.self) {
      try transaction.change { try $0.execute(sql: Self.change) }
    }
    #expect(error?.resultCode == .SQLITE_MISUSE)
  }

  @Test("the transaction of a locked store runs the first statement of each text only")
  func firstStatements() throws {
    let fixture = try KeeperFixture()
    let (lock, transaction) = try Self.open(fixture)
    defer { lock.release() }
    try transaction.change {
      try $0.runFirstStatement(of: "CREATE TABLE a (b); CREATE TABLE c (d)")
      try $0.runFirstStatement(of: "CREATE TABLE e (f) -- g")
    }
    let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE name IN ('a', 'c', 'e')"
    #expect(try transaction.read { try $0.text(tables) } == "a,e")
  }

  @Test(
    "the transaction of a locked store writes nothing through a reading, and opens no other database"
  )
  func guarded() throws {
    let fixture = try KeeperFixture()
    let (lock, transaction) = try Self.open(fixture)
    defer { lock.release() }
    #expect(throws: DatabaseError.self) {
      try transaction.read { try $0.execute(sql: Self.change) }
    }
    #expect(throws: DatabaseError.self) {
      try transaction.change { try $0.execute(sql: "ATTACH '\(fixture.folder)/other' AS other") }
    }
    #expect(!fixture.names.contains("other"))
  }

  @Test(
    "a transaction is not committed where another file has the name of the store",
    arguments: ["delete", "wal"])
  func replacedFile(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (lock, transaction) = try Self.open(fixture)
    try transaction.change { try $0.execute(sql: Self.change) }
    try FileManager.default.moveItem(atPath: fixture.store, toPath: fixture.store + ".old")
    try Data("another".utf8).write(to: URL(fileURLWithPath: fixture.store))
    let error = #expect(throws: InstarError.self) { try lock.commitChange() }
    #expect(error?.code == .storeChanged)
    lock.release()
    #expect(fixture.state().bytes == Data("another".utf8))
    let title = "SELECT max(length(ZTITLE)) FROM ZNOTE"
    #expect(try fixture.query(Int.self, title, in: fixture.store + ".old") ?? 0 < 10)
  }
}

extension KeeperFixture {
  fileprivate var names: [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder).sorted()) ?? []
  }
}
