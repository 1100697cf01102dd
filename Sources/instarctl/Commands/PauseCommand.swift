import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl pause`
struct PauseCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Have instard start no run until 'instarctl resume'.",
    discussion: """
        instarctl pause --why 'backup of the host'

      Runs in progress go on, and stores are still probed. A pause survives restarts of \
      instard. To leave single stores alone, use 'instarctl hold'.
      """)

  @Option(help: ArgumentHelp("The reason, which the status shows.", valueName: "text"))
  var why: String?

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.pause, Manager.PauseParameters(why: why))
    return try connection.writeStatus(output)
  }
}
