import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl resume`
struct ResumeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Have instard start runs again after a pause, or resume a halted rollout.",
    discussion: """
        instarctl resume
        instarctl resume --plan NotesMigrationPlan

      A halted rollout continues from where it was. Stores that failed before the resume no longer \
      count, even if they fail again. The rollout halts again if more other stores fail than its budget allows.
      """)

  @Option(
    help: ArgumentHelp("Resume the halted rollout of this plan.", valueName: "name"),
    completion: .plans)
  var plan: String?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    var isHalted = true
    if let plan {
      let status = try connection.call(.getStatus, returning: Manager.StatusReply.self).status
      isHalted = status.rollouts.contains { $0.plan == plan && $0.halt != nil }
    }
    _ = try connection.call(.resume, Manager.ResumeParameters(plan: plan))
    if !isHalted, !output.json { Console.note("nothing to do: the rollout is not halted") }
    return try connection.writeStatus(output, socket)
  }
}
