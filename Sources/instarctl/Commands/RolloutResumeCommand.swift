import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl rollout resume`
struct RolloutResumeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Resume a rollout that is paused or halted.",
    discussion: """
        instarctl rollout resume --plan NotesPlan

      After a halt, the failures until now no longer count.
      """)

  @Option(help: ArgumentHelp("The plan.", valueName: "name"), completion: .plans)
  var plan: String

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    try coordinator.perform(coordinator.request(.resume, plan), output)
  }
}
