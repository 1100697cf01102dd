import ArgumentParser
import InstarControl
import InstarLinux
import InstarSchema

/// Where a running instard is reached.
struct SocketOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The control socket of instard. For an instard that was started with --config, pass the 'socket' of that "
        + "configuration, or instard.sock in its state folder. (default: 'socket' of /etc/instar/instard.yml, "
        + "else /run/instar/instard.sock)",
      valueName: "path"),
    completion: .file(), transform: FilePath.typed)
  var socket: String?

  /// The option that a proposed command needs to reach the same instard; empty for the default.
  var option: String { Self.option(for: socket) }

  private static func option(for socket: String?) -> String {
    socket.map { " --socket \(CommandText.quoted($0))" } ?? ""
  }

  /// - Parameter folder: The state folder of the daemon, which decides the default; `nil` for that of the service.
  func connection(
    ofStateFolder folder: String? = nil
  ) throws(InstarError) -> DaemonConnection {
    if socket == nil, folder == nil { ServiceConfiguration.noteIfUnreadable() }
    return try Self.connection(to: socket, ofStateFolder: folder)
  }

  /// - Parameter socket: As it was typed; `nil` for the default.
  static func connection(
    to socket: String?, ofStateFolder folder: String? = nil
  ) throws(InstarError) -> DaemonConnection {
    try DaemonConnection(
      to: socket.map(FilePath.absolute) ?? path(ofStateFolder: folder),
      option: option(for: socket))
  }

  private static func path(ofStateFolder folder: String?) -> String {
    guard let folder, folder != ServiceConfiguration.stateFolder else {
      return ServiceConfiguration.socket
    }
    return Installation.socket(ofStateFolder: folder)
  }
}
