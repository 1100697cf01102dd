import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl rollout pause`
struct RolloutPauseCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Start no further run on any host until the rollout is resumed.",
    discussion: """
        instarctl rollout pause --plan NotesPlan --why 'a deployment'

      Runs in progress finish. 'instarctl rollout resume' lets the rollout go on where it was, with the \
      failures it had.
      """)

  @Option(help: ArgumentHelp("The plan.", valueName: "name"), completion: .plans)
  var plan: String

  @Option(
    help: ArgumentHelp("The reason, which 'instarctl rollout show' shows.", valueName: "text"))
  var why: String?

  @OptionGroup var coordinator: CoordinatorOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    if let why { try Hold.requireShort(why, "cannot pause the rollout of '\(plan)'") }
    var request = coordinator.request(.pause, plan)
    request.why = why
    return try coordinator.perform(request, output)
  }
}
