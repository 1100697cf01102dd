package import InstarSchema
package import InstarStore
import InstarWire

/// What stages leave in a store, found on an empty copy of its schema by the code that a run uses.
package struct ExpectedSchema: Sendable {
  package let text: SchemaText
  /// Whether a change of schema writes rows of the app. Adding or renaming columns and making indexes does not.
  package let rewritesRows: Bool
}

extension SchemaText {
  /// Returns what stages leave in a store with this schema.
  ///
  /// - Parameters:
  ///   - stages: In the order in which they run.
  ///   - rows: Statements that write the rows that a change of schema reads.
  /// - Throws: The error that would end the run where the store's structure is the cause.
  package func after(_ stages: [SchemaStage], rows: [String]) throws(InstarError) -> ExpectedSchema
  {
    let store = try EmptyStore(copying: self, rows: rows)
    var rewritesRows = false
    for stage in stages {
      let changes = try store.make(SchemaChange(stage))
      rewritesRows = rewritesRows || changes.contains(where: \.rewritesRows)
    }
    return ExpectedSchema(text: try store.schemaText(), rewritesRows: rewritesRows)
  }
}

extension PlannedChange {
  fileprivate var rewritesRows: Bool {
    kind != .bookkeeping && statements.contains { !$0.leavesRows }
  }
}

extension PlannedStatement {
  /// Whether SQLite only writes the schema, or an index.
  private static let schemaStatements = ["ADD COLUMN", "RENAME COLUMN", "RENAME TO"]

  fileprivate var leavesRows: Bool {
    let isAlteration =
      sql.hasPrefix("ALTER TABLE")
      && Self.schemaStatements.contains { sql.contains(" \($0) ") }
    return isAlteration
      || ["CREATE ", "DROP INDEX", "DROP TRIGGER"].contains { sql.hasPrefix($0) }
  }
}
