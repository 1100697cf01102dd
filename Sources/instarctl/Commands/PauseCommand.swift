import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl pause`
struct PauseCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Keep instard from starting runs, of all plans or of one, until 'resume'.",
    discussion: """
        instarctl pause --why 'backup of the host'
        instarctl pause --plan NotesMigrationPlan --why 'a note was lost'

      Runs in progress finish, and instard still probes stores. A pause survives restarts of \
      instard. To leave single stores alone, use 'instarctl hold'.

      pause affects only this host. For a rollout over many hosts, use 'instarctl rollout pause'. After \
      'instarctl rollout resume' the earlier failures of that rollout still count. After 'instarctl pause --plan' and \
      'instarctl resume --plan', the earlier failures on this host no longer count against the budget of its own rollout.
      """)

  @Option(help: ArgumentHelp("The reason, which the status shows.", valueName: "text"))
  var why: String?

  @Option(
    help: ArgumentHelp(
      "Halt the rollout of this plan only. After 'instarctl resume --plan NAME', the stores that failed before no longer count.",
      valueName: "name"),
    completion: .plans)
  var plan: String?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.pause, Manager.PauseParameters(why: why, plan: plan))
    return try connection.writeStatus(output, socket)
  }
}
