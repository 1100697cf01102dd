import Dispatch
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// One keeper process, and the conversation with it.
///
/// Blocking; one thread at a time asks and listens, any thread may `close()` or `kill()`. A keeper
/// whose conversation is closed clears away what it is doing, unless it writes a store back: that
/// it finishes. Then it ends.
public final class KeeperSession: Sendable {
  /// As whom it works.
  public let identity: ProcessIdentity
  private let channel: LineChannel
  private let process: ChildProcess
  private let isClosed = Atomic<Bool>(false)

  private init(identity: ProcessIdentity, channel: LineChannel, process: ChildProcess) {
    self.identity = identity
    self.channel = channel
    self.process = process
  }

  /// Starts a keeper.
  ///
  /// - Parameter opensOwnStoresOnly: It opens only stores that nobody but its user and root could
  ///   have put where they are.
  public static func start(
    _ installation: Installation, as identity: ProcessIdentity = .inherited,
    opensOwnStoresOnly: Bool = false
  ) throws(InstarError) -> KeeperSession {
    let (channel, childDescriptor) = try LineChannel.pair(
      lineLimitBytes: WireCoder.lineLimitBytes)
    // The keeper's own end: here it would hide that the keeper has ended.
    let keepersEnd = LineChannel(descriptor: childDescriptor)
    var arguments = ["--worker", installation.worker, "--library", installation.library]
    if opensOwnStoresOnly { arguments.append("--own-stores-only") }
    let process = try ChildProcess.start(
      executable: installation.keeper, arguments: arguments, channel: keepersEnd.descriptor,
      output: .captured(limitBytes: 64 << 10), identity: identity)
    return KeeperSession(identity: identity, channel: channel, process: process)
  }

  /// - Throws: `keeperDied`.
  public func send(_ request: KeeperRequest) throws(InstarError) {
    let line = try WireCoder.line(request)
    do throws(InstarError) {
      try channel.send(line)
    } catch {
      throw deathOrSelf(error)
    }
  }

  /// The next event.
  ///
  /// - Returns: `nil` where the deadline passed first.
  /// - Throws: `keeperDied`, with how it ended and what it last wrote to its standard error;
  ///   `protocolViolation`; `interrupted` once this end is closed.
  public func next(
    deadline: ContinuousClock.Instant? = nil
  ) throws(InstarError) -> KeeperEvent? {
    switch try channel.receive(deadline: deadline) {
    case .line(let line): return try WireCoder.message(KeeperEvent.self, from: line)
    case .timedOut: return nil
    case .closed: throw death()
    }
  }

  /// The keeper has ended.
  public var hasEnded: Bool {
    (try? process.wait(deadline: .now)) != nil
  }

  /// Ends the conversation without waiting for the keeper's end.
  public func close() {
    isClosed.store(true, ordering: .releasing)
    channel.close()
  }

  /// Ends the conversation and waits until the keeper has cleared away and ended; after the grace
  /// it is killed.
  public func end(grace: Duration = .seconds(30)) {
    close()
    if (try? process.wait(deadline: .now + grace)) == nil { kill() }
  }

  /// Kills the keeper, and with it its worker.
  public func kill() {
    close()
    process.kill()
    _ = try? process.wait()
  }

  /// Kills the keeper without waiting for its end: one that waits for a disk ends only when that answers.
  func abandon() {
    close()
    process.kill()
    DispatchQueue.global().async { [process] in _ = try? process.wait() }
  }

  /// What a failed send means: mostly that the keeper has died, which the channel cannot know.
  private func deathOrSelf(_ error: InstarError) -> InstarError {
    error.code == .interrupted ? death() : error
  }

  private func death() -> InstarError {
    if isClosed.load(ordering: .acquiring) { return interrupted() }
    // The socket closes a moment before the process has ended.
    var cause = "it ended the conversation"
    if let termination = try? process.wait(deadline: .now + .seconds(5)) {
      cause = "it \(termination)"
    } else {
      process.kill()
    }
    let output = process.capturedOutput.split(separator: "\n").suffix(8).joined(separator: "\n")
    if !output.isEmpty { cause += "; it wrote:\n" + output }
    return InstarError(
      .keeperDied, "the keeper has ended in the middle of its work", cause: cause,
      next: "try again; if it ends again, report it with the lines above")
  }
}
