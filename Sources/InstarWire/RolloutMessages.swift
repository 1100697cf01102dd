public import InstarSchema

/// What `instarctl rollout` asks instar-coordinator for: one line, answered by `RolloutReply`.
public struct RolloutRequest: Sendable, Codable, Hashable {
  /// What to do.
  public enum Action: String, Sendable, Codable, Hashable {
    case create, show, pause, resume, halt
    /// As `show`, again after each change, until the other side closes the channel.
    case watch
  }

  /// How a rollout begins.
  public struct Order: Sendable, Codable, Hashable {
    /// The last version of the plan; left out for the one that all hosts have.
    public var version: Schema.Version?
    /// How many hosts have had their turn when each wave ends, such as "1", "10%", "100%".
    public var steps: [String]
    /// How many hosts may migrate at the same time.
    public var slots: Int
    /// The time between two waves.
    public var soakSeconds: Double
    /// How many stores may fail, such as "0.5%"; left out for no limit.
    public var budget: String?

    package init(
      version: Schema.Version?, steps: [String], slots: Int, soakSeconds: Double, budget: String?
    ) {
      self.version = version
      self.steps = steps
      self.slots = slots
      self.soakSeconds = soakSeconds
      self.budget = budget
    }
  }

  /// What to do.
  public var action: Action
  /// The name of the plan; left out for all, where the action is `show` or `watch`.
  public var plan: String?
  /// How to begin; of `create` only.
  public var order: Order?
  /// The reason of a pause or a halt.
  public var why: String?
  /// Who asks, such as "anna (1000)".
  public var by: String

  /// A request without an order and a reason.
  public init(action: Action, plan: String?, by user: String) {
    self.action = action
    self.plan = plan
    by = user
  }
}

/// What instar-coordinator answers: rollouts, or an error.
public struct RolloutReply: Sendable, Codable, Hashable {
  /// The rollouts, by plan.
  public var rollouts: [RolloutReport]?
  /// Why there are none, or not all.
  public var error: InstarError?

  package init(rollouts: [RolloutReport]?, error: InstarError? = nil) {
    self.rollouts = rollouts
    self.error = error
  }
}
