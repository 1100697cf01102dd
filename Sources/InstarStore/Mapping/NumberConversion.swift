public import InstarSchema

/// Conversions between kinds of numbers that keep the value.
public enum NumberConversion {
  /// The converted value of a column in SQL, NULL where the new type has no such number; `nil` where the types are not
  /// two kinds of numbers.
  ///
  /// - Parameter keepsDecimalsAsNumbers: Whether the column is of a format that does; decimals in text are left alone.
  public static func sql(
    _ column: String, from old: Schema.AttributeType, to new: Schema.AttributeType,
    keepsDecimalsAsNumbers: Bool
  ) -> String? {
    if !keepsDecimalsAsNumbers, old == .decimal || new == .decimal { return nil }
    let isNumber = "typeof(\(column)) IN ('integer', 'real')"
    let integer = "CASE WHEN typeof(\(column)) = 'integer' THEN \(column) END"
    let wasWhole = old == .bool || old.isInteger
    let wasReal = old == .double || old == .float
    switch new {
    case .bool where old.isInteger:
      return "CASE WHEN \(column) IN (0, 1) THEN \(column) END"
    case _ where new.isInteger && old == .bool, .decimal where wasWhole:
      return integer
    case _ where new.isInteger && (wasReal || old == .decimal):
      let range = wholeRange(of: new)
      return "CASE WHEN \(isNumber) AND \(column) = CAST(\(column) AS INTEGER) AND \(column) "
        + "BETWEEN \(range.lowerBound) AND \(range.upperBound) THEN CAST(\(column) AS INTEGER) END"
    case .decimal where wasReal:
      return "CASE WHEN \(isNumber) THEN \(column) END"
    case .double where old == .decimal:
      return "CASE WHEN \(isNumber) THEN CAST(\(column) AS REAL) END"
    case .double where wasWhole, .float where wasWhole:
      let limit = new == .float ? "16777216" : "9007199254740992"
      return "CASE WHEN typeof(\(column)) = 'integer' AND \(column) BETWEEN -\(limit) AND \(limit) "
        + "THEN CAST(\(column) AS REAL) END"
    default: return nil
    }
  }

  /// The whole numbers that an integer type and a double both hold exactly.
  private static func wholeRange(of type: Schema.AttributeType) -> ClosedRange<Int> {
    type.integerRange ?? -9_007_199_254_740_992...9_007_199_254_740_992
  }
}
