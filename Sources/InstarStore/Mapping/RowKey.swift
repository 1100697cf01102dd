/// How a row of a table is identified by one 64-bit key.
public struct RowKey: Sendable, Hashable {
  /// The key of a row, as SQL.
  public let reading: RowExpression
  /// The rowid, or the primary key of a table without rowid, as SQL.
  public let columns: [String]
  /// Whether the key is the value of the one column, by which SQLite finds and orders rows.
  public let isRowID: Bool
  /// The table's name in `RowKeys`; `nil` for a rowid.
  let table: String?
  private var tableLiteral: String? { table?.quoted(by: UInt8(ascii: "'")) }

  /// Creates a key that is the value of a column: the rowid, under any name.
  public init(rowID column: String) {
    columns = [column]
    reading = RowExpression(column: column)
    isRowID = true
    table = nil
  }

  /// Creates a key that `RowKeys` assigns to each value of a primary key.
  public init(primaryKey columns: [String], ofTable table: String) {
    self.columns = columns
    reading = RowKeys.reading(table.quoted(by: UInt8(ascii: "'")), columns)
    isRowID = false
    self.table = table
  }

  /// Returns the condition on the row with a key.
  public func condition(_ alias: String, equals key: String) -> String {
    zip(columns, values(of: key)).map { "\(alias).\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// Returns a statement for the key of primary key values; `nil` for a rowid.
  public func statement(ofKeyOf values: [String]) -> String? {
    tableLiteral.map { "SELECT \(RowKeys.key)(\($0), \(values.joined(separator: ", ")))" }
  }

  /// Whether the key is a rowid without a column.
  public var isHidden: Bool { isRowID && ["rowid", "_rowid_", "oid"].contains(columns[0]) }

  /// Returns the columns' values in the row with a key.
  func values(of key: String) -> [String] {
    guard let table = tableLiteral else { return [key] }
    return columns.indices.map { "\(RowKeys.part)(\(table), \($0), \(key))" }
  }

  func reading(_ columns: [String]) -> RowExpression {
    tableLiteral.map { RowKeys.reading($0, columns) } ?? RowExpression(column: columns[0])
  }
}
