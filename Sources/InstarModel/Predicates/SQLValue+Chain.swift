// Conditions that are joined by AND or OR.

extension SQLValue {
  struct Chain {
    /// AND or OR.
    let sign: String
    let conditions: [String]
  }

  /// Joins two conditions. All of a chain are in one pair of parentheses, because SQLite limits how deep these nest.
  static func joined(
    _ left: SQLValue, _ sign: String, _ right: SQLValue, guards: [String]
  ) -> SQLValue {
    let conditions = left.conditions(joinedBy: sign) + right.conditions(joinedBy: sign)
    var joined = SQLValue.condition(text(of: conditions[...], sign), guards: guards)
    joined.chain = Chain(sign: sign, conditions: conditions)
    return joined
  }

  private func conditions(joinedBy sign: String) -> [String] {
    if let chain, chain.sign == sign { chain.conditions } else { [sql] }
  }

  /// A long chain is halved, because SQLite also limits the depth of the tree that it makes of an expression.
  private static func text(of conditions: ArraySlice<String>, _ sign: String) -> String {
    if conditions.count <= 100 { return "(\(conditions.joined(separator: " \(sign) ")))" }
    let middle = conditions.startIndex + conditions.count / 2
    return
      "(\(text(of: conditions[..<middle], sign)) \(sign) \(text(of: conditions[middle...], sign)))"
  }
}
