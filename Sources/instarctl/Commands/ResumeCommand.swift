import ArgumentParser
import InstarSchema
import InstarWire

/// `instarctl resume`
struct ResumeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Have instard start runs again after a pause.")

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.resume)
    return try connection.writeStatus(output)
  }
}
