import InstarSchema
import InstarStore

/// The views, triggers and virtual tables of the app, which no model describes. Those that worked before a change of
/// schema must work after it.
struct AppCode {
  /// The views and virtual tables that could be read.
  private let readable: [String]
  /// Whether the store has triggers or views, and SQLite could compile all of them.
  private let compiles: Bool

  init(_ session: SQLSession) throws {
    let statement = try session.statement(
      """
      SELECT name, type FROM sqlite_schema
      WHERE type = 'view' OR type = 'table' AND rootpage = 0 ORDER BY name
      """)
    var objects: [(name: String, isView: Bool)] = []
    while try statement.step() {
      objects.append((statement.text(at: 0), statement.text(at: 1) == "view"))
    }
    statement.reset()
    readable = objects.filter { Self.readError($0.name, isView: $0.isView, session) == nil }
      .map(\.name)
    let hasCode = try session.integer(
      "SELECT 1 FROM sqlite_schema WHERE type IN ('view', 'trigger') LIMIT 1")
    compiles = hasCode != nil && Self.compileError(session) == nil
  }

  /// - Throws: `unexpectedStructure` with the name of an object that uses a table or column that the change removed.
  func requireWorking(_ session: SQLSession) throws(InstarError) {
    for name in readable {
      let type = try session.text(
        "SELECT type FROM sqlite_schema WHERE name = \(AttributeValue.text(name).literal)")
      guard let type, let error = Self.readError(name, isView: type == "view", session) else {
        continue
      }
      throw Self.failure("\(type == "view" ? "view" : "virtual table") '\(name)'", error)
    }
    if compiles, let error = Self.compileError(session) {
      throw Self.failure("a trigger or view", error)
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
      throw failure(
        "\(statement.text(at: 0)) '\(statement.text(at: 1))' uses table \(table), which this stage rebuilds"
      )
    }
  }

  private static func failure(_ subject: String, _ error: InstarError) -> InstarError {
    failure("\(subject) uses a table or column that the change removes: \(error.cause)")
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot change the schema", cause: cause,
      next: "let the app drop the object before the migration, and create it again afterwards")
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

  /// Why SQLite cannot compile a trigger or view; `nil` where it can. Every `ALTER TABLE` compiles them all. Changes
  /// nothing, even where the app has a table of the same name.
  private static func compileError(_ session: SQLSession) -> InstarError? {
    do {
      try session.run("SAVEPOINT instar_probe")
      let result = Result {
        try session.run("CREATE TABLE instar_probe (a)")
        try session.run("ALTER TABLE instar_probe RENAME COLUMN a TO b")
      }
      try session.run("ROLLBACK TO instar_probe")
      try session.run("RELEASE instar_probe")
      try result.get()
      return nil
    } catch {
      return InstarError(error, what: "cannot compile the schema")
    }
  }
}
