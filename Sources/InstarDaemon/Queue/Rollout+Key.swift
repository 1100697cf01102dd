import InstarSchema

extension Rollout {
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
