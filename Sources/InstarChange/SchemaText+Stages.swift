package import InstarSchema
package import InstarStore
import InstarWire

/// What stages leave in a store, found on an empty copy of its schema by the code that a run uses.
package struct ExpectedSchema: Sendable {
  package let text: SchemaText
  /// What the changes of schema do to rows of the app.
  package let rows: RowChange
  /// For each stage the statements that make it on every store with this schema; `nil` where they depend on rows of the
  /// app.
  package let statements: [[String]]?
}

/// What a change of schema does to rows of the app, from the least to the most.
package enum RowChange: Comparable, Sendable {
  /// Nothing: SQLite only writes the schema, and Instar the small tables that the format maintains.
  case none
  /// Nothing but the history: Instar updates or deletes rows of it.
  case updatesHistory
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
    var statements: [[String]] = []
    var dependsOnRows = hasCodeOfApp
    for stage in stages {
      let (changes, reads) = try store.makeCollectingReads(SchemaChange(stage))
      change = changes.map(\.rowChange).reduce(change, max)
      statements.append(
        changes.flatMap(\.statements).sorted { $0.position < $1.position }.map(\.sql))
      if !stage.changesThatNeedRows.isEmpty || reads.contains(where: \.isOfRows) {
        dependsOnRows = true
      }
    }
    let text = try store.schemaText()
    let areKnown =
      !dependsOnRows && !text.hasCodeOfApp && !statements.joined().contains(where: Self.usesJSON)
    return ExpectedSchema(text: text, rows: change, statements: areKnown ? statements : nil)
  }

  /// Whether the schema has objects that a change of schema may have to compile or read, a table with the name of a
  /// function of SQLite, or an index whose order depends on the format of the file.
  private var hasCodeOfApp: Bool {
    objects.contains { object in
      ["view", "trigger"].contains(object.type) || object.type == "table" && object.tree == .none
        || object.name.hasPrefix(ReadColumn.pragmaPrefix)
        || object.type == "index" && SQLToken.names(in: object.sql ?? "").contains("desc")
    }
  }

  /// A clone's connection distrusts the schema, and SQLite 3.40 then refuses to add its own JSON functions to one.
  private static func usesJSON(_ statement: String) -> Bool {
    statement.contains("->") || statement.lowercased().contains("json")
  }
}

extension ReadColumn {
  fileprivate static let pragmaPrefix = "pragma_"

  /// Whether the value may differ between stores with the same schema and the same statements for bookkeeping rows.
  fileprivate var isOfRows: Bool {
    switch table {
    case "sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema": false
    // These statements have neither the highest keys nor the app's own values.
    case "Z_PRIMARYKEY": !["Z_ENT", "Z_NAME", "Z_SUPER"].contains(name)
    case "Z_METADATA": false
    default: !table.hasPrefix(Self.pragmaPrefix)
    }
  }
}

extension PlannedChange {
  fileprivate var rowChange: RowChange {
    let change = statements.map(\.rowChange).max() ?? .none
    guard kind == .bookkeeping else { return change }
    if statements.allSatisfy({ $0.rowChange == .none || $0.onlyUpdatesHistory }) {
      return min(change, .updatesHistory)
    }
    let isSmall = statements.allSatisfy(\.onlyUpdatesOrDeletes)
    return min(change, isSmall ? .updatesBooks : .keepsValues)
  }
}

extension PlannedStatement {
  fileprivate var onlyUpdatesOrDeletes: Bool {
    ["UPDATE ", "DELETE FROM "].contains(where: sql.hasPrefix)
  }

  fileprivate var onlyUpdatesHistory: Bool {
    writes(StoreFormat.coredata.historyTables, by: ["UPDATE", "DELETE FROM"])
  }

  private func writes(_ tables: [String], by actions: [String]) -> Bool {
    tables.contains { table in actions.contains { sql.hasPrefix("\($0) \(table) ") } }
  }

  fileprivate var rowChange: RowChange {
    func alters(by action: String) -> Bool {
      sql.hasPrefix("ALTER TABLE") && sql.contains(" \(action) ")
    }
    let writesBooks = writes(
      StoreFormat.coredata.bookkeepingTables, by: ["INSERT INTO", "UPDATE", "DELETE FROM"])
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
