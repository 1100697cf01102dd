import InstarSchema
import InstarStore

/// Changes the schema of an open plain store by one stage, in one transaction, and checks that everything that no model
/// describes still works.
struct PlainChangeExecutor {
  let change: PlainSchemaChange
  let searchIndexes: SearchIndexRebuild

  /// - Returns: every statement that was executed, in order.
  /// - Throws: `unexpectedStructure` where a trigger, view or virtual table names a table or column that was removed;
  ///   `brokenReferences` where rows reference rows that were removed; the error of a check of rows; the first error
  ///   of a statement. The store is then unchanged.
  func run(_ session: SQLSession) throws -> [ChangeStep] {
    try session.useOrdinaryTables()
    // The change moves rows and drops tables that others reference. The pragma has no effect in a transaction.
    try session.run("PRAGMA foreign_keys = OFF")
    try session.run("PRAGMA legacy_alter_table = OFF")
    let steps = try session.transaction {
      let violations = try foreignKeyViolations(session)
      let appCode = try AppCode(session)
      let steps = try change.run(session, searchIndexes)
      try requireStructure(session)
      try appCode.requireWorking(session)
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

  // MARK: References

  /// The number of rows that reference a missing row, by the two tables; `nil` where SQLite cannot check the foreign
  /// keys.
  private func foreignKeyViolations(_ session: SQLSession) throws -> [String: Int]? {
    // Preparing fails if a foreign key names a missing table or column. SQLite allows that in an app's tables.
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
