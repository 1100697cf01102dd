import InstarControl
import InstarSchema
import InstarWire

extension DaemonConnection {
  /// Writes what the daemon does now, as it says itself: after an order, that it was taken.
  func writeStatus(_ output: OutputOptions) throws(InstarError) -> ExitStatus {
    output.write(try call(.getStatus, returning: Manager.StatusReply.self).status)
    return .done
  }
}
