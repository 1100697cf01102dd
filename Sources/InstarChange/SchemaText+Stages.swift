package import InstarSchema
package import InstarStore

/// What stages leave in a store, found on an empty copy of its schema by the code that a run uses.
package struct ExpectedSchema: Sendable {
  package let text: SchemaText
  /// What the changes of schema do to rows of the app.
  package let rows: RowChange
  /// For each stage the statements that make it on every store with this schema; `nil` where they depend on rows of the
  /// app.
  package let statements: [[String]]?
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
      let (steps, reads) = try store.makeCollectingReads(SchemaChange(stage))
      change = steps.map(\.rowChange).reduce(change, max)
      statements.append(steps.map(\.sql))
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
