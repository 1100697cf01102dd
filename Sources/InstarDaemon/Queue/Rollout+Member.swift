import InstarSchema
import InstarWire

/// What a rollout knows of each of its stores, and the key that the stores have of their rollout.
extension Rollout {
  typealias Member = Manager.Turn

  struct Status {
    var member: Member
    /// The wave in which it had its turn; 0 before.
    var wave = 0
    /// Its place in the queue while it is `waiting`.
    var place: Place?
    /// Whether its run succeeded, and the probe that proves it has not ended. After a restart, that is the first probe.
    var awaitsProof = false
    /// The path of its watch, once it was probed.
    var watch: String?
  }

  /// The order in which stores have their turn: by the wave of their watch, then in an order that mixes folders, and
  /// is the same after a restart.
  struct Place: Comparable {
    var wave: Int
    var hash: UInt64
    var store: String
    var needsApproval: Bool

    init(_ store: String, wave: Int, needsApproval: Bool) {
      self.wave = wave
      self.store = store
      self.needsApproval = needsApproval
      hash = store.stableHash
    }

    static func < (one: Place, other: Place) -> Bool {
      (one.wave, one.hash, one.store) < (other.wave, other.hash, other.store)
    }
  }

  /// Identifies a rollout. The name of the plan alone does not: two plugins may have a plan of the same name, each with
  /// a last version of its own.
  ///
  /// Each store of a rollout has one, so it is as small as a reference.
  struct Key: Sendable, Hashable, Comparable {
    private struct Content: Sendable, Hashable {
      var plan: String
      var version: Schema.Version
    }
    private let content: StoreQueue.SharedValue<Content>
    var plan: String { content.value.plan }
    var version: Schema.Version { content.value.version }

    init(plan: String, version: Schema.Version) {
      content = StoreQueue.SharedValue(Content(plan: plan, version: version))
    }

    static func == (one: Key, other: Key) -> Bool {
      one.content === other.content || one.content.value == other.content.value
    }

    func hash(into hasher: inout Hasher) { hasher.combine(content.value) }

    static func < (one: Key, other: Key) -> Bool {
      one.plan == other.plan ? one.version < other.version : one.plan < other.plan
    }
  }
}
