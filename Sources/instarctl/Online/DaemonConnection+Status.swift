import InstarControl
import InstarSchema
import InstarWire

extension DaemonConnection {
  /// Writes what the daemon does now, as it says itself: after an order, that it was taken.
  func writeStatus(
    _ output: OutputOptions, _ socket: SocketOptions
  ) throws(InstarError) -> ExitStatus {
    let reply = try call(.getStatus, returning: Manager.StatusReply.self)
    output.write(ShownStatus(status: reply.status, option: socket.option))
    return .done
  }
}
