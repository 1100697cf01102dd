import ArgumentParser
import InstarLinux
import InstarSchema

/// Where a running instard is reached.
struct SocketOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The control socket of instard. (default: /run/instar/instard.sock)", valueName: "path"),
    completion: .file(), transform: FilePath.typed)
  var socket: String?

  func connection() throws(InstarError) -> DaemonConnection {
    try DaemonConnection(
      to: socket.map(FilePath.absolute)
        ?? Installation.socket(ofStateFolder: Installation.serviceStateFolder))
  }
}
