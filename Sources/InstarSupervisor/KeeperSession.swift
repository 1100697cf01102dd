import Dispatch
import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// One keeper process and the channel to it.
///
/// Calls block. One thread at a time sends and receives; any thread may `close()` or `kill()`. A keeper whose channel
/// is closed rolls back its run, unless it is in the cutover, which it finishes. Then it ends.
public final class KeeperSession: Sendable {
  /// The user that the keeper runs as.
  public let identity: ProcessIdentity
  /// The priority of the keeper and of its workers.
  public let priority: ProcessPriority
  /// The keys of which one must have signed a plugin; `nil` if none must.
  let trustedKeys: [TrustedKeys.Key]?
  private let channel: LineChannel
  private let process: ChildProcess
  private let onKill: @Sendable () -> Void
  private let isClosed = Atomic<Bool>(false)

  private init(
    identity: ProcessIdentity, priority: ProcessPriority, trustedKeys: [TrustedKeys.Key]?,
    channel: LineChannel, process: ChildProcess,
    onKill: @escaping @Sendable () -> Void
  ) {
    self.onKill = onKill
    self.identity = identity
    self.priority = priority
    self.trustedKeys = trustedKeys
    self.channel = channel
    self.process = process
  }

  /// Starts a keeper.
  ///
  /// - Parameters:
  ///   - opensOwnStoresOnly: Whether the keeper opens only stores that nobody but its user and root could have placed.
  ///   - trustedKeys: The keys of which one must have signed a plugin; `nil` if none must.
  ///   - onKill: Called when the keeper is killed, because it has ended before its work, or hangs.
  public static func start(
    _ installation: Installation, as identity: ProcessIdentity = .inherited,
    priority: ProcessPriority = ProcessPriority(), opensOwnStoresOnly: Bool = false,
    trustedKeys: [TrustedKeys.Key]? = nil,
    onKill: @escaping @Sendable () -> Void = {}
  ) throws(InstarError) -> KeeperSession {
    let (channel, childDescriptor) = try LineChannel.pair(
      lineLimitBytes: WireCoder.lineLimitBytes)
    // Kept open here, this end would hide that the keeper has ended.
    let keepersEnd = LineChannel(descriptor: childDescriptor)
    var arguments = ["--worker", installation.worker, "--library", installation.library]
    arguments += priority.arguments
    if opensOwnStoresOnly { arguments.append("--own-stores-only") }
    if let trustedKeys {
      arguments.append("--require-signature")
      arguments += trustedKeys.flatMap { ["--trusted-key", $0.bytes.base64EncodedString()] }
    }
    let process = try ChildProcess.start(
      executable: installation.keeper, arguments: arguments, channel: keepersEnd.descriptor,
      output: .captured(limitBytes: 64 << 10), identity: identity)
    return KeeperSession(
      identity: identity, priority: priority, trustedKeys: trustedKeys, channel: channel,
      process: process, onKill: onKill)
  }

  /// - Throws: `keeperDied`.
  public func send(_ request: KeeperRequest) throws(InstarError) {
    let line =
      request == .proceed
      ? Data((KeeperRequest.encodedProceed + "\n").utf8)
      : try WireCoder.line(request)
    do throws(InstarError) {
      try channel.send(line)
    } catch {
      // A failed send means that the keeper has ended; the channel only knows that its other end is closed.
      throw error.code == .interrupted ? death() : error
    }
  }

  /// The next event.
  ///
  /// - Parameter pause: As of `LineChannel.receive`.
  /// - Returns: `nil` if the deadline passed first.
  /// - Throws: `keeperDied`, with how the keeper ended and the last lines of its output; `timeLimit`, if a statement on
  ///   a store did not end; `protocolViolation`;
  ///   `interrupted` once this end is closed.
  public func next(
    deadline: ContinuousClock.Instant? = nil, pause: Duration = .zero
  ) throws(InstarError) -> KeeperEvent? {
    switch try channel.receive(deadline: deadline, pause: pause) {
    case .line(let line): return try WireCoder.message(KeeperEvent.self, from: line)
    case .timedOut: return nil
    case .closed: throw death()
    }
  }

  /// Whether the keeper has ended.
  public var hasEnded: Bool {
    (try? process.wait(deadline: .now)) != nil
  }

  /// Closes the channel without waiting for the keeper's end.
  public func close() {
    isClosed.store(true, ordering: .releasing)
    channel.close()
  }

  /// Closes the channel and waits until the keeper has rolled back and ended; kills it after the grace.
  public func end(grace: Duration = .seconds(30)) {
    close()
    if (try? process.wait(deadline: .now + grace)) == nil { kill() }
  }

  /// Kills the keeper, and with it its worker. Waits a few seconds only: a keeper blocked on a disk ends when the disk
  /// answers.
  public func kill() {
    onKill()
    close()
    process.kill()
    guard (try? process.wait(deadline: .now + .seconds(5))) == nil else { return }
    DispatchQueue.global().async { [process] in _ = try? process.wait() }
  }

  private func death() -> InstarError {
    if isClosed.load(ordering: .acquiring) { return interrupted() }
    // The socket closes a moment before the process has ended.
    var cause = "the keeper closed the channel"
    if let termination = try? process.wait(deadline: .now + .seconds(5)) {
      if termination == .exited(KeeperEvent.exitStatusOverBudget) {
        return .overBudget("cannot finish the work on the store")
      }
      cause = "the keeper \(termination)"
    } else {
      process.kill()
    }
    let output = process.capturedOutput.split(separator: "\n").suffix(8).joined(separator: "\n")
    if !output.isEmpty { cause += "; its last output:\n" + output }
    return InstarError(
      .keeperDied, "cannot continue without the keeper", cause: cause,
      next: "\(CommandText.repetition); if the keeper ends again, report these lines as a defect")
  }
}
