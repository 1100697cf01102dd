import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("The lock of a store")
struct StoreLockTests {
  private func lock(_ fixture: KeeperFixture) throws -> StoreLock {
    try StoreLock(try StoreFile.probe(fixture.store), busyTimeout: 0)
  }

  @Test(
    "the lock of a store keeps other writers out until it is released",
    arguments: ["delete", "wal"])
  func writers(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let lock = try lock(fixture)
    #expect(lock.usesLog == (journalMode == "wal"))
    let error = #expect(throws: DatabaseError.self) {
      try fixture.execute("DELETE FROM ZNOTE")
    }
    #expect(error?.resultCode == .SQLITE_BUSY)
    lock.release()
    try fixture.execute("DELETE FROM ZNOTE")
  }

  @Test("the lock of a store can be held once", arguments: ["delete", "wal"])
  func once(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let first = try lock(fixture)
    let error = #expect(throws: DatabaseError.self) { try lock(fixture) }
    #expect(error?.resultCode == .SQLITE_BUSY)
    first.release()
    try lock(fixture).release()
  }

  @Test(
    "the lock of a store copies the store, and replaces its content by a clone's",
    arguments: ["delete", "wal"])
  func replaceContents(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let clone = fixture.folder + "/clone"
    #expect(FileManager.default.createFile(atPath: clone, contents: nil))
    let lock = try lock(fixture)
    defer { lock.release() }
    try lock.copy(to: clone)
    try FileCopy.useRollbackJournal(clone)
    let queue = try DatabaseQueue(path: clone)
    try queue.writeWithoutTransaction { try $0.execute(sql: "DELETE FROM ZNOTE WHERE Z_PK > 4") }
    try queue.close()
    #expect(try lock.replaceContents(with: .file(clone)))
    #expect(try lock.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZNOTE") } == 4)
  }

  @Test(
    "the lock of a store knows that nobody has written since the probe, without a log",
    arguments: ["delete", "wal"])
  func content(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let probed = try StoreFile.probe(fixture.store)
    let first = try lock(fixture)
    #expect(try first.hasContent(of: probed) == (journalMode == "delete"))
    first.release()
    try fixture.execute("DELETE FROM ZNOTE WHERE Z_PK = 1")
    let second = try lock(fixture)
    defer { second.release() }
    #expect(try !second.hasContent(of: probed))
  }

  @Test("a lock is refused where the store has a second hard link")
  func hardLink() throws {
    let fixture = try KeeperFixture()
    try FileManager.default.linkItem(atPath: fixture.store, toPath: fixture.store + ".other")
    let error = #expect(throws: InstarError.self) { try lock(fixture) }
    #expect(error?.code == .unsafePath)
    try fixture.execute("DELETE FROM ZNOTE")
  }

  @Test("the lock of a store leaves no log behind where the store is renamed meanwhile")
  func renamed() throws {
    let fixture = try KeeperFixture(journalMode: "wal")
    let lock = try lock(fixture)
    try FileManager.default.moveItem(atPath: fixture.store, toPath: fixture.store + ".old")
    lock.release()
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder)
    #expect(names.filter { $0.hasPrefix("Notes.store") } == ["Notes.store.old"])
  }

  @Test(
    "the lock of a store ends a run whose store is removed or replaced meanwhile",
    arguments: ["delete", "wal"])
  func lostPath(journalMode: String) throws {
    for isReplaced in [false, true] {
      let fixture = try KeeperFixture(journalMode: journalMode)
      let store = fixture.store
      let host = SQLHost(tamper: { _ in
        #expect(unlink(store) == 0)
        if isReplaced { try Data("another".utf8).write(to: URL(fileURLWithPath: store)) }
      })
      let (report, _) = try fixture.migrate(host)
      #expect(report.result == .failed)
      #expect(report.error?.code == (isReplaced ? .storeChanged : .missingStore))
      #expect(report.error?.state == (isReplaced ? "unchanged" : "missing"))
      #expect(fixture.state().bytes == (isReplaced ? Data("another".utf8) : nil))
      #expect(fixture.state().instar == nil)
    }
  }

  @Test("a lock is refused where another file has the store's name since it was inspected")
  func replacedFile() throws {
    let fixture = try KeeperFixture()
    let file = try StoreFile.probe(fixture.store)
    try FileManager.default.moveItem(atPath: fixture.store, toPath: fixture.store + ".old")
    try FileManager.default.copyItem(atPath: fixture.store + ".old", toPath: fixture.store)
    let error = #expect(throws: InstarError.self) { try StoreLock(file, busyTimeout: 0) }
    #expect(error?.code == .storeChanged)
  }
}
