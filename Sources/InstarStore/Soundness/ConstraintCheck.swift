internal import GRDB

/// Evaluates what SQLite checks only when it writes a row: CHECK constraints and stored generated columns.
///
/// A connection that cannot write does not even parse CHECK constraints, so their expressions are taken from the text
/// of the table. `quick_check` covers NOT NULL, and a virtual generated column is computed when it is read.
enum ConstraintCheck {
  /// A condition that counts the rows which violate something.
  private struct Rule {
    let subject: String
    let violation: String
  }

  /// A table with constraints.
  private struct Table {
    let name: String
    let rules: [Rule]
  }

  private static let known = SchemaCache<[Table]>()

  /// Returns one sentence for each violated constraint.
  ///
  /// A constraint that calls a function of the app cannot be evaluated here, not even by `integrity_check`, and is left
  /// out.
  static func findings(_ db: Database) throws -> [String] {
    let tables = try known.value(of: SchemaKey.read(db)) { try readTables(db) }
    return try tables.flatMap { table in
      try findings(db, in: table.name, table.rules.filter { canEvaluate($0, in: table.name, db) })
    }
  }

  private static func readTables(_ db: Database) throws -> [Table] {
    let generated = try generatedColumns(db)
    let tables = try Row.fetchAll(
      db,
      sql: """
        SELECT name, CAST(sql AS TEXT) FROM sqlite_master
        WHERE type = 'table' AND rootpage > 0 AND sql IS NOT NULL ORDER BY rowid
        """)
    return tables.compactMap { row in
      guard let table: String = row.get(0), let text = CreateTableText(row.get(1) ?? "") else {
        return nil
      }
      let rules = text.items.flatMap { Self.rules(of: $0, generated[table] ?? []) }
      return rules.isEmpty ? nil : Table(name: table, rules: rules)
    }
  }

  private static func findings(
    _ db: Database, in table: String, _ rules: [Rule]
  ) throws -> [String] {
    guard !rules.isEmpty else { return [] }
    let rows = try StatementReader(db, statement(rules, in: table))
    guard try rows.next() else { return [] }
    return rules.enumerated().compactMap { position, rule in
      let count = rows.integer(position)
      return count > 0 ? "\(count) rows of table '\(table)' violate \(rule.subject)" : nil
    }
  }

  private static func statement(_ rules: [Rule], in table: String) -> String {
    let sums = rules.map { "coalesce(sum(\($0.violation)), 0)" }.joined(separator: ", ")
    return "SELECT \(sums) FROM \(SQLIdentifier.sql(table)) NOT INDEXED"
  }

  /// A rule that SQLite cannot compile here calls functions or collations that only the app has.
  private static func canEvaluate(_ rule: Rule, in table: String, _ db: Database) -> Bool {
    (try? StatementReader(db, statement([rule], in: table))) != nil
  }

  private static func rules(
    of item: CreateTableText.Item, _ generated: Set<String>
  ) -> [Rule] {
    let checks = item.clauses("CHECK").map { clause in
      // A constraint is violated where it is false, not where it is NULL.
      Rule(subject: clause, violation: "NOT (\(clause.dropFirst("CHECK".utf8.count)))")
    }
    guard let column = item.column, generated.contains(column.lowercased()),
      let clause = item.clauses("AS").first
    else { return checks }
    let rule = Rule(
      subject: "generated column '\(column)'",
      violation:
        "\(SQLIdentifier.sql(column)) IS NOT (\(clause.dropFirst("AS".utf8.count))) COLLATE BINARY")
    return checks + [rule]
  }

  /// The stored generated columns of each table, in lower case.
  private static func generatedColumns(_ db: Database) throws -> [String: Set<String>] {
    let stored = 3
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_xinfo(m.name) AS c
        WHERE m.type = 'table' AND m.rootpage > 0 AND c.hidden = \(stored)
        """)
    return Dictionary(grouping: rows) { $0.get(0) ?? "" }.mapValues { rows in
      Set(rows.compactMap { ($0.get(1) as String?)?.lowercased() })
    }
  }
}
