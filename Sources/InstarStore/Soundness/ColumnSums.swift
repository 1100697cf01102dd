internal import CDatabase
internal import GRDB
internal import GRDBSQLite

/// Columns of one table. A check that reads them depends on no other value of the table.
package struct ColumnList: Hashable, Sendable {
  /// As SQL.
  package let table: String
  /// As SQL.
  package let columns: [String]

  package init(table: String, columns: [String]) {
    self.table = table
    self.columns = columns
  }
}

/// Sums over the values in columns of a store: they tell whether its clone has the same values there.
///
/// Columns with equal sums have the same values, those of a row together, and each as often. So a check that reads only
/// these columns has the same result in both. The sums have keys that the process chose at random, so no plugin can
/// write other values with equal sums. Sums of two processes cannot be compared.
package struct ColumnSums: Sendable {
  private struct Sum: Hashable {
    let count: Int64
    let sum: UInt64
    /// The declared type and the collation of each column: they decide which values SQLite takes for equal.
    let types: [String]
  }

  private var sums: [ColumnList: Sum] = [:]

  /// Sums of no columns.
  package init() {}

  mutating func add(
    _ list: ColumnList, _ fingerprint: instar_fingerprint, _ db: Database
  ) {
    sums[list] = Sum(
      count: fingerprint.count, sum: fingerprint.sum,
      types: list.columns.map { Self.type(of: $0, in: list.table, db) })
  }

  /// Whether columns here have the same values as columns there. `false` where either were not summed.
  package func hasValues(in list: ColumnList, of earlier: ColumnSums, in other: ColumnList) -> Bool
  {
    guard let here = sums[list], let there = earlier.sums[other] else { return false }
    return here == there
  }

  private static func type(of column: String, in table: String, _ db: Database) -> String {
    var (type, collation): (UnsafePointer<CChar>?, UnsafePointer<CChar>?)
    let code = sqlite3_table_column_metadata(
      db.sqliteConnection, "main", SQLToken.name(ofSQL: table), SQLToken.name(ofSQL: column), &type,
      &collation, nil, nil, nil)
    guard code == SQLITE_OK else { return "" }
    return [type, collation].map { $0.map { String(cString: $0) } ?? "" }.joined(separator: " ")
  }
}
