/// What tells a row of a table from all others, as one 64-bit key.
public struct RowKey: Sendable, Hashable {
  /// Gives the key of a row.
  public let reading: RowExpression
  /// As they stand in SQL: the rowid, or the primary key of a table that has no rowid.
  public let columns: [String]
  /// Whether the key is the value of the one column, by which SQLite finds and orders rows.
  public let isRowID: Bool
  /// The name by which `RowKeys` knows the table, where it is not.
  let table: String?
  private var tableLiteral: String? { table?.quoted(by: UInt8(ascii: "'")) }

  /// A key that is the value of a column: the rowid, by whatever name.
  public init(rowID column: String) {
    columns = [column]
    reading = RowExpression(column: column)
    isRowID = true
    table = nil
  }

  /// A key that `RowKeys` gives to each value of a primary key.
  public init(primaryKey columns: [String], ofTable table: String) {
    self.columns = columns
    reading = RowKeys.reading(table.quoted(by: UInt8(ascii: "'")), columns)
    isRowID = false
    self.table = table
  }

  /// The condition on the row that has a key.
  public func condition(_ alias: String, equals key: String) -> String {
    zip(columns, values(of: key)).map { "\(alias).\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// Gives the key that values of the primary key have, where the key is no rowid.
  public func statement(ofKeyOf values: [String]) -> String? {
    tableLiteral.map { "SELECT \(RowKeys.key)(\($0), \(values.joined(separator: ", ")))" }
  }

  /// Whether the key is a rowid that no column shows.
  public var isHidden: Bool { isRowID && ["rowid", "_rowid_", "oid"].contains(columns[0]) }

  /// What the columns hold in the row with a key.
  func values(of key: String) -> [String] {
    guard let table = tableLiteral else { return [key] }
    return columns.indices.map { "\(RowKeys.part)(\(table), \($0), \(key))" }
  }

  func reading(_ columns: [String]) -> RowExpression {
    tableLiteral.map { RowKeys.reading($0, columns) } ?? RowExpression(column: columns[0])
  }
}
