internal import GRDBSQLite
internal import InstarSchema

/// What a statement of a plan may do. SQLite asks it for each action when it compiles the statement.
final class StatementCheck {
  /// Why the statement was refused.
  private(set) var refusal: String?
  private(set) var writtenTable: String?
  /// All tables that it may write, also by triggers and foreign keys, in lower case.
  private(set) var allWrittenTables: Set<String> = []
  private let format: StoreFormat
  private let versionTable: String?

  init(_ format: StoreFormat, versionTable: String?) {
    self.format = format
    self.versionTable = versionTable
  }

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
    if [SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE].contains(action.code) {
      if let table = action.first { allWrittenTables.insert(table.lowercased()) }
      if action.source == nil { writtenTable = writtenTable ?? action.first }
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
    if table.lowercased() == versionTable?.lowercased() {
      return "the statement writes \(table), where the plan keeps the version of the store"
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
