import InstarSchema
import InstarStore

/// The views, triggers and virtual tables of the app, which no model describes. Those that worked before a change of
/// schema must work after it.
struct AppCode {
  /// The views and virtual tables that could be read.
  private let readable: [String]
  /// The triggers that SQLite could compile.
  private let compiled: [String]

  init(_ session: SQLSession) throws {
    let objects = try session.rows(
      """
      SELECT name, type FROM sqlite_schema
      WHERE type = 'view' OR type = 'table' AND rootpage = 0 ORDER BY name
      """
    ) { (name: $0.text(at: 0), isView: $0.text(at: 1) == "view") }
    readable = objects.filter { Self.readError($0.name, isView: $0.isView, session) == nil }
      .map(\.name)
    compiled = try TriggerCheck(session)?.compiled() ?? []
  }

  /// - Throws: `unexpectedStructure` with the name of an object that uses a table or column that the change removed.
  func requireWorking(_ session: SQLSession) throws {
    for name in readable {
      let type = try session.text(
        "SELECT type FROM sqlite_schema WHERE name = \(AttributeValue.text(name).literal)")
      guard let type, let error = Self.readError(name, isView: type == "view", session) else {
        continue
      }
      throw Self.failure(type == "view" ? "view" : "virtual table", name, error)
    }
    guard !compiled.isEmpty, let check = try TriggerCheck(session) else { return }
    for name in compiled {
      if let error = try check.compileError(name) { throw Self.failure("trigger", name, error) }
    }
  }

  /// Refuses triggers and views that use a table of the Core Data format that is rebuilt: dropping the old table
  /// would drop its triggers and break its views.
  static func requireNone(using tables: Set<String>, _ session: SQLSession) throws(InstarError) {
    guard !tables.isEmpty else { return }
    let statement = try session.statement(
      "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') "
        + "AND name NOT GLOB 'Z_DA_*' ORDER BY name")
    defer { statement.reset() }
    while try statement.step() {
      let names = SQLToken.names(in: statement.text(at: 2))
      guard let table = tables.first(where: { names.contains($0.lowercased()) }) else { continue }
      let type = statement.text(at: 0)
      throw failure(
        type, "\(type) '\(statement.text(at: 1))' uses table \(table), which this stage rebuilds")
    }
  }

  /// Names the object in an error of SQLite, which alters no table while a view or trigger cannot be compiled.
  static func explained(_ error: InstarError) -> InstarError {
    for type in ["view", "trigger"] {
      guard let start = error.cause.firstRange(of: "error in \(type) ") else { continue }
      return failure(
        type,
        "SQLite alters no table while a \(type) cannot be compiled: "
          + "\(type) \(error.cause[start.upperBound...])")
    }
    return error
  }

  private static func failure(
    _ type: String, _ name: String, _ error: InstarError
  ) -> InstarError {
    failure(
      type, "\(type) '\(name)' uses a table or column that the change removes: \(error.cause)")
  }

  private static func failure(_ type: String, _ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot change the schema", cause: cause,
      next:
        "let the app drop the \(type) before the migration, and create it again afterwards")
  }

  /// Why an object cannot be read; `nil` where it can. A view is only prepared, because reading its rows may take long.
  private static func readError(
    _ name: String, isView: Bool, _ session: SQLSession
  ) -> InstarError? {
    do {
      _ = try session.integer(
        "SELECT 1 FROM (SELECT * FROM \(SQLIdentifier.sql(name)) LIMIT \(isView ? 0 : 1))")
      return nil
    } catch {
      return error
    }
  }
}
