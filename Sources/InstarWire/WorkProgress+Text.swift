public import InstarSchema

extension WorkProgress {
  /// "340000 of 1000000 rows of Note (34 %), 52000 a second, 13 s left", of plausible progress.
  public var text: String {
    var parts = ["\(amount)\(percentText.map { " (\($0))" } ?? "")"]
    let speed = plausible.perSecond
    if speed >= 1 { parts.append("\(Int(speed)) a second") }
    if let timeLeftText { parts.append(timeLeftText) }
    return parts.joined(separator: ", ")
  }

  /// "340000 of 1000000 rows of Note".
  public var amount: String { "\(done)\(total.map { " of \($0)" } ?? "") \(what)" }

  /// "34 %".
  public var percentText: String? { fraction.map { "\(Int($0 * 100)) %" } }

  /// "13 s left"; `nil` at the end.
  public var timeLeftText: String? {
    guard let seconds = plausible.secondsLeft, seconds > 0 else { return nil }
    return "\(Quantity.duration(microseconds: Int64(max(1, seconds) * 1_000_000))) left"
  }
}

extension Collection<RunEvent> {
  /// The report of the run that will take longest. One that cannot say how long counts as the longest.
  public var ofLongestRun: RunEvent? {
    self.max { first, second in
      (first.progress?.secondsLeft ?? .infinity, first.run)
        < (second.progress?.secondsLeft ?? .infinity, second.run)
    }
  }
}
