import GRDB
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarKeeper

@Suite("A clone in memory")
struct MemoryCloneTests {
  @Test("runs the first statement of each text only")
  func firstStatements() throws {
    let clone = try MemoryClone()
    try clone.change(by: ["CREATE TABLE a (b); CREATE TABLE c (d)", "CREATE TABLE e (f) -- g"])
    #expect(
      try clone.read { try $0.text("SELECT group_concat(name) FROM sqlite_schema") } == "a,e")
  }

  @Test("opens no other database")
  func otherDatabases() throws {
    let folder = try TemporaryFolder()
    let clone = try MemoryClone()
    try clone.change(by: ["CREATE TABLE a (b)"])
    for statement in ["ATTACH '%' AS other", "VACUUM INTO '%'"] {
      let sql = statement.replacing("%", with: folder.path("other.store"))
      #expect(throws: DatabaseError.self) { try clone.write { try $0.runWithoutRows(sql) } }
    }
    #expect(folder.names() == [])
  }
}
