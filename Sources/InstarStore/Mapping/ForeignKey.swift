/// Columns by which a row refers to a row of another table.
public struct ForeignKey: Sendable, Hashable {
  /// As SQL.
  public let columns: [String]
  /// The columns of the other table whose values these hold; `nil` for the other row's key itself.
  public let target: Target?
  private let key: RowKey

  /// Columns of another table that are not the key that models use.
  public struct Target: Sendable, Hashable {
    /// As SQL.
    public var table: String
    /// As SQL, in the order of the columns that refer to them.
    public var columns: [String]
  }

  init(columns: [String], target: Target? = nil, key: RowKey) {
    self.columns = columns
    self.target = target
    self.key = key
  }

  /// The columns, separated by commas.
  package var list: String { columns.joined(separator: ", ") }

  /// The columns of the other table whose values these hold; `nil` for the other row's 64-bit key.
  public var referredColumns: [String]? { target?.columns ?? (key.isRowID ? nil : key.columns) }

  /// The key of the row that is referred to, or NULL.
  public var reading: RowExpression {
    guard let target else { return key.reading(columns) }
    // The other row has the alias k; the columns that it is compared with belong to the referring row.
    let pairs = zip(target.columns, columns)
    var parts = ["(SELECT \(key.reading.sql("k")) FROM \(target.table) AS k WHERE "]
    for (index, (other, own)) in pairs.enumerated() {
      parts[parts.count - 1] += "\(index == 0 ? "" : " AND ")k.\(other) = "
      parts.append(own)
    }
    parts[parts.count - 1] += ")"
    return RowExpression(parts: parts)
  }

  /// Returns the condition on rows that refer to the row with a key.
  public func condition(_ alias: String, equals key: String) -> String {
    zip(columns, values(of: key)).map { "\(alias).\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// Returns the columns' values in a row that refers to the row with a key.
  public func values(of key: String) -> [String] {
    guard let target else { return self.key.values(of: key) }
    let found = "FROM \(target.table) AS k WHERE \(self.key.condition("k", equals: key))"
    return target.columns.map { "(SELECT k.\($0) \(found))" }
  }

  /// Returns the assignment that makes a row refer to the row with a key.
  public func assignment(of key: String) -> String {
    zip(columns, values(of: key)).map { "\($0) = \($1)" }.joined(separator: ", ")
  }

  /// Returns the condition on the row of the other table that a row refers to.
  public func condition(_ alias: String, refersTo other: String) -> String {
    zip(columns, target?.columns ?? key.columns).map { "\(other).\($1) = \(alias).\($0)" }
      .joined(separator: " AND ")
  }
}
