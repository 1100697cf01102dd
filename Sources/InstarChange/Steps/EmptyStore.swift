import Foundation
package import InstarSchema
package import InstarStore
package import InstarWire

/// An in-memory store with another store's schema and no rows: a preview makes the changes of a plan on it, and the
/// verification finds out which schema they leave.
package struct EmptyStore {
  private let connection: StoreConnection

  /// - Throws: `unexpectedStructure` where SQLite cannot create the tables: their conditions may call functions that
  ///   only the app has. Altering such a table does not need them.
  package init(_ ddl: StoreDDL) throws(InstarError) {
    guard !ddl.statements.isEmpty else {
      throw Self.failure("the store has too many tables and indexes")
    }
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        try session.useOrdinaryTables()
        try session.run("PRAGMA foreign_keys = OFF")
        for statement in ddl.statements { try session.run(statement) }
      }
    } catch {
      let known = error as? InstarError
      throw Self.failure(
        "SQLite cannot create the tables without the app: \(known?.cause ?? "\(error)")")
    }
  }

  /// The store as Instar itself creates it for a version.
  package init(of layout: any StoreLayout) throws(InstarError) {
    let statements: [String]
    do {
      statements = try layout.emptyStoreStatements()
    } catch {
      throw Self.failure("\(error)")
    }
    try self.init(StoreDDL(statements: statements))
  }

  /// A copy of a store's schema as SQLite keeps it, also of tables that SQLite could not create here: their conditions
  /// may call functions that only the app has.
  ///
  /// - Parameter rows: Statements that write the rows that a change of schema reads.
  /// - Throws: `unexpectedStructure` where SQLite cannot read the schema.
  package init(copying schema: SchemaText, rows: [String]) throws(InstarError) {
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        try session.write(schema)
        try session.useOrdinaryTables()
        try session.run("PRAGMA foreign_keys = OFF")
        for statement in rows { try session.run(statement) }
      }
    } catch {
      throw Self.failure((error as? InstarError)?.cause ?? "\(error)")
    }
  }

  /// Reads the schema of this store.
  func schemaText() throws(InstarError) -> SchemaText {
    do {
      return try connection.perform { try SchemaText($0.database) }
    } catch {
      throw InstarError(error, what: "cannot read the schema of an empty store")
    }
  }

  func perform<Value>(_ body: (SQLSession) throws -> Value) throws -> Value {
    try connection.perform(body)
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot create the store's tables in memory", cause: cause)
  }
}

extension SQLSession {
  /// Writes a schema into this empty database. Each table and index gets an empty b-tree, and its text as it is.
  fileprivate func write(_ schema: SchemaText) throws {
    try run("PRAGMA encoding = '\(schema.encoding)'")
    for object in schema.objects { makeVirtualTable(object) }
    let made = Set(try texts("SELECT name FROM sqlite_schema"))
    try run("PRAGMA writable_schema = ON")
    let insert = "INSERT INTO sqlite_schema VALUES (?1, ?2, ?3, 0, ?4)"
    let update = "UPDATE sqlite_schema SET type = ?1, name = ?2, tbl_name = ?3, sql = ?4 WHERE "
    for (index, object) in schema.objects.enumerated() {
      let text: String
      if made.contains(object.name) {
        text = update + "type = ?1 AND name = ?2"
      } else {
        switch object.tree {
        case .none: break
        case .rows: try run("CREATE TABLE instar_\(index) (a)")
        case .keys: try run("CREATE TABLE instar_\(index) (a PRIMARY KEY) WITHOUT ROWID")
        }
        text =
          object.tree == .none
          ? insert : update + "rowid = (SELECT max(rowid) FROM sqlite_schema)"
      }
      let statement = try statement(text)
      statement.bind(object.type, at: 1)
      statement.bind(object.name, at: 2)
      statement.bind(object.table, at: 3)
      if let sql = object.sql { statement.bind(sql, at: 4) }
      try statement.run()
    }
    // SQLite reads what was written.
    try run("PRAGMA writable_schema = RESET")
  }

  /// Creates a virtual table, with its shadow tables and the rows in them that its module needs: SQLite cannot compile
  /// a trigger that uses a virtual table whose shadow tables are empty.
  ///
  /// Where this fails, the module is missing here or the text is damaged. The table then gets its row like any other.
  private func makeVirtualTable(_ object: SchemaText.Object) {
    guard object.type == "table", object.tree == .none, let sql = object.sql else { return }
    // Only the first statement of the text is compiled.
    try? statement(sql).run()
  }
}
