internal import Foundation
internal import GRDB
internal import GRDBSQLite
package import InstarSchema

/// An SQL statement of a plan, with the values bound to its parameters.
///
/// It may read all tables and write those of the app's models. Everything else is refused when it is prepared: changes
/// of the schema, other databases, pragmas, control of transactions, and the tables and columns that Instar, SQLite
/// or Core Data keep for themselves.
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
  }

  /// - Throws: `unsupported` for a statement that a plan may not run; `sqlFailed` for one that SQLite cannot compile.
  package func prepare(
    _ session: SQLSession, _ format: StoreFormat
  ) throws(InstarError) -> Prepared {
    try requireOneStatement()
    let rule = StatementRule(format)
    let statement: SQLStatement
    do throws(InstarError) {
      statement = try session.statement(sql, allowedBy: rule)
    } catch {
      throw rule.refusal.map(refused) ?? error
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
    return Prepared(statement: statement, writtenTable: rule.writtenTable)
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

/// What a statement of a plan may do. SQLite asks it for each action when it compiles the statement.
private final class StatementRule {
  /// Why the statement was refused.
  private(set) var refusal: String?
  private(set) var writtenTable: String?
  private let format: StoreFormat

  init(_ format: StoreFormat) { self.format = format }

  /// An action, as `sqlite3_set_authorizer` describes it.
  struct Action {
    let code: Int32
    let first: String?
    let second: String?
    let database: String?
    /// The innermost trigger or view that the action is part of.
    let source: String?
  }

  func allows(_ action: Action) -> Bool {
    if action.source == nil, [SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE].contains(action.code) {
      writtenTable = writtenTable ?? action.first
    }
    guard let reason = reason(against: action) else { return true }
    refusal = refusal ?? reason
    return false
  }

  private func reason(against action: Action) -> String? {
    switch action.code {
    case SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_RECURSIVE: nil
    case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE: reason(againstWriting: action)
    case SQLITE_PRAGMA: "the statement uses PRAGMA \(action.first ?? "")"
    case SQLITE_ATTACH, SQLITE_DETACH: "the statement attaches or detaches a database"
    case SQLITE_TRANSACTION, SQLITE_SAVEPOINT: "the statement controls the transaction"
    default: "the statement changes the schema; only the models of the next version may do that"
    }
  }

  private func reason(againstWriting action: Action) -> String? {
    // The app's triggers do what they do after each write of the app.
    guard action.source == nil else { return nil }
    let table = action.first ?? ""
    if action.database != "main" || table.lowercased().hasPrefix("sqlite_") {
      return
        "the statement writes \(action.database ?? "").\(table), which does not belong to the app"
    }
    if format.reservedTables.contains(where: { $0.lowercased() == table.lowercased() }) {
      return "the statement writes \(table), a table that only Core Data maintains"
    }
    if action.code == SQLITE_UPDATE, let column = action.second,
      let purpose = format.purpose(ofColumn: column)
    {
      return "the statement changes \(column), \(purpose)"
    }
    if action.code == SQLITE_INSERT, format.countsKeys(ofTable: table) {
      return
        "the statement inserts rows into \(table), whose keys Core Data counts in Z_PRIMARYKEY; insert models instead"
    }
    return nil
  }
}

extension SQLSession {
  /// Prepares a statement, and asks a rule for each of its actions. The statement is not kept.
  ///
  /// Instar's connections have no other authorizer.
  fileprivate func statement(
    _ sql: String, allowedBy rule: StatementRule
  ) throws(InstarError) -> SQLStatement {
    guard let connection = database.sqliteConnection else {
      throw InstarError(.sqlFailed, "cannot use a store", cause: "its connection is closed")
    }
    sqlite3_set_authorizer(
      connection,
      { context, code, first, second, database, source in
        guard let context else { return SQLITE_DENY }
        func text(_ bytes: UnsafePointer<CChar>?) -> String? { bytes.map { String(cString: $0) } }
        let action = StatementRule.Action(
          code: code, first: text(first), second: text(second), database: text(database),
          source: text(source))
        return Unmanaged<StatementRule>.fromOpaque(context).takeUnretainedValue().allows(action)
          ? SQLITE_OK : SQLITE_DENY
      }, Unmanaged.passUnretained(rule).toOpaque())
    defer { sqlite3_set_authorizer(connection, nil, nil) }
    return try SQLStatement(sql, connection: connection)
  }
}
