internal import InstarSchema

extension SQLSession {
  private static let functionName = "instar_before_write"

  /// Runs `body`, and calls a function before each row of a table that its statements, or the app's triggers, insert,
  /// change or delete. An error of the function fails the statement and is thrown.
  ///
  /// Temporary triggers call it: SQLite has no hook that can refuse a row. For a store that is discarded after an
  /// error, because the triggers then stay.
  ///
  /// - Parameter beforeWrite: `nil` to run `body` alone.
  package func watchingWrites<Value>(
    _ beforeWrite: (@Sendable () throws -> Void)?, _ body: () throws -> Value
  ) throws -> Value {
    guard let beforeWrite else { return try body() }
    let function = RowFunction(Self.functionName, argumentCount: 1) { _ in try beforeWrite() }
    try register(function)
    let triggers = try writeTriggers()
    for trigger in triggers { try run(trigger.sql) }
    do {
      let value = try body()
      for trigger in triggers { try run("DROP TRIGGER temp.\(trigger.name)") }
      return value
    } catch {
      throw function.firstError ?? error
    }
  }

  private func writeTriggers() throws(InstarError) -> [(name: String, sql: String)] {
    let tables = try rows(
      """
      SELECT name, (SELECT name FROM pragma_table_info(t.name) ORDER BY cid LIMIT 1) FROM sqlite_schema AS t
      WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
      """
    ) { (table: SQLIdentifier.sql($0.text(at: 0)), column: SQLIdentifier.sql($0.text(at: 1))) }
    return tables.enumerated().flatMap { index, table in
      [("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")].map { action, row in
        let name = "instar_w\(index + 1)_\(action.lowercased())"
        // SQLite would call a function of constants once for a statement, and not for each row.
        return (
          name,
          "CREATE TEMP TRIGGER \(name) BEFORE \(action) ON main.\(table.table) "
            + "BEGIN SELECT \(Self.functionName)(\(row).\(table.column)); END"
        )
      }
    }
  }
}
