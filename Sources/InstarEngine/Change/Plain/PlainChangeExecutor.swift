import InstarSchema
import InstarStore

/// Changes the schema of an open plain store by one stage, in one transaction, and checks that everything that no model
/// describes still works.
struct PlainChangeExecutor {
  let change: PlainChange

  /// - Returns: every statement that was executed, in order.
  /// - Throws: `unexpectedStructure` where a trigger, view or virtual table names a table or column that was removed;
  ///   `brokenReferences` where rows reference rows that were removed; the error of a check of rows; the first error of a
  ///   statement. The store is then unchanged.
  func run(_ session: SQLSession) throws -> [ChangeStep] {
    try session.useOrdinaryTables()
    // The change moves rows and drops tables that others reference. The pragma has no effect in a transaction.
    try session.run("PRAGMA foreign_keys = OFF")
    try session.run("PRAGMA legacy_alter_table = OFF")
    let steps = try session.transaction {
      let violations = try foreignKeyViolations(session)
      let working = try workingObjects(session)
      let isSound = isSchemaSound(session)
      let steps = try change.run(session)
      try requireStructure(session)
      try requireWorking(working, session)
      if isSound { try requireSoundSchema(session) }
      try requireReferences(violations, session)
      return steps
    }
    try session.run("PRAGMA foreign_keys = ON")
    return steps
  }

  private func failure(_ code: InstarError.Code, _ cause: String, next: String? = nil)
    -> InstarError
  {
    InstarError(code, "cannot change the schema", cause: cause, next: next)
  }

  private func requireStructure(_ session: SQLSession) throws {
    let expected = change.new.structure
    let differences = try StoreStructure.read(session.database, format: .plain)
      .described(asIn: expected, among: [change.old.structure, expected])
      .differences(from: expected)
    guard differences.isEmpty else {
      throw failure(
        .unexpectedStructure,
        "after the change of schema, the store does not have the structure of \(change.new.schema.version):\n"
          + differences.joined(separator: "\n"))
    }
  }

  // MARK: Objects that no model describes

  /// The views and virtual tables that can be read. A view is only prepared, because reading its rows may take long.
  private func workingObjects(_ session: SQLSession) throws -> [String] {
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
    return objects.filter { isReadable($0.name, isView: $0.isView, session) == nil }.map(\.name)
  }

  /// Why an object cannot be read; `nil` where it can.
  private func isReadable(
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

  private func requireWorking(_ names: [String], _ session: SQLSession) throws {
    for name in names {
      let type = try session.text(
        "SELECT type FROM sqlite_schema WHERE name = \(AttributeValue.text(name).literal)")
      guard let type, let error = isReadable(name, isView: type == "view", session) else {
        continue
      }
      throw failure(
        .unexpectedStructure,
        "\(type == "view" ? "view" : "virtual table") '\(name)' uses a table or column that the change removes: "
          + error.cause,
        next: "drop it in willMigrate and create it again in didMigrate")
    }
  }

  /// Has SQLite compile all triggers and views, as each `ALTER TABLE` does. Changes nothing, even where the app has a table
  /// of the same name.
  private func compileSchema(_ session: SQLSession) throws {
    try session.run("SAVEPOINT instar_probe")
    let result = Result {
      try session.run("CREATE TABLE instar_probe (a)")
      try session.run("ALTER TABLE instar_probe RENAME COLUMN a TO b")
    }
    try session.run("ROLLBACK TO instar_probe")
    try session.run("RELEASE instar_probe")
    try result.get()
  }

  private func isSchemaSound(_ session: SQLSession) -> Bool {
    do {
      try compileSchema(session)
      return true
    } catch {
      return false
    }
  }

  private func requireSoundSchema(_ session: SQLSession) throws {
    do {
      try compileSchema(session)
    } catch {
      throw failure(
        .unexpectedStructure,
        "a trigger or view uses a table or column that the change removes: "
          + InstarError(error, what: "cannot compile the schema").cause,
        next: "drop it in willMigrate and create it again in didMigrate")
    }
  }

  // MARK: References

  /// The number of rows that reference a missing row, by the two tables; `nil` where SQLite cannot check the foreign keys.
  private func foreignKeyViolations(_ session: SQLSession) throws -> [String: Int]? {
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

  private func requireReferences(
    _ before: [String: Int]?, _ session: SQLSession
  ) throws {
    guard let before, let after = try foreignKeyViolations(session) else { return }
    let total = before.values.reduce(0, +)
    for (reference, count) in after.sorted(by: { $0.key < $1.key })
    where count > before[reference] ?? 0 && after.values.reduce(0, +) > total {
      throw failure(
        .brokenReferences, "\(count) rows reference missing rows, from \(reference)")
    }
  }
}
