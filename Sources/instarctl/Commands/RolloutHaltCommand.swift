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
      no longer count. 'instarctl rollout create' replaces the rollout with a new one, with other canaries.
      """)

  @OptionGroup var options: RolloutStopOptions
  var output: OutputOptions { options.output }

  func perform() async throws(InstarError) -> ExitStatus { try options.perform(.halt) }
}
