import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl rollout watch`
struct RolloutWatchCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Show the rollouts again whenever they change, until Ctrl-C.",
    discussion: """
        instarctl rollout watch --plan NotesPlan
      """)

  @Option(
    help: ArgumentHelp("Show only the rollout of this plan.", valueName: "name"), completion: .plans
  )
  var plan: String?

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    try coordinator.perform(coordinator.request(.watch, plan), output)
  }
}
