extension ModelArchiveReader {
  /// The deepest nesting that is read. Real expressions are far flatter.
  private static let depthLimit = 16

  /// An archived `NSExpression` as text: `pages`, `count:(pages)`, `now()`.
  ///
  /// - Returns: `nil` where there is none, or it is of an unknown kind.
  func expressionText(_ value: KeyedArchive.Value, depth: Int) throws(Problem) -> String? {
    guard depth < Self.depthLimit, let record = try archive.record(value) else { return nil }
    switch record.className {
    case "NSSelfExpression": return "SELF"
    case "NSKeyPathSpecifierExpression": return try archive.text(record["NSKeyPath"])
    case "NSVariableExpression": return try archive.text(record["NSVariable"]).map { "$\($0)" }
    case "NSConstantValueExpression":
      switch try archive.resolve(record["NSConstantValue"]) {
      case .text(let text): return "\"\(text)\""
      case .integer(let integer): return "\(integer)"
      case .unsigned(let integer): return "\(integer)"
      case .real(let real): return "\(real)"
      case .boolean(let boolean): return boolean ? "1" : "0"
      case .null: return "nil"
      default: return nil
      }
    case "NSKeyPathExpression":
      return try arguments(record, depth: depth).first ?? nil
    case "NSFunctionExpression":
      guard let name = try archive.text(record["NSSelectorName"]) else { return nil }
      var texts: [String] = []
      for argument in try arguments(record, depth: depth) {
        guard let argument else { return nil }
        texts.append(argument)
      }
      return "\(name)(\(texts.joined(separator: ", ")))"
    default: return nil
    }
  }

  private func arguments(_ record: KeyedArchive.Record, depth: Int) throws(Problem) -> [String?] {
    var texts: [String?] = []
    for argument in try archive.elements(record["NSArguments"]) {
      texts.append(try expressionText(argument, depth: depth + 1))
    }
    return texts
  }

  /// An archived `NSPredicate` as text: `rating > 3`, `(a == 1) AND (b == 2)`.
  ///
  /// - Returns: `nil` where there is none; "?" for an unknown kind.
  func predicateText(_ value: KeyedArchive.Value, depth: Int) throws(Problem) -> String? {
    guard let record = try archive.record(value) else { return nil }
    guard depth < Self.depthLimit else { return "?" }
    switch record.className {
    case "NSComparisonPredicate":
      guard let left = try expressionText(record["NSLeftExpression"], depth: depth + 1),
        let right = try expressionText(record["NSRightExpression"], depth: depth + 1),
        let kind = try archive.record(record["NSPredicateOperator"]),
        let number = try archive.integer(kind["NSOperatorType"]),
        Self.operators.indices.contains(Int(clamping: number))
      else { return "?" }
      return "\(left) \(Self.operators[Int(number)]) \(right)"
    case "NSCompoundPredicate":
      var texts: [String] = []
      for part in try archive.elements(record["NSSubpredicates"]) {
        texts.append("(\(try predicateText(part, depth: depth + 1) ?? "?"))")
      }
      switch try archive.integer(record["NSCompoundPredicateType"]) {
      case 0: return "NOT \(texts.joined())"
      case 1: return texts.joined(separator: " AND ")
      default: return texts.joined(separator: " OR ")
      }
    default: return "?"
    }
  }

  /// `NSComparisonPredicate.Operator`, by its raw value.
  private static let operators = ["<", "<=", ">", ">=", "==", "!="]
}
