/// How many tables a probe counts the rows of, which reads whole tables.
@frozen
public enum RowCounting: String, Sendable, Codable, Hashable {
  /// No table.
  case none
  /// Table after table for some tenths of a second; the others are not counted.
  case quick
  /// Every table.
  case all
}
