internal import Foundation
internal import GRDB
internal import GRDBSQLite
package import InstarSchema

/// An SQL statement of a plan, with the values bound to its parameters.
///
/// It may read all tables and write those of the app's models. Everything else is refused when it is prepared: changes
/// of the schema, other databases, pragmas, control of transactions, the tables and columns that Instar, SQLite or
/// Core Data keep for themselves, and the table in which the plan keeps the store's version.
package struct PlanStatement: Sendable, Hashable {
  package let sql: String
  /// `nil` for NULL.
  package let arguments: [AttributeValue?]

  package init(_ sql: String, _ arguments: [AttributeValue?]) {
    self.sql = sql
    self.arguments = arguments
  }

  /// A prepared statement of a plan, with its arguments bound.
  package struct Prepared {
    package let statement: SQLStatement
    /// The first table that it writes; `nil` for a statement that only reads.
    package let writtenTable: String?
    /// All tables that it may write, also by triggers and foreign keys, in lower case.
    package let allWrittenTables: Set<String>
  }

  /// - Throws: `unsupported` for a statement that a plan may not run; `sqlFailed` for one that SQLite cannot compile.
  package func prepare(
    _ session: SQLSession, _ format: StoreFormat
  ) throws(InstarError) -> Prepared {
    try requireOneStatement()
    let check = StatementCheck(format, versionTable: session.versionTable)
    let statement: SQLStatement
    do throws(InstarError) {
      statement = try session.statement(sql, allowedBy: check)
    } catch {
      throw check.refusal.map(refused) ?? error
    }
    guard statement.parameterCount == arguments.count else {
      throw refused(
        "the statement has \(statement.parameterCount) parameters and \(arguments.count) arguments; write each value as \\(value) in the text"
      )
    }
    for (index, argument) in zip(Int32(1)..., arguments) {
      switch argument {
      case .integer(let integer): statement.bind(integer, at: index)
      case .real(let real): statement.bind(real, at: index)
      case .text(let text): statement.bind(text, at: index)
      case .blob(let bytes): statement.bind(Data(bytes), at: index)
      case nil: statement.bindNull(at: index)
      }
    }
    return Prepared(
      statement: statement, writtenTable: check.writtenTable,
      allWrittenTables: check.allWrittenTables)
  }

  /// SQLite compiles the first statement of a text and leaves out the others. Statements such as VACUUM ask no
  /// authorizer.
  private func requireOneStatement() throws(InstarError) {
    let tokens = SQLToken.tokens(of: sql).filter { $0.kind != .space }
    let words = ["SELECT", "VALUES", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE"]
    guard let first = tokens.first, words.contains(first.text.uppercased()) else {
      throw refused("the statement does not begin with \(words.joined(separator: ", "))")
    }
    let end = tokens.firstIndex { $0.text == ";" } ?? tokens.count
    guard tokens[end...].allSatisfy({ $0.text == ";" }) else {
      throw refused("the text has more than one statement")
    }
  }

  private func refused(_ reason: String) -> InstarError {
    InstarError(
      .unsupported, "cannot run a statement of the plan", cause: "\(reason) - in `\(sql)`",
      next: "write one statement that reads, or that changes rows of the app's tables")
  }
}

extension SQLSession {
  /// Prepares a statement, and asks a check for each of its actions. The statement is not kept.
  ///
  /// Instar's connections have no other authorizer.
  fileprivate func statement(
    _ sql: String, allowedBy check: StatementCheck
  ) throws(InstarError) -> SQLStatement {
    guard let connection = database.sqliteConnection else {
      throw InstarError(.sqlFailed, "cannot use a store", cause: "its connection is closed")
    }
    sqlite3_set_authorizer(
      connection,
      { context, code, first, second, database, source in
        guard let context else { return SQLITE_DENY }
        func text(_ bytes: UnsafePointer<CChar>?) -> String? { bytes.map { String(cString: $0) } }
        let action = StatementCheck.Action(
          code: code, first: text(first), second: text(second), database: text(database),
          source: text(source))
        return Unmanaged<StatementCheck>.fromOpaque(context).takeUnretainedValue().allows(action)
          ? SQLITE_OK : SQLITE_DENY
      }, Unmanaged.passUnretained(check).toOpaque())
    defer { sqlite3_set_authorizer(connection, nil, nil) }
    return try SQLStatement(sql, connection: connection)
  }
}
