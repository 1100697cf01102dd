import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire

/// Runs the hooks of events, one after the other: what the program `instar-hook` does.
///
/// A hook is a process of another user, without capabilities or a way to gain them (`no_new_privs`), in a process group
/// of its own, in `/`, with an environment of six variables and no descriptors but 0 to 2. Standard input is a file in
/// memory with the event. After the time limit its group gets SIGTERM, and `grace` later SIGKILL. What it leaves in the
/// process group is killed with it, and what has left the group too in a process that adopts orphans
/// (`OrphanedProcess`).
public struct HookRunner: Sendable {
  private let folder: HookFolder
  private let identity: ProcessIdentity
  private let user: ProcessIdentity.User
  private let timeLimit: Duration
  private let grace: Duration
  private let trust: HookTrust
  private let killsOrphans: Bool
  private static let outputLimitBytes = 4096

  /// - Parameters:
  ///   - user: The name of the user that hooks run as, where this process can become other users.
  ///   - grace: The time between SIGTERM and SIGKILL.
  ///   - killsOrphans: Whether this process adopts orphans and has no children but hooks. Then no process that a hook
  ///     started outlives it.
  /// - Throws: `hookFailed` where there is no such user.
  public init(
    folder: HookFolder, user name: String, timeLimit: Duration, grace: Duration = .seconds(5),
    killsOrphans: Bool = false
  ) throws(InstarError) {
    self.folder = folder
    self.timeLimit = timeLimit
    self.grace = grace
    self.killsOrphans = killsOrphans
    trust = .ofThisDaemon
    guard ProcessIdentity.mayBeAnyUser else {
      user = ProcessIdentity.User(uid: ProcessIdentity.ownUser)
      identity = .unprivileged
      return
    }
    user = try Self.user(named: name)
    identity = .user(user)
  }

  /// Returns the user that hooks run as.
  ///
  /// - Throws: `hookFailed` where there is no user of this name.
  public static func user(named name: String) throws(InstarError) -> ProcessIdentity.User {
    if let user = ProcessIdentity.User(named: name) { return user }
    throw InstarError(
      .hookFailed, "cannot run hooks", cause: "there is no user '\(name)'",
      next: "name another user in 'hooks' of the configuration, or run: "
        + "adduser --system --group \(CommandText.quoted(name))")
  }

  /// Answers one request. A hook that fails does not keep the next one from running.
  public func serve(
    _ request: HookRequest, reply: (HookReply) throws(InstarError) -> Void
  ) throws(InstarError) {
    let hooks: [String]
    do throws(InstarError) {
      // The name becomes part of a path.
      guard HookFolder.isHook(request.event) else {
        throw InstarError(
          .protocolViolation, "cannot run hooks", cause: "'\(request.event)' is not an event",
          next: InstarError.adviceOnOtherVersion)
      }
      hooks = try folder.hooks(of: request.event)
    } catch {
      return try reply(.failed(error))
    }
    for hook in hooks { try reply(.ran(run(hook, request))) }
    try reply(.done)
  }

  private func run(_ hook: String, _ request: HookRequest) -> HookReport {
    let start = ContinuousClock.now
    var report = HookReport(hook: hook, event: request.event, durationMicroseconds: 0)
    do throws(InstarError) {
      try trust.require(hook)
      // Started by its own name, which a hook of several events may read.
      let process = try ChildProcess.start(
        executable: hook, arguments: [request.event], environment: environment(request.event),
        input: try WireCoder.line(request.fields),
        output: .captured(limitBytes: Self.outputLimitBytes), identity: identity)
      let termination = try wait(for: process)
      report.output = process.capturedOutput
      if termination != .exited(0) {
        throw InstarError(
          .hookFailed, "hook '\(hook)' failed on \(request.event)",
          cause: cause(termination, report.output), next: Self.advice(hook))
      }
    } catch {
      report.error = error
      if error.code == .incompleteInstallation || error.code == .internalError {
        report.error = notStarted(hook, error)
      }
    }
    // One that waits for a disk is killed later, after the next hook.
    if killsOrphans { _ = OrphanedProcess.killAll(deadline: .now + grace) }
    report.durationMicroseconds = (ContinuousClock.now - start).inMicroseconds
    return report
  }

  /// The error of a hook that the kernel does not start. The kernel does not say that it is about the interpreter.
  private func notStarted(_ hook: String, _ error: InstarError) -> InstarError {
    if let failure = Self.faultOfFirstLine(of: hook) { return failure }
    var failure = InstarError(
      .hookFailed, "cannot run hook '\(hook)'", cause: error.cause,
      next: Self.adviceOnFirstLine(of: hook))
    if error.cause == String(cString: strerror(ENOEXEC)) {
      failure.cause += "; a script must begin with a line such as #!/bin/sh"
    } else {
      failure.next = "to see who may execute the hook, run: ls -l \(CommandText.quoted(hook))"
    }
    return failure
  }

  /// Returns the error of a hook whose first line names a program that cannot be executed; `nil` for others.
  static func faultOfFirstLine(of hook: String) -> InstarError? {
    guard let interpreter = interpreter(of: hook), access(interpreter, X_OK) != 0 else {
      return nil
    }
    return InstarError(
      .hookFailed, "cannot run hook '\(hook)'",
      cause: "its first line names '\(interpreter)', which cannot be executed",
      next: adviceOnFirstLine(of: hook))
  }

  private static func adviceOnFirstLine(of hook: String) -> String {
    "correct the hook's first line; to see it, run: head -n 1 \(CommandText.quoted(hook))"
  }

  /// The program that the first line of a script names; `nil` if the line names none, or cannot be read.
  private static func interpreter(of hook: String) -> String? {
    // The kernel reads no more of it. Where it cannot be read, the error of the start says enough.
    guard let file = FileHandle(forReadingAtPath: hook), let start = try? file.read(upToCount: 256),
      start.starts(with: Data("#!".utf8))
    else { return nil }
    let line = start.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") }
    return String(decoding: line, as: UTF8.self).split { " \t".contains($0) }.first.map(String.init)
  }

  /// - Returns: How the hook ended; `nil` if it took too long.
  private func wait(for process: ChildProcess) throws(InstarError) -> ChildProcess.Termination? {
    if let ended = try process.wait(deadline: .now + timeLimit) { return ended }
    process.kill(SIGTERM)
    if try process.wait(deadline: .now + grace) == nil {
      process.kill()
      _ = try process.wait()
    }
    return nil
  }

  private func cause(_ termination: ChildProcess.Termination?, _ output: String) -> String {
    let last = output.split(whereSeparator: \.isNewline).last.map { "; its last output: \($0)" }
    let how =
      termination.map { "the hook \($0)" }
      ?? "the hook did not end within \(DurationText.format(timeLimit)), and was killed"
    return how + (last ?? "")
  }

  private static func advice(_ hook: String) -> String {
    "see what the hook printed: journalctl -t instard INSTAR_HOOK=\(CommandText.quoted(hook))"
  }

  private func environment(_ event: String) -> [String: String] {
    [
      "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
      "HOME": user.home, "USER": user.name, "LOGNAME": user.name, "INSTAR_EVENT": event,
    ]
  }
}
