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
      instard notices changes by itself. Where a file system does not report them, such as NFS, it \
      finds them at the next regular scan, or with this command.
      """)

  @OptionGroup var socket: SocketOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let connection = try socket.connection()
    _ = try connection.call(.rescan)
    return try connection.writeStatus(output, socket)
  }
}
