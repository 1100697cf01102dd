import ArgumentParser
import InstarConfiguration
import InstarSchema
import InstarWire

/// `instarctl rollout create`
struct RolloutCreateCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Begin a plan's rollout over all hosts that have stores of the plan.",
    discussion: """
        instarctl rollout create --plan NotesPlan --canary 1 \\
          --waves 10%,50%,100% --budget 0.5% --soak 30m

      Each host computes its wave from its name and the rollout's identifier. A wave ends when all of its hosts \
      are verified: every store was migrated and found current, or failed. A wave does not wait for a host that \
      is gone, but it ends only if at least one of its hosts is verified. The command replaces a rollout of the \
      plan that is halted or done.
      """)

  @Option(help: ArgumentHelp("The plan.", valueName: "name"), completion: .plans)
  var plan: String

  @Option(
    help: ArgumentHelp(
      "The last version of the plan. Needed only if hosts have several.", valueName: "version"),
    transform: Self.version)
  var planVersion: Schema.Version?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The hosts of the first wave: a number, or a share such as 1%. (default: 1)",
      valueName: "hosts"),
    transform: Self.share)
  var canary: RolloutSettings.Share = .count(1)

  @Option(
    help: ArgumentHelp(
      "For each wave after the canary: the number or share of hosts that have had their turn when it ends, "
        + "separated by commas. The last wave includes all hosts. (default: 100%)",
      valueName: "hosts,…"),
    transform: { try $0.split(separator: ",").map { try Self.share(String($0)) } })
  var waves: [RolloutSettings.Share] = []

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How many stores may fail on all hosts: a number, or a share. One more halts the rollout. (default: no limit)",
      valueName: "stores"),
    transform: Self.limit)
  var budget: RolloutSettings.Share?

  @Option(
    help: ArgumentHelp(
      "The time between two waves. (default: 0s)", valueName: "duration"),
    transform: { try DurationArgument($0, in: .zero...(.seconds(30 * 86_400))) })
  var soak = DurationArgument(.zero)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("How many hosts may migrate at the same time.", valueName: "hosts"))
  var slots = 16

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...10_000).contains(slots) else {
      throw ValidationError("'--slots \(slots)' is not between 1 and 10000")
    }
    for (step, next) in zip(steps, steps.dropFirst()) where step.isKnownToReach(next) {
      throw ValidationError(
        "each wave includes the earlier ones, so it must be larger; \(step) is not less than \(next)"
      )
    }
  }

  private var steps: [RolloutSettings.Share] {
    var settings = RolloutSettings()
    settings.canary = canary
    settings.waves = waves
    return settings.steps
  }

  func perform() async throws(InstarError) -> ExitStatus {
    var request = coordinator.request(.create, plan)
    request.order = RolloutRequest.Order(
      version: planVersion, steps: steps.map(\.description), slots: slots,
      soakSeconds: soak.duration.inSeconds, budget: budget?.description)
    return try coordinator.perform(request, output)
  }

  private static func version(_ text: String) throws -> Schema.Version {
    guard let version = Schema.Version(text) else {
      throw ValidationError("'\(text)' is not a version such as 2.0.0")
    }
    return version
  }

  private static func limit(_ text: String) throws -> RolloutSettings.Share {
    guard let share = RolloutSettings.Share(text) else {
      throw ValidationError("'\(text)' is neither a number such as 5 nor a share such as 10%")
    }
    return share
  }

  private static func share(_ text: String) throws -> RolloutSettings.Share {
    let share = try limit(text)
    guard ![.count(0), .percent(0)].contains(share) else {
      throw ValidationError("a wave of '\(text)' has no host")
    }
    return share
  }
}
