import InstarControl
import InstarLinux
import InstarSchema
import InstarWire

/// How instar-coordinator reaches the instard of its host.
public struct DaemonLink: Sendable {
  private let socket: String
  /// instard answers from memory.
  private static let patience = Duration.seconds(5)

  /// - Parameter socket: The control socket of instard.
  public init(socket: String) { self.socket = socket }

  /// Replaces the permissions of instard, and returns how far its stores are.
  ///
  /// - Throws: `daemonNotReachable`, `notPermitted`, or `wrongUsage` where instard needs no permission. It may have
  ///   taken the permissions, if its answer was lost.
  func permit(_ permissions: [Manager.Permission]) async throws(InstarError) -> Manager.PermitReply
  {
    let socket = socket
    return try await onOwnThread { () throws(InstarError) in
      try DaemonConnection(to: socket).call(
        .permit, Manager.PermitParameters(permissions: permissions),
        returning: Manager.PermitReply.self, patience: Self.patience)
    }
  }
}
