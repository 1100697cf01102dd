/// An expectation about a migration that is not met.
public struct ExpectationFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is not as expected, in one sentence.
  public let message: String
  /// The differences, or what to do.
  public let details: [String]

  /// How many details the description shows.
  private static let shownCount = 20

  init(_ message: String, _ details: [String] = []) {
    self.message = message
    self.details = details
  }

  /// The message and the first details, one a line.
  public var description: String {
    let rest = details.count - Self.shownCount
    return
      ([message]
      + details.prefix(Self.shownCount)
      .map {
        "  " + $0.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\n  ")
      }
      + (rest > 0 ? ["  and \(rest) more"] : [])).joined(separator: "\n")
  }
}
