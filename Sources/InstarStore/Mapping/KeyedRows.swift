package import GRDB
package import InstarSchema

/// Rows of one table, and the columns that tell them apart. Errors and findings name rows by these.
package struct KeyedRows: Hashable, Sendable {
  /// The table as SQL, with an alias if the other texts use one.
  private let table: String
  /// The conditions that all rows meet.
  private let conditions: [String]
  /// As SQL. Empty where rows are only counted.
  private let keys: [String]

  package init(table: String, conditions: [String] = [], keys: [String]) {
    self.table = table
    self.conditions = conditions
    self.keys = keys
  }

  /// The rows of an entity and its subentities.
  package init(of entity: EntityLayout) {
    self.init(
      table: entity.table, conditions: [entity.rowCondition].compactMap(\.self),
      keys: entity.key.columns)
  }

  /// All rows of an entity's table, also those of other entities: an index covers them all.
  package init(ofTableOf entity: EntityLayout) {
    self.init(table: entity.table, keys: entity.key.columns)
  }

  /// What follows FROM.
  package var source: String { source(conditions) }

  private func source(_ conditions: [String]) -> String {
    table + (conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))")
  }

  /// The key of a row as one text.
  private var literal: String {
    let literals = keys.map { "substr(quote(\($0)), 1, \(Self.longestKey))" }
    return literals.count == 1
      ? literals[0] : "'(' || \(literals.joined(separator: " || ', ' || ")) || ')'"
  }

  private static let longestKey = 60

  /// Whether any row meets one more condition.
  package func hasRows(_ db: Database, where condition: String) throws -> Bool {
    let rows = source(conditions + [condition])
    return try db.integer("SELECT 1 FROM \(rows) LIMIT 1") != nil
  }

  /// Whether any row meets one of many conditions. Nearly always none does, and one OR of all conditions takes less
  /// time than a sum for each.
  package func hasRows(_ db: Database, whereAny conditions: [String]) throws -> Bool {
    try stride(from: 0, to: conditions.count, by: Self.conditionsAtOnce).contains { start in
      let some = conditions[start..<min(start + Self.conditionsAtOnce, conditions.count)]
      return try hasRows(db, where: "(\(some.joined(separator: " OR ")))")
    }
  }

  /// SQLite limits the depth of an expression to 1,000.
  private static let conditionsAtOnce = 400

  /// Returns the rows that meet more conditions; `nil` for none.
  package func affected(
    _ db: Database, where more: [String] = [], arguments: StatementArguments = StatementArguments()
  ) throws -> AffectedRows? {
    let source = source(conditions + more)
    let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(source)", arguments: arguments)
    guard let count, count > 0 else { return nil }
    if keys.isEmpty { return AffectedRows(count: count, keys: []) }
    let found = try String.fetchAll(
      db,
      sql: "SELECT \(literal) FROM \(source) ORDER BY \(keys.joined(separator: ", ")) "
        + "LIMIT \(AffectedRows.keyLimit)", arguments: arguments)
    return AffectedRows(count: count, keys: found)
  }

  /// Returns the rows whose values of these terms other rows have too; `nil` for none. NULL is equal to nothing.
  package func repeated(_ db: Database, _ terms: [String]) throws -> AffectedRows? {
    let present = terms.map { "(\($0)) IS NOT NULL" }
    let list = terms.joined(separator: ", ")
    let rows = "SELECT \(list) FROM \(source(conditions + present))"
    // Hashes tell in a third of the time that nothing is repeated, as SQL has to sort all values.
    guard try RepeatedValues.mayRepeat(db, rows) else { return nil }
    let groups = "\(rows) GROUP BY \(list) HAVING count(*) > 1"
    guard try Int.fetchOne(db, sql: "SELECT 1 FROM (\(groups)) LIMIT 1") != nil else { return nil }
    return try affected(db, where: present + ["(\(list)) IN (\(groups))"])
  }

  /// Returns the rows of this database whose keys the rows of another one do not have; `nil` for none, or where the
  /// keys have another number of columns there.
  package func missing(
    _ db: Database, in rows: KeyedRows, _ other: Database
  ) throws -> AffectedRows? {
    guard keys.count == rows.keys.count else { return nil }
    let list = keys.joined(separator: ", ")
    let all = try Row.fetchCursor(
      db, sql: "SELECT \(list), \(literal) FROM \(source) ORDER BY \(list)")
    let equal = rows.keys.map { "\($0) = ?" }
    let find = try other.makeStatement(
      sql: "SELECT 1 FROM \(rows.source(rows.conditions + equal)) LIMIT 1")
    var missing = AffectedRows(count: 0, keys: [])
    while let row = try all.next() {
      let key = StatementArguments(row.databaseValues.dropLast())
      guard try Int.fetchOne(find, arguments: key) == nil else { continue }
      missing.count += 1
      if missing.keys.count < AffectedRows.keyLimit, let text: String = row.get(keys.count) {
        missing.keys.append(text)
      }
    }
    return missing.count > 0 ? missing : nil
  }
}
