import InstarControl
import InstarLinux
import InstarSchema
package import InstarWire

/// How instar-coordinator reaches the instard of its host.
public struct DaemonLink: Sendable {
  private let call:
    @Sendable (Manager.PermitParameters) async throws(InstarError) -> Manager.PermitReply
  /// instard answers from memory.
  private static let patience = Duration.seconds(5)

  /// - Parameter socket: The control socket of instard.
  public init(socket: String) {
    call = { parameters throws(InstarError) in
      try await onOwnThread { () throws(InstarError) in
        try DaemonConnection(to: socket).call(
          .permit, parameters, returning: Manager.PermitReply.self, patience: Self.patience)
      }
    }
  }

  /// A link to what answers in the place of an instard, for the many hosts of `packaging/rollout-simulation`.
  package init(
    answering answer: @escaping @Sendable ([Manager.Permission]) -> Manager.PermitReply
  ) {
    call = { answer($0.permissions) }
  }

  /// Replaces the permissions of instard, and returns how far its stores are.
  ///
  /// - Parameter moment: When they were decided. instard takes no older ones afterwards.
  /// - Throws: `daemonNotReachable`, `notPermitted`, or `wrongUsage` where instard needs no permission. It may have
  ///   taken the permissions, if its answer was lost.
  func permit(
    _ permissions: [Manager.Permission], decidedAt moment: ContinuousClock.Instant
  ) async throws(InstarError) -> Manager.PermitReply {
    try await call(
      Manager.PermitParameters(permissions: permissions, decidedAt: moment.secondsSinceBoot))
  }
}
