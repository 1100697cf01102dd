import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl rollout show`
struct RolloutShowCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show the rollouts, and how far each host is.",
    discussion: """
        instarctl rollout show
        instarctl rollout show --plan NotesPlan --json

      A host is waiting, migrating or verified. It is gone if etcd has not heard from it for the time of \
      its lease.
      """)

  @Option(
    help: ArgumentHelp("Show only the rollout of this plan.", valueName: "name"), completion: .plans
  )
  var plan: String?

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    try coordinator.perform(coordinator.request(.show, plan), output)
  }
}
