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

  @OptionGroup var options: RolloutStopOptions
  var output: OutputOptions { options.output }

  func perform() async throws(InstarError) -> ExitStatus { try options.perform(.pause) }
}
