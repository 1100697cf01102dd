import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl resume`
struct ResumeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Have instard start runs again after a pause, or go on with a halted rollout.",
    discussion: """
        instarctl resume
        instarctl resume --plan NotesMigrationPlan

      A rollout that failures have halted goes on where it was. These failures no longer count: it \
      halts again when more than its budget allows have failed since.
      """)

  @Option(
    help: ArgumentHelp("Go on with the rollout of this plan, which was halted.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.resume, Manager.ResumeParameters(plan: plan))
    return try connection.writeStatus(output)
  }
}
