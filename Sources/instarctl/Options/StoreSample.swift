import ArgumentParser

/// Which of many stores a command works on: a number of them, or a share.
enum StoreSample: Equatable {
  case count(Int)
  case percent(Double)

  /// - Throws: `ValidationError`, a wrong usage.
  init(_ text: String) throws {
    if text.hasSuffix("%"), let percent = Double(text.dropLast()), percent > 0, percent <= 100 {
      self = .percent(percent)
    } else if let count = Int(text), count > 0 {
      self = .count(count)
    } else {
      throw ValidationError("'\(text)' is not a sample; write for example 20 or 5%")
    }
  }

  /// Returns the stores of the sample, evenly spread over the list and in its order; at least one of a list that is not
  /// empty.
  func chosen(from stores: [String]) -> [String] {
    let wanted =
      switch self {
      case .count(let count): count
      case .percent(let percent): Int((Double(stores.count) * percent / 100).rounded(.up))
      }
    guard wanted < stores.count else { return stores }
    return (0..<wanted).map { stores[$0 * stores.count / wanted] }
  }
}
