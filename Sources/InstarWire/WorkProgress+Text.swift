public import InstarSchema

extension WorkProgress {
  /// "340000 of 1000000 rows of Note (34 %), 52000 a second, 13 s left".
  public var text: String {
    var parts = ["\(amount)\(percentText.map { " (\($0))" } ?? "")"]
    if perSecond >= 1 { parts.append("\(Int(perSecond)) a second") }
    if let timeLeftText { parts.append(timeLeftText) }
    return parts.joined(separator: ", ")
  }

  /// "340000 of 1000000 rows of Note".
  public var amount: String { "\(done)\(total.map { " of \($0)" } ?? "") \(what)" }

  /// "34 %".
  public var percentText: String? { fraction.map { "\(Int($0 * 100)) %" } }

  /// "13 s left".
  public var timeLeftText: String? {
    secondsLeft.map { "\(Quantity.duration(microseconds: Int64(max(1, $0) * 1_000_000))) left" }
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
