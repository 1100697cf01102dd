/// How the stores of a plan are migrated: a few first, then more, and no further than the failure budget allows.
public struct RolloutSettings: Sendable, Hashable {
  /// A number of stores, or a part of all stores of the plan.
  public enum Share: Sendable, Hashable, CustomStringConvertible {
    case count(Int)
    /// From 0 to 100.
    case percent(Double)

    /// Reads "5" or "2.5%".
    ///
    /// - Returns: `nil` for any other text, a negative number, and more than 100%.
    public init?(_ text: String) {
      if text.hasSuffix("%") {
        guard let percent = Double(text.dropLast()), (0...100).contains(percent) else { return nil }
        self = .percent(percent)
      } else {
        guard let count = Int(text), count >= 0 else { return nil }
        self = .count(count)
      }
    }

    /// The text that `init` reads.
    public var description: String {
      switch self {
      case .count(let count): "\(count)"
      case .percent(let percent):
        percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
      }
    }

    /// The stores of a wave, of so many in all: rounded up, and at least one.
    public func stores(of total: Int) -> Int {
      switch self {
      case .count(let count): max(1, count)
      case .percent(let percent): max(1, Int((Double(total) * percent / 100).rounded(.up)))
      }
    }

    /// Whether this is at least as many stores as another share, however many stores there are.
    public func isKnownToReach(_ other: Share) -> Bool {
      switch (self, other) {
      case (.count(let own), .count(let other)): own >= other
      case (.percent(let own), .percent(let other)): own >= other
      default: false
      }
    }

    /// The failures that a budget allows, of so many stores: rounded down.
    public func failures(of total: Int) -> Int {
      switch self {
      case .count(let count): count
      case .percent(let percent): Int(Double(total) * percent / 100)
      }
    }
  }

  /// The stores of the first wave; `nil` for no wave of its own.
  public var canary: Share?
  /// How many stores have had their turn when each further wave ends, those of earlier waves included.
  public var waves: [Share] = []
  /// How long instard waits between two waves.
  public var soak = Duration.zero
  /// How many stores may fail; one more halts the rollout. `nil` for no limit.
  public var budget: Share?
  /// How many stores of a watch may fail, by the path of the watch. One more halts the rollout.
  public var watchBudgets: [String: Share] = [:]

  /// One wave with all stores, without a budget.
  public init() {}

  /// How many stores have had their turn when each wave ends. The last one is all.
  public var steps: [Share] {
    let all = Share.percent(100)
    let steps = [canary].compactMap(\.self) + waves
    return steps.last == all ? steps : steps + [all]
  }
}

/// What instard does with a store that is behind.
public enum MigrationPolicy: String, Sendable, Hashable, CaseIterable {
  /// It migrates the store.
  case automatic
  /// It rehearses the run first, and migrates the store if the rehearsal succeeds.
  case rehearse
  /// It waits for `instarctl approve`.
  case ask
}
