import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// How instarctl reaches the rollouts of a fleet: through instar-coordinator, a program of a package of its own. Its
/// network code stays out of instarctl, and a single host does not install it.
struct CoordinatorOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The configuration of instard; its 'coordinator' names the members of etcd. (default: /etc/instar/instard.yml)",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var config = "/etc/instar/instard.yml"

  /// The request of the user who runs this process.
  func request(_ action: RolloutRequest.Action, _ plan: String?) -> RolloutRequest {
    RolloutRequest(action: action, plan: plan, by: ProcessIdentity.label(of: geteuid()))
  }

  /// Has instar-coordinator answer a request, and writes the answers.
  func perform(
    _ request: RolloutRequest, _ output: OutputOptions
  ) throws(InstarError) -> ExitStatus {
    let program = try Installation.locate().coordinator
    guard access(program, X_OK) == 0 else {
      throw InstarError(
        .incompleteInstallation, "cannot \(request.action.rawValue) rollouts",
        cause: "'\(program)' is not installed",
        next: "in the folder of Instar's packages, run as root: "
          + "apt-get install ./instar-coordinator_*.deb")
    }
    let (channel, descriptor) = try LineChannel.pair(lineLimitBytes: Manager.replyLimitBytes)
    let process: ChildProcess
    do throws(InstarError) {
      process = try ChildProcess.start(
        executable: program, arguments: ["--config", FilePath.absolute(config), "--rollout"],
        channel: descriptor)
    } catch {
      close(descriptor)
      throw error
    }
    // Kept open here, this end would hide that the program has ended.
    close(descriptor)
    try channel.send(WireCoder.line(request))
    var status: ExitStatus?
    while case .line(let line) = try channel.receive() {
      let reply = try WireCoder.message(RolloutReply.self, from: line)
      status = write(reply, output, clearing: request.action == .watch)
      Console.endIfOutputIsLost()
    }
    guard let status else {
      let end = try process.wait()
      throw InstarError(
        .internalError, "cannot \(request.action.rawValue) rollouts",
        cause: "instar-coordinator \(end.map { "\($0)" } ?? "ended") without an answer",
        next: InstarError.adviceOnOtherVersion)
    }
    return status
  }

  private func write(
    _ reply: RolloutReply, _ output: OutputOptions, clearing: Bool
  ) -> ExitStatus {
    if clearing, !output.json { Console.clearScreen() }
    for rollout in reply.rollouts ?? [] { output.write(rollout) }
    if let rollouts = reply.rollouts, rollouts.isEmpty, !output.json { Console.note("no rollouts") }
    guard let error = reply.error else { return .done }
    output.report(error)
    return ExitStatus(for: error)
  }
}
