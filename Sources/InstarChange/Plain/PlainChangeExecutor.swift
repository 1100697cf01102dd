import InstarSchema
import InstarStore

/// Changes the schema of an open plain store by one stage, in one transaction, and checks that everything that no model
/// describes still works.
struct PlainChangeExecutor {
  let change: PlainSchemaChange
  let searchIndexes: SearchIndexRebuild

  /// - Returns: every statement that was executed, in order.
  /// - Throws: `unexpectedStructure` where a trigger, view or virtual table names a table or column that was removed;
  ///   the error of a check of rows; the first error of a statement. The store is then in any state.
  func run(_ session: SQLSession) throws -> [ChangeStep] {
    try session.useOrdinaryTables()
    // The change moves rows and drops tables that others reference. The pragma has no effect in a transaction.
    try session.run("PRAGMA foreign_keys = OFF")
    try session.run("PRAGMA legacy_alter_table = OFF")
    let appCode = try session.transaction { try AppCode(session) }
    let (steps, asideNames) = try session.transactionWithoutRollback {
      let made = try change.run(session, searchIndexes)
      try requireStructure(session)
      return made
    }
    do {
      try session.transaction { try appCode.requireWorking(session) }
    } catch let error as InstarError {
      throw error.naming(asideNames)
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
          + differences.joined(separator: "\n"), next: InstarError.adviceOnDefect)
    }
  }
}
