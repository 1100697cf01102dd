/// An expression over the columns of one row, for any alias of its table.
public struct RowExpression: Sendable, Hashable {
  /// The alias and a dot go between each two parts.
  private let parts: [String]

  /// An expression of these parts: the row's alias and a dot stand between each two.
  public init(parts: [String]) { self.parts = parts }

  /// The column itself.
  public init(column: String) { parts = ["", column] }

  /// Returns the expression for a row with an alias.
  public func sql(_ alias: String) -> String { parts.joined(separator: "\(alias).") }

  /// Returns the expression as the argument of a function.
  public func passed(to function: String) -> RowExpression {
    guard let first = parts.first, let last = parts.last, parts.count > 1 else { return self }
    return RowExpression(
      parts: ["\(function)(\(first)"] + parts.dropFirst().dropLast() + ["\(last))"])
  }
}
