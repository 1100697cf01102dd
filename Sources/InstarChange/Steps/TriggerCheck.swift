import InstarSchema
import InstarStore

/// Finds the triggers that SQLite cannot compile.
///
/// SQLite compiles a trigger with a statement that fires it, and nowhere else: `ALTER TABLE` does not notice that a
/// body writes a column that is gone. So such a statement is compiled for each trigger, alone, on an empty copy of the
/// schema.
struct TriggerCheck {
  private struct Trigger {
    let name: String
    let table: String
    let statement: String
    /// The column that `UPDATE OF` names and the table does not have: SQLite accepts that, and never fires the trigger.
    let missingColumn: String?
  }

  private let copy: EmptyStore
  private let triggers: [Trigger]

  /// Returns `nil` for a store without triggers, and for one whose schema SQLite cannot read.
  init?(_ session: SQLSession) throws {
    guard try session.integer("SELECT 1 FROM sqlite_schema WHERE type = 'trigger' LIMIT 1") != nil,
      let copy = try? EmptyStore(copying: SchemaText(session.database), rows: [])
    else { return nil }
    self.copy = copy
    triggers = try copy.perform { session in
      let rows = try session.rows(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
      ) { (name: $0.text(at: 0), table: $0.text(at: 1), sql: $0.text(at: 2)) }
      return try rows.compactMap { try Self.trigger($0.name, $0.table, $0.sql, session) }
    }
  }

  /// The names of the triggers that SQLite can compile.
  func compiled() throws -> [String] {
    try triggers.map(\.name).filter { try compileError($0) == nil }
  }

  /// Why SQLite cannot compile a trigger; `nil` where it can, and where there is no such trigger.
  func compileError(_ name: String) throws -> InstarError? {
    guard let trigger = triggers.first(where: { $0.name == name }) else { return nil }
    if let column = trigger.missingColumn {
      return InstarError(
        .sqlFailed, "cannot compile the trigger",
        cause: "table \(trigger.table) has no column \(column), after UPDATE OF",
        next: "in the app, drop the trigger or create it with a column of the table")
    }
    return try copy.perform { session in
      if Self.compileError(trigger.statement, session) == nil { return nil }
      // Another trigger of the table may be the cause.
      try session.run("SAVEPOINT instar_alone")
      for other in triggers where other.name != name && other.table == trigger.table {
        try session.run("DROP TRIGGER \(SQLIdentifier.sql(other.name))")
      }
      let error = Self.compileError(trigger.statement, session)
      try session.run("ROLLBACK TO instar_alone")
      try session.run("RELEASE instar_alone")
      return error
    }
  }

  private static func compileError(_ statement: String, _ session: SQLSession) -> InstarError? {
    do {
      _ = try session.integer("EXPLAIN \(statement)")
      return nil
    } catch {
      return error
    }
  }

  private static func trigger(
    _ name: String, _ table: String, _ sql: String, _ session: SQLSession
  ) throws -> Trigger? {
    let tokens = SQLToken.tokens(of: sql).filter { $0.kind != .space }
    let words = tokens.map { $0.kind == .word ? $0.text.uppercased() : "" }
    guard let event = words.firstIndex(where: { ["INSERT", "UPDATE", "DELETE"].contains($0) })
    else { return nil }
    let columns = try columns(of: table, session)
    let sqlTable = SQLIdentifier.sql(table)
    let statement =
      switch words[event] {
      case "INSERT": "INSERT INTO \(sqlTable) DEFAULT VALUES"
      case "DELETE": "DELETE FROM \(sqlTable)"
      default:
        "UPDATE \(sqlTable) SET "
          + columns.ordinary.map { "\($0) = \($0)" }.joined(separator: ", ")
      }
    let isOfColumns = words.indices.contains(event + 1) && words[event + 1] == "OF"
    let end = words[event...].firstIndex(of: "ON") ?? words.endIndex
    let named = isOfColumns ? tokens[(event + 2)..<max(event + 2, end)].map(\.name) : []
    return Trigger(
      name: name, table: table, statement: statement,
      missingColumn: named.first { !$0.isEmpty && !columns.all.contains($0.lowercased()) })
  }

  /// - Returns: the names, in lower case, that `UPDATE OF` may use; as SQL, the columns that an UPDATE may write.
  private static func columns(
    of table: String, _ session: SQLSession
  ) throws -> (all: Set<String>, ordinary: [String]) {
    let source = "FROM pragma_table_xinfo(\(AttributeValue.text(table).literal))"
    return (
      Set(try session.texts("SELECT name \(source)").map { $0.lowercased() })
        .union(["rowid", "oid", "_rowid_"]),
      try session.texts("SELECT name \(source) WHERE hidden = 0").map { SQLIdentifier.sql($0) }
    )
  }
}
