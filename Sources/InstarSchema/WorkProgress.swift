/// How far a long piece of work inside a stage is.
public struct WorkProgress: Sendable, Codable, Hashable {
  /// What is counted: "rows of Note", or what a closure of the plan calls it.
  public var what: String
  /// How many of them are done.
  public var done: Int
  /// How many there are; left out where nobody knows.
  public var total: Int?
  /// How many are done in a second, on average since the work began.
  public var perSecond: Double
  /// The time until all are done at this speed; left out without `total`.
  public var secondsLeft: Double?

  /// Progress that was measured `seconds` after the work began.
  public init(what: String, done: Int, total: Int?, seconds: Double) {
    self.what = what
    self.done = done
    self.total = total
    perSecond = seconds > 0 ? Double(done) / seconds : 0
    if let total, done > 0 { secondsLeft = max(0, (Double(total) - Double(done)) / perSecond) }
  }

  /// The same progress, with everything out of range left out: the code of a plan may report any numbers and texts.
  public var plausible: WorkProgress {
    var plausible = self
    plausible.what = String(what.prefix(Self.longestText))
    plausible.done = max(0, done)
    if !(0...Self.fastest).contains(perSecond) { plausible.perSecond = 0 }
    if let secondsLeft, !(0...Self.longestSeconds).contains(secondsLeft) {
      plausible.secondsLeft = nil
    }
    return plausible
  }

  private static let longestText = 200
  private static let fastest = 1e12
  /// Some thirty years.
  private static let longestSeconds = 1e9

  /// The part that is done, from 0 to 1; `nil` where nobody knows how much there is.
  public var fraction: Double? {
    guard let total, total > 0 else { return nil }
    return min(1, max(0, Double(done) / Double(total)))
  }
}
