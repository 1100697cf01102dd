import ArgumentParser
import InstarControl
import InstarSchema

/// Where the holds and the runs are that a command reads or changes: in a state folder, or with a running instard.
struct RecordOptions: ParsableArguments {
  @OptionGroup var state: StateOptions
  @OptionGroup var socket: SocketOptions

  func validate() throws {
    guard state.folder == nil || socket.socket == nil else {
      throw ValidationError(
        "use --state-dir or --socket, not both")
    }
  }

  /// Whether `--socket` names the one place to ask.
  var namesInstard: Bool { socket.socket != nil }

  /// Connects to the instard that is asked: the one of `--socket`; or that of the service, if this user may not read
  /// its state folder. `nil` where the state folder has everything, and where no service runs.
  ///
  /// - Throws: `daemonNotReachable` for `--socket`.
  func instard() throws(InstarError) -> DaemonConnection? {
    if namesInstard { return try socket.connection() }
    guard state.isBesideService else { return nil }
    // Where it does not run, the command still has the user's own folder.
    return try? SocketOptions.connection(to: nil)
  }
}
