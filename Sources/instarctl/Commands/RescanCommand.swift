import ArgumentParser
import InstarControl
import InstarSchema
import InstarWire

/// `instarctl rescan`
struct RescanCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "rescan",
    abstract: "Have instard read all watched folders again.",
    discussion: """
        instarctl rescan

      instard notices changes by itself. Some file systems, such as FUSE, do not report all changes. There \
      instard finds them at its next regular scan, or when you run this command.
      """)

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.rescan)
    return try connection.writeStatus(output, socket)
  }
}
