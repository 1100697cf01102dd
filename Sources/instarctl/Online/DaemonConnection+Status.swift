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

  /// Returns why nothing has a plan, with the name that was probably meant.
  ///
  /// - Parameter searched: What has no plan of this name beside the plugins.
  /// - Returns: `nil` where a plugin of instard has the plan, or an instard of an earlier release cannot say.
  func reasonForNone(ofPlan name: String, in searched: String) throws(InstarError) -> String? {
    let status = try call(.getStatus, returning: Manager.StatusReply.self).status
    guard let plans = status.plans, !plans.contains(name) else { return nil }
    return PlanSelection.reason(
      forMissing: name, in: searched, known: plans + status.rollouts.map(\.plan),
      refused: status.refusedPlugins.map(\.plugin))
  }
}
