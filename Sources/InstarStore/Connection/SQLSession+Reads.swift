internal import GRDBSQLite
internal import InstarSchema

/// A column that a statement reads.
package struct ReadColumn: Hashable, Sendable {
  package let table: String
  /// Empty where the statement only counts rows.
  package let name: String
}

extension SQLSession {
  /// Calls `body`, and collects the columns that its statements read: those that may decide what `body` does. The
  /// statements of a change of schema (`run(_:on:callsPlan:)`) decide nothing, and are left out.
  ///
  /// `body` may not prepare statements of a plan, which have an authorizer of their own.
  ///
  /// - Throws: The error of `body`.
  package func collectingReads<Value>(
    _ body: () throws -> Value
  ) throws -> (value: Value, reads: Set<ReadColumn>) {
    let collector = ReadCollector()
    readCollector = collector
    sqlite3_set_authorizer(
      connection,
      { context, code, table, column, _, _ in
        guard code == SQLITE_READ, let context, let table, let column else { return SQLITE_OK }
        Unmanaged<ReadCollector>.fromOpaque(context).takeUnretainedValue().add(
          ReadColumn(table: String(cString: table), name: String(cString: column)))
        return SQLITE_OK
      }, Unmanaged.passUnretained(collector).toOpaque())
    defer {
      sqlite3_set_authorizer(connection, nil, nil)
      readCollector = nil
    }
    return (try body(), collector.columns)
  }
}

/// Receives each column that SQLite reads when it compiles a statement.
final class ReadCollector {
  private(set) var columns: Set<ReadColumn> = []
  var isPaused = false

  func add(_ column: ReadColumn) {
    if !isPaused { columns.insert(column) }
  }
}
