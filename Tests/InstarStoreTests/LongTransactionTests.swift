import Foundation
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

/// Transactions that stay open over many calls, as `enumerate` makes them.
@Suite("A long transaction on a clone")
struct LongTransactionTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(
    "a long transaction keeps its journal in memory if the store is small, else in a file, and is undone from either",
    arguments: [(1, false), (80, true)])
  func journal(mebibytes: Int, isFile: Bool) throws {
    let path = folder.path("clone.store")
    let connection = try StoreConnection(path: path, durability: .clone)
    try connection.perform { session in
      try session.run("CREATE TABLE item (id INTEGER PRIMARY KEY, content BLOB)")
      try session.run("INSERT INTO item VALUES (1, zeroblob(\(mebibytes << 20))), (2, 'old')")
      try session.beginLong()
      try session.run("UPDATE item SET content = 'new' WHERE id = 2")
    }
    #expect(FileManager.default.fileExists(atPath: path + "-journal") == isFile)
    try connection.perform { session in
      session.rollBackLong()
      #expect(try session.text("PRAGMA journal_mode") == "memory")
      #expect(try session.text("SELECT content FROM item WHERE id = 2") == "old")
      try session.beginLong()
      try session.run("UPDATE item SET content = 'newer' WHERE id = 2")
      try session.commitLong()
      #expect(try session.text("PRAGMA journal_mode") == "memory")
      #expect(try session.text("SELECT content FROM item WHERE id = 2") == "newer")
    }
    #expect(!FileManager.default.fileExists(atPath: path + "-journal"))
    try connection.close()
  }
}
