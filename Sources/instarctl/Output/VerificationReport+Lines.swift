import InstarSchema
import InstarWire

extension VerificationReport: CommandOutput {
  /// The line of a sound store; any other has its errors.
  var lines: [ConsoleLine] {
    guard state == .sound else { return [] }
    let fit = plan.flatMap { plan in version.map { ", fits \($0) of \(plan)" } } ?? ""
    let facts =
      [
        rows.map { Self.count($0, "row", "rows") },
        indexes.map { Self.count($0, "index", "indexes") },
      ]
      .compactMap(\.self) + [Quantity.duration(microseconds: durationMicroseconds)]
    return ["\(store): \(Style.good("sound"))\(fit) (\(facts.joined(separator: ", ")))"]
  }

  private static func count(_ number: Int, _ one: String, _ many: String) -> String {
    "\(Quantity.grouped(number)) \(number.noun(one, many))"
  }
}
