import InstarSchema

/// A host that lives: its registration ends with its lease.
struct HostRegistration: Sendable, Codable, Hashable {
  /// A plan of the host's plugins.
  struct Plan: Sendable, Codable, Hashable {
    var plan: String
    /// The last version of the plan.
    var version: Schema.Version
    /// The stores of the plan that are behind, or were before the plan's rollout.
    var stores: Int
    /// Those that are behind.
    var behind: Int
  }

  var release: String
  /// The plans whose stores are behind, or were.
  var plans: [Plan]

  /// Whether all numbers are in their ranges: others are added to them.
  var isPlausible: Bool {
    plans.allSatisfy { isPlausibleCount($0.stores) && isPlausibleCount($0.behind) }
  }
}
