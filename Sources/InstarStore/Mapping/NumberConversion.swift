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
    let isWhole = "\(isNumber) AND \(column) = CAST(\(column) AS INTEGER)"
    switch (old, new) {
    case (.bool, .int16), (.bool, .int32), (.bool, .int64), (.bool, .decimal),
      (.int16, .decimal), (.int32, .decimal), (.int64, .decimal):
      return "CASE WHEN typeof(\(column)) = 'integer' THEN \(column) END"
    case (.int16, .bool), (.int32, .bool), (.int64, .bool):
      return "CASE WHEN \(column) IN (0, 1) THEN \(column) END"
    case (.bool, .double), (.bool, .float), (.int16, .double), (.int32, .double),
      (.int64, .double), (.int16, .float), (.int32, .float), (.int64, .float):
      let limit = new == .float ? "16777216" : "9007199254740992"
      return "CASE WHEN typeof(\(column)) = 'integer' AND \(column) BETWEEN -\(limit) AND \(limit) "
        + "THEN CAST(\(column) AS REAL) END"
    case (.decimal, .double):
      return "CASE WHEN \(isNumber) THEN CAST(\(column) AS REAL) END"
    case (.float, .decimal), (.double, .decimal):
      return "CASE WHEN \(isNumber) THEN \(column) END"
    case (.double, .int16), (.float, .int16), (.decimal, .int16):
      return whole(column, isWhole, -32_768, 32_767)
    case (.double, .int32), (.float, .int32), (.decimal, .int32):
      return whole(column, isWhole, -2_147_483_648, 2_147_483_647)
    case (.double, .int64), (.float, .int64), (.decimal, .int64):
      return whole(column, isWhole, -9_007_199_254_740_992, 9_007_199_254_740_992)
    default: return nil
    }
  }

  private static func whole(
    _ column: String, _ condition: String, _ lowest: Int, _ highest: Int
  ) -> String {
    "CASE WHEN \(condition) AND \(column) BETWEEN \(lowest) AND \(highest) "
      + "THEN CAST(\(column) AS INTEGER) END"
  }
}
