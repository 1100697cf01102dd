import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl rollout halt`
struct RolloutHaltCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "halt",
    abstract: "Stop the rollout on all hosts.",
    discussion: """
        instarctl rollout halt --plan NotesPlan --why 'notes are lost'

      Runs in progress finish. 'instarctl rollout resume' lets the rollout go on; the failures until then \
      no longer count. 'instarctl rollout create' replaces it by a new one, with other canaries.
      """)

  @Option(help: ArgumentHelp("The plan.", valueName: "name"), completion: .plans)
  var plan: String

  @Option(
    help: ArgumentHelp("The reason, which 'instarctl rollout show' shows.", valueName: "text"))
  var why: String?

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    if let why { try Hold.requireShort(why, "cannot halt the rollout of '\(plan)'") }
    var request = coordinator.request(.halt, plan)
    request.why = why
    return try coordinator.perform(request, output)
  }
}
