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
    let status = try connection.call(.getStatus, returning: Manager.StatusReply.self).status
    _ = try connection.call(.resume, Manager.ResumeParameters(plan: plan))
    if !output.json, let reason = reasonForNothing(status) {
      Console.note("nothing to do: \(reason)")
    }
    return try connection.writeStatus(output, socket)
  }

  /// Why the command does nothing; `nil` if something is paused or halted.
  private func reasonForNothing(_ status: Manager.Status) -> String? {
    guard let plan else { return status.pause == nil ? "instard is not paused" : nil }
    let isHalted = status.rollouts.contains { $0.plan == plan && $0.halt != nil }
    return isHalted ? nil : "the rollout is not halted"
  }
}
