public import InstarSchema

/// A column that holds an attribute, or a field of one.
public struct StoredColumn: Sendable, Hashable {
  /// As SQL.
  public var name: String
  /// The value as models hold it in memory.
  public var reading: RowExpression
  /// The parameter for a value as models hold it.
  public var parameter: String
  /// The encoding of stored values; `nil` where they are stored as models hold them.
  public var encoding: Schema.Column.Encoding?
  /// Whether SQLite computes the value, so that it is never written.
  public var isGenerated = false
  /// Whether large values are in files, with only their names in the column (see `ExternalValues`).
  public var mayBeExternal = false

  /// Creates a column whose values are stored as models hold them.
  public init(name: String) {
    self.name = name
    reading = RowExpression(column: name)
    parameter = "?"
  }
}
