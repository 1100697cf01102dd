/// What a host reports of its part in a rollout. It stays when the host is gone.
package struct HostResult: Sendable, Codable, Hashable {
  /// How far the host is.
  package enum State: String, Sendable, Codable, Hashable {
    /// It has not had its turn.
    case waiting
    /// It has a slot, or had one.
    case migrating
    /// Each of its stores was migrated and found current afterwards, or failed.
    case verified
  }

  var state = State.waiting
  var wave: Int
  /// Its stores that were behind.
  var stores: Int
  /// Those that were migrated and found current.
  var migrated = 0
  /// Those whose run failed.
  var failed = 0
  /// Those that are retried later, because others use them.
  var deferred = 0
  /// The error of a store that failed, in one line.
  var lastError: String?
  /// What keeps the host from migrating, such as a pause of its own.
  var obstacle: String?
  /// When the host wrote this, in seconds since 1970 by its own clock. Nothing is decided by it.
  var at: Double

  /// Whether all numbers are in their ranges: others are added to them.
  var isPlausible: Bool { [stores, migrated, failed, deferred].allSatisfy(isPlausibleCount) }
}

/// Whether a number can be that of stores or hosts. The sum of such numbers never overflows.
func isPlausibleCount(_ number: Int) -> Bool { (0...1 << 40).contains(number) }
