/// The rows that a check found: how many there are, and the keys of the first ones.
public struct AffectedRows: Sendable, Codable, Hashable {
  /// How many rows there are.
  public var count: Int
  /// The keys of the first rows as SQL literals, at most `keyLimit`; long ones are cut. A key of several columns is in
  /// parentheses. Empty if the rows have no key.
  public var keys: [String]

  /// The most keys that a check names.
  public static let keyLimit = 5

  /// Rows, of which only the first `keyLimit` keys are kept.
  public init(count: Int, keys: [String]) {
    self.count = count
    self.keys = Array(keys.prefix(Self.keyLimit))
  }

  /// "14 rows of Note have no value for required attribute 'uid': rows 3, 8, 12, 15, 21 and 9 others".
  ///
  /// - Parameters:
  ///   - owner: The entity or table.
  ///   - what: What is wrong with the rows: "no value for required attribute 'uid'".
  public func sentence(of owner: String, have what: String) -> String {
    "\(count.counted("row")) of \(owner) \(count == 1 ? "has" : "have") \(what)\(suffix)"
  }

  /// ": rows 3, 8, 12, 15, 21 and 9 others"; empty if the rows have no keys.
  public var suffix: String { keys.isEmpty ? "" : ": \(text)" }

  /// "rows 3, 8, 12, 15, 21 and 9 others".
  public var text: String {
    guard !keys.isEmpty else { return count.counted("row") }
    let list = keys.joined(separator: ", ")
    let others = count - keys.count
    let rest = others < 1 ? "" : " and \(others.counted("other"))"
    return "\(count.noun("row")) \(list)\(rest)"
  }
}
