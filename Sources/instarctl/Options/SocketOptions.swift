import ArgumentParser
import InstarControl
import InstarLinux
import InstarSchema

/// Where a running instard is reached.
struct SocketOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The control socket of instard. (default: /run/instar/instard.sock)", valueName: "path"),
    completion: .file(), transform: FilePath.typed)
  var socket: String?

  /// - Parameter folder: The state folder of the daemon, which decides the default.
  func connection(
    ofStateFolder folder: String = Installation.serviceStateFolder
  ) throws(InstarError) -> DaemonConnection {
    try Self.connection(to: socket, ofStateFolder: folder)
  }

  /// - Parameter socket: As it was typed; `nil` for the default.
  static func connection(
    to socket: String?, ofStateFolder folder: String = Installation.serviceStateFolder
  ) throws(InstarError) -> DaemonConnection {
    try DaemonConnection(
      to: socket.map(FilePath.absolute) ?? Installation.socket(ofStateFolder: folder))
  }
}
