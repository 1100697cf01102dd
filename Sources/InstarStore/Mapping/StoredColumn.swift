public import InstarSchema

/// A column that holds an attribute, or a field of one.
public struct StoredColumn: Sendable, Hashable {
  /// As it stands in SQL.
  public var name: String
  /// Gives the value as models keep it in memory.
  public var reading: RowExpression
  /// The parameter that a value as models keep it is bound to.
  public var parameter: String
  /// How values are written; `nil` where that is as models keep them.
  public var encoding: Schema.Column.Encoding?
  /// Whether SQLite computes the value: it is never written.
  public var isGenerated = false
  /// Whether a large value is kept in a file, and what the column holds is only its name (see `ExternalValues`).
  public var mayBeExternal = false

  /// A column that holds values as models keep them.
  public init(name: String) {
    self.name = name
    reading = RowExpression(column: name)
    parameter = "?"
  }
}
