import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl status`
struct StatusCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show what instard does: folders, stores, runs with their progress, and failures.",
    discussion: """
        instarctl status
        instarctl status --watch

      Asks the running instard. Root and members of the group instar-admin see all stores, \
      everybody else the stores that they own.

      The time left is an estimate for all stores that are behind, of all users. It follows from the rate of the \
      last runs and the times between waves. It is shown once a run has ended, but not while runs wait for an operator, a time window or \
      another host.
      """)

  @Flag(help: "Show the status again whenever it changes, until Ctrl-C.")
  var watch = false

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    guard watch else { return try connection.writeStatus(output, socket) }
    // A status that does not change has no further reply for a long time.
    try connection.stream(.getStatus, patience: nil) { (reply: Manager.StatusReply) in
      let status = ShownStatus(status: reply.status, option: socket.option)
      if output.json { output.write(status) } else { Console.showScreen(status.lines) }
      Console.endIfOutputIsLost()
    }
    return .done
  }
}
