package import InstarSchema
package import InstarStore
import InstarWire

/// What stages leave in a store, found on an empty copy of its schema by the code that a run uses.
package struct ExpectedSchema: Sendable {
  package let text: SchemaText
  /// What the changes of schema do to rows of the app.
  package let rows: RowChange
}

/// What a change of schema does to rows of the app, from the least to the most.
package enum RowChange: Comparable, Sendable {
  /// Nothing: SQLite only writes the schema, and Instar the small tables that the format maintains.
  case none
  /// No value of the app and no index: Instar updates or deletes what the format keeps in rows. A row grows by some
  /// bytes at most.
  case updatesBooks
  /// No value of the app: SQLite makes or removes indexes and tables, and Instar writes what the format keeps in rows.
  case keepsValues
  /// SQLite writes each row of a table without a column. Keys and all other values stay.
  case dropsColumn
  /// Statements of Instar write rows.
  case writes
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
    var change = RowChange.none
    for stage in stages {
      let changes = try store.make(SchemaChange(stage))
      change = changes.map(\.rowChange).reduce(change, max)
    }
    return ExpectedSchema(text: try store.schemaText(), rows: change)
  }
}

extension PlannedChange {
  fileprivate var rowChange: RowChange {
    let change = statements.map(\.rowChange).max() ?? .none
    guard kind == .bookkeeping else { return change }
    let isSmall = statements.allSatisfy(\.onlyUpdatesOrDeletes)
    return min(change, isSmall ? .updatesBooks : .keepsValues)
  }
}

extension PlannedStatement {
  fileprivate var onlyUpdatesOrDeletes: Bool {
    ["UPDATE ", "DELETE FROM "].contains(where: sql.hasPrefix)
  }

  fileprivate var rowChange: RowChange {
    func alters(by action: String) -> Bool {
      sql.hasPrefix("ALTER TABLE") && sql.contains(" \(action) ")
    }
    let writesBooks = StoreFormat.coredata.bookkeepingTables.contains { table in
      ["INSERT INTO", "UPDATE", "DELETE FROM"].contains { sql.hasPrefix("\($0) \(table) ") }
    }
    if writesBooks || ["ADD COLUMN", "RENAME COLUMN", "RENAME TO"].contains(where: alters) {
      return .none
    }
    if ["CREATE TRIGGER", "CREATE VIEW", "DROP TRIGGER"].contains(where: sql.hasPrefix) {
      return .none
    }
    if ["CREATE ", "DROP INDEX"].contains(where: sql.hasPrefix) { return .keepsValues }
    return alters(by: "DROP COLUMN") ? .dropsColumn : .writes
  }
}
