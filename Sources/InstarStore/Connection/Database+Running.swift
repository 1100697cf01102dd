package import GRDB
internal import GRDBSQLite

extension Database {
  /// Takes GRDB's authorizer off the connection.
  ///
  /// For whoever observes a connection it collects, at each preparation of a statement, the columns that the statement
  /// reads. Nobody observes Instar's connections, and many small stores need a hundred statements each.
  func removeAuthorizer() {
    sqlite3_set_authorizer(sqliteConnection, nil, nil)
  }

  /// Runs statements that have no parameters and whose rows nobody reads, such as settings and transactions.
  ///
  /// `execute` makes objects for each statement, which takes several times as long.
  ///
  /// - Throws: The database's error.
  package func runWithoutRows(_ sql: String) throws {
    guard sqlite3_exec(sqliteConnection, sql, nil, nil, nil) != SQLITE_OK else { return }
    throw DatabaseError(
      resultCode: ResultCode(rawValue: sqlite3_extended_errcode(sqliteConnection)),
      message: sqlite3_errmsg(sqliteConnection).map { String(cString: $0) }, sql: sql)
  }

  /// Runs the first statement of a text, which has no parameters and whose rows nobody reads. The rest of the text is
  /// not compiled: what a plugin wrote into a statement may end it and begin another one.
  ///
  /// - Throws: The database's error.
  package func runFirstStatement(of sql: String) throws {
    _ = try StatementReader(self, sql).next()
  }

  /// Keeps statements of this connection, such as ATTACH and VACUUM, from opening another database.
  package func forbidOtherDatabases() {
    sqlite3_limit(sqliteConnection, SQLITE_LIMIT_ATTACHED, 0)
  }

  /// Returns the first value of a statement that has no parameters, such as a setting or a count; `nil` where it has no
  /// row, or NULL.
  ///
  /// `fetchOne` makes objects for the statement and its row, which takes longer than SQLite needs for such a statement.
  ///
  /// - Throws: The database's error.
  package func integer(_ sql: String) throws -> Int? {
    let rows = try StatementReader(self, sql)
    guard try rows.next() else { return nil }
    return rows.withValue(0) { if case .null = $0 { nil } else { Int(rows.integer(0)) } }
  }

  /// Returns the values of the first row of a statement, as `integer` does; 0 for NULL. Empty where it has no row.
  ///
  /// - Throws: The database's error.
  package func integers(_ sql: String) throws -> [Int] {
    let rows = try StatementReader(self, sql)
    guard try rows.next() else { return [] }
    return (0..<rows.columnCount).map { Int(rows.integer($0)) }
  }

  /// Returns the first value of a statement as text, as `integer` does.
  ///
  /// - Throws: The database's error.
  package func text(_ sql: String) throws -> String? {
    let rows = try StatementReader(self, sql)
    return try rows.next() ? rows.text(0) : nil
  }

  /// Returns the texts in the first column of a statement, as `integer` does. Other values are left out.
  ///
  /// - Throws: The database's error.
  package func texts(_ sql: String) throws -> [String] {
    let rows = try StatementReader(self, sql)
    var texts: [String] = []
    while try rows.next() {
      if let text = rows.text(0) { texts.append(text) }
    }
    return texts
  }
}
