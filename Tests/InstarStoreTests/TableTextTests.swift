import GRDB
import InstarSchema
import InstarStore
import Testing

@Suite("SQL text of tables")
struct TableTextTests {
  @Test(
    "a name stays one name in SQL, whatever is behind a quote in it",
    arguments: ["a\"b", "a\"\u{301}b", "\"\u{200D}", "a\"\u{FE0F}; DROP TABLE t; --", "'\u{301}'"])
  func quoting(_ name: String) throws {
    let queue = try DatabaseQueue()
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE t (a); CREATE TABLE \(SQLIdentifier.sql(name)) (x)")
      let literal = AttributeValue.text(name).literal
      #expect(try String.fetchOne(db, sql: "SELECT \(literal)") == name)
      let names = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema ORDER BY rowid")
      #expect(names.map { Array($0.utf8) } == [Array("t".utf8), Array(name.utf8)])
    }
    #expect(
      SQLToken.tokens(of: name.quoted(by: 0x22)).map { Array($0.name.utf8) } == [Array(name.utf8)])
  }

  @Test("the delete action of a reference does not decide whether the column may be NULL")
  func setNull() {
    let item = CreateTableText.Item("folder_id INTEGER REFERENCES folder (id) ON DELETE SET NULL")
    #expect(
      item.required(true).text
        == "folder_id INTEGER REFERENCES folder (id) ON DELETE SET NULL NOT NULL")
    #expect(item.required(false).text == item.text)
  }

  @Test(
    "the name in quoted SQL is the one that was quoted",
    arguments: ["note", "order", "my table", "täg", "a\"b", "1st"])
  func nameOfSQL(name: String) {
    #expect(SQLIdentifier.name(ofSQL: SQLIdentifier.sql(name)) == name)
  }
}
