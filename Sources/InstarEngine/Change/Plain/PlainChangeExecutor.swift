import InstarSchema
import InstarStore

/// Runs the change of schema of a plain store in one transaction, and looks afterwards whether everything that no model
/// speaks of still works.
struct PlainChangeExecutor {
  let change: PlainChange
  let session: SQLSession

  /// - Returns: the statements of the change.
  /// - Throws: `unexpectedStructure` where a trigger, view or virtual table speaks of what is gone, `brokenReferences` where
  ///   rows refer to others that are; the first error of a statement. Nothing is then changed.
  @discardableResult
  func run() throws -> [String] {
    try session.useOrdinaryTables()
    // Not possible in a transaction. Rows are moved, and tables dropped, that others refer to.
    try session.run("PRAGMA foreign_keys = OFF")
    try session.run("PRAGMA legacy_alter_table = OFF")
    var statements: [String] = []
    try session.transaction {
      let violations = try foreignKeyViolations()
      let working = try workingObjects()
      let isSound = isSchemaSound()
      statements = try change.run(session)
      try requireStructure()
      try requireWorking(working)
      if isSound { try requireSoundSchema() }
      try requireReferences(violations)
    }
    try session.run("PRAGMA foreign_keys = ON")
    return statements
  }

  private func failure(_ code: InstarError.Code, _ cause: String, next: String? = nil)
    -> InstarError
  {
    InstarError(code, "cannot change the schema", cause: cause, next: next)
  }

  private func requireStructure() throws {
    let expected = change.new.structure
    let differences = try StoreStructure.read(session.database, format: .plain)
      .described(asIn: expected, among: [change.old.structure, expected])
      .differences(from: expected)
    guard differences.isEmpty else {
      throw failure(
        .unexpectedStructure,
        "the store is not built like \(change.new.schema.version) after the change of schema:\n"
          + differences.joined(separator: "\n"))
    }
  }

  // MARK: What the app made

  /// The views and virtual tables that can be read. A view is only prepared: its rows may take long.
  private func workingObjects() throws -> [String] {
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
    return objects.filter { isReadable($0.name, isView: $0.isView) == nil }.map(\.name)
  }

  /// Why an object cannot be read; `nil` where it can.
  private func isReadable(_ name: String, isView: Bool) -> InstarError? {
    do {
      _ = try session.integer(
        "SELECT 1 FROM (SELECT * FROM \(SQLIdentifier.sql(name)) LIMIT \(isView ? 0 : 1))")
      return nil
    } catch {
      return error
    }
  }

  private func requireWorking(_ names: [String]) throws {
    for name in names {
      let type = try session.text(
        "SELECT type FROM sqlite_schema WHERE name = \(AttributeValue.text(name).literal)")
      guard let type, let error = isReadable(name, isView: type == "view") else { continue }
      throw failure(
        .unexpectedStructure,
        "\(type == "view" ? "view" : "virtual table") '\(name)' speaks of what the change takes away: "
          + error.cause,
        next: "drop or change it in willMigrate, and make it again in didMigrate")
    }
  }

  /// Has SQLite compile all triggers and views: `ALTER TABLE` looks at each of them. Leaves nothing, and takes nothing of
  /// the app's, which may have a table of that name.
  private func compileSchema() throws {
    try session.run("SAVEPOINT instar_probe")
    let result = Result {
      try session.run("CREATE TABLE instar_probe (a)")
      try session.run("ALTER TABLE instar_probe RENAME COLUMN a TO b")
    }
    try session.run("ROLLBACK TO instar_probe")
    try session.run("RELEASE instar_probe")
    try result.get()
  }

  private func isSchemaSound() -> Bool {
    do {
      try compileSchema()
      return true
    } catch {
      return false
    }
  }

  private func requireSoundSchema() throws {
    do {
      try compileSchema()
    } catch {
      throw failure(
        .unexpectedStructure,
        "a trigger or view speaks of what the change takes away: "
          + InstarError(error, what: "cannot compile the schema").cause,
        next: "drop or change it in willMigrate, and make it again in didMigrate")
    }
  }

  // MARK: References

  /// Rows that refer to none, by table and the table they refer to; `nil` where the foreign keys cannot be checked.
  private func foreignKeyViolations() throws -> [String: Int]? {
    guard let statement = try? session.statement("PRAGMA foreign_key_check") else { return nil }
    defer { statement.reset() }
    var violations: [String: Int] = [:]
    do {
      while try statement.step() {
        violations["\(statement.text(at: 0)) to \(statement.text(at: 2))", default: 0] += 1
      }
    } catch {
      return nil
    }
    return violations
  }

  private func requireReferences(_ before: [String: Int]?) throws {
    guard let before, let after = try foreignKeyViolations() else { return }
    let total = before.values.reduce(0, +)
    for (reference, count) in after.sorted(by: { $0.key < $1.key })
    where count > before[reference] ?? 0 && after.values.reduce(0, +) > total {
      throw failure(
        .brokenReferences, "\(count) rows refer from \(reference), and find no row there")
    }
  }
}
