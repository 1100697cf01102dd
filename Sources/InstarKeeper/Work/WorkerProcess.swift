internal import Foundation
package import InstarLinux
package import InstarSchema
internal import InstarStore
package import InstarWire
internal import Synchronization

/// Runs each request in a confined `instar-worker` of its own, and always kills it at the end.
///
/// A keeper that migrates more than one store has a fork server, which forks further workers: most of the time that a
/// worker takes to start is the loader's and the Swift runtime's. One worker for many stores would be faster still, but
/// a plan may keep values in static properties, and those of one store must not reach another.
package struct WorkerProcess: PluginHost {
  private let worker: String
  private let library: String
  private let readable: [String]
  private let allowsUnconfined: Bool
  private let supervisor: Int32?
  private let signatures: SignaturePolicy?
  private let forkServer = IdleForkServer()

  /// How much of a worker's output is kept, from its beginning and its end. More output never ends a run.
  static let outputLimitBytes = 4 << 10
  /// The keeper ends a worker that sends more than this. Logged statements do not count.
  static let messageLimitBytes = 64 << 20
  /// The keeper drops logged statements beyond this. They never end a run.
  static let statementLimitBytes = 8 << 20
  /// `describe` and `plan` only load the plugin and read its types.
  static let inspectionTimeLimit: Duration = .seconds(30)
  /// How often to check on a silent worker.
  static let pollMilliseconds: Int32 = 200

  /// - Parameters:
  ///   - worker: The path of the launcher.
  ///   - library: The path of `libInstar.so`.
  ///   - readable: What a worker may read besides plugin and library. Missing paths are ignored.
  ///   - allowsUnconfined: Whether to run the worker where the kernel cannot confine it.
  ///   - supervisor: The descriptor of the session with the supervisor, which is polled but never read: the worker is
  ///     ended when the supervisor closes it.
  ///   - signatures: Which plugins may be loaded, and then as exactly the bytes that were signed; `nil` for all.
  package init(
    worker: String, library: String, readable: [String] = [], allowsUnconfined: Bool = false,
    supervisor: Int32? = nil, signatures: SignaturePolicy? = nil
  ) {
    self.worker = worker
    self.library = library
    self.readable = readable
    self.allowsUnconfined = allowsUnconfined
    self.supervisor = supervisor
    self.signatures = signatures
  }

  /// Loads the plugin in a worker, and returns the manifest that the plugin's code makes. The worker has ended when
  /// this returns or throws.
  ///
  /// - Throws: `timeLimit`, `protocolViolation`, or why the plugin cannot be loaded.
  package func describe(plugin: String) throws(InstarError) -> PluginManifest {
    var manifest: PluginManifest?
    try converse(
      .describe, plugin: plugin, limit: Self.inspectionTimeLimit
    ) { event throws(InstarError) in
      guard case .described(let described) = event else { return .kept }
      manifest = described
      return .ended
    }
    guard let manifest else { throw Self.noAnswer(plugin) }
    return manifest
  }

  /// Makes the plan's changes on an empty store in a worker's memory, and returns them. No store is opened.
  ///
  /// - Throws: Why the plan cannot be used; `timeLimit`, `protocolViolation`.
  package func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    var migration: PlannedMigration?
    try converse(
      .plan(plan: plan, from: version, store: store), plugin: plugin,
      limit: Self.inspectionTimeLimit
    ) { event throws(InstarError) in
      guard case .planned(let planned) = event else { return .kept }
      migration = planned
      return .ended
    }
    guard let migration else { throw Self.noAnswer(plugin) }
    return migration
  }

  /// Runs the plan's stages on the clone in a worker. The worker has ended when this returns or throws. The clone is
  /// then in any state, whatever the worker says about it.
  ///
  /// - Throws: The first error of a stage; `timeLimit`; `protocolViolation`, also for a worker that ended without a
  ///   reply.
  package func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    var statementBytes = 0
    let request = WorkerRequest.migrate(
      plan: work.plan, from: work.from, clone: work.clone, store: work.store,
      externalFolder: work.externalFolder, sqlDebugLevel: work.sqlDebugLevel)
    // The time of a worker is limited by stage.
    try WorkBudget.paused { () throws(InstarError) in
      try converse(
        request, plugin: work.plugin, work: work, limit: work.stageTimeLimit,
        onOutput: { text throws(InstarError) in try onEvent(.output(text)) }
      ) { event throws(InstarError) in
        switch event {
        case .stageStarted(let stage):
          try onEvent(.stageStarted(stage))
          return .restarted
        case .stageFinished(let stage):
          try onEvent(.stageFinished(stage))
          return .restarted
        case .progress(let progress):
          try onEvent(.progress(progress))
          return .kept
        case .valuesLost(let values):
          try onEvent(.valuesLost(values))
          return .kept
        case .fetchedWhole(let fetch):
          try onEvent(.fetchedWhole(fetch))
          return .kept
        case .sql(let text):
          // A plugin may send statements although nobody asked for them.
          guard work.sqlDebugLevel > 0, statementBytes <= Self.statementLimitBytes else {
            return .kept
          }
          statementBytes += text.utf8.count
          let isCut = statementBytes > Self.statementLimitBytes
          try onEvent(
            .sql(
              isCut
                ? "CoreData: annotation: further statements are not shown, after \(Self.statementLimitBytes >> 20) MiB"
                : text))
          return .kept
        case .migrated:
          return .ended
        default:
          return .kept
        }
      }
    }
  }

  private static func noAnswer(_ plugin: String) -> InstarError {
    InstarError(
      .protocolViolation, "cannot read plugin '\(plugin)'",
      cause: "the worker ended without an answer", next: adviceOnDescriptors)
  }

  /// The worker is Instar's own program: only the plugin in it can disturb the conversation.
  private static let adviceOnDescriptors =
    "let the plugin close and write only files that it opened, and build it again with this version of Instar"
}

// MARK: - One conversation

extension WorkerProcess {
  /// What an event does to the time limit of the conversation: nothing, start it again, or end both.
  private enum LimitChange {
    case kept, restarted, ended
  }

  /// Starts a worker, sends it one request, and receives events until it has finished or failed.
  ///
  /// When this returns or throws, the worker has been killed and waited for. A confined worker cannot start processes,
  /// so nothing of it is left.
  private func converse(
    _ request: WorkerRequest, plugin: String, work: CloneWork? = nil, limit: Duration,
    onOutput: (String) throws(InstarError) -> Void = { _ in },
    onEvent: (WorkerEvent) throws(InstarError) -> LimitChange
  ) throws(InstarError) {
    let contents = try signatures?.read(plugin).contents
    let (channel, childDescriptor) = try LineChannel.pair(lineLimitBytes: WireCoder.lineLimitBytes)
    defer { channel.close() }
    let (child, server): (ChildProcess, ForkServer?)
    do {
      defer { close(childDescriptor) }
      (child, server) = try start(
        arguments(plugin: plugin, work), input: contents ?? Data(), channel: childDescriptor, work)
    }

    var failure: InstarError?
    do {
      try receive(
        channel, from: child, request: request, plugin: plugin, limit: limit, work: work,
        onEvent: onEvent)
    } catch {
      failure = error
    }
    child.kill()
    // The worker was killed, so its status does not matter.
    _ = try? child.wait()
    if let server { forkServer.giveBack(server) }
    let output = child.capturedOutput
    if !output.isEmpty {
      // What a plugin printed may explain a failure, so it is passed on then too.
      do { try onOutput(output) } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  /// Starts a worker: forked where the keeper has a server for that.
  private func start(
    _ arguments: [String], input: Data, channel: Int32, _ work: CloneWork?
  ) throws(InstarError) -> (ChildProcess, ForkServer?) {
    let output = ChildProcess.Output.captured(limitBytes: Self.outputLimitBytes)
    // If the server cannot be started or has ended, the worker is started without one: that only costs time.
    if work != nil,
      let server = forkServer.take(orStart: { () throws(InstarError) in
        try ForkServer(
          executable: worker, arguments: ["--serve", "--library", library],
          environment: environment(cloneFolder: nil))
      }),
      let child = try? server.start(
        arguments: arguments, input: input, channel: channel, output: output)
    {
      return (child, server)
    }
    let child = try ChildProcess.start(
      executable: worker, arguments: arguments,
      environment: environment(cloneFolder: work?.cloneFolder), input: input, channel: channel,
      output: output)
    return (child, nil)
  }

  /// Receives events until `onEvent` ends the conversation, and answers the first, `ready`, with the request.
  private func receive(
    _ channel: LineChannel, from child: ChildProcess, request: WorkerRequest, plugin: String,
    limit: Duration, work: CloneWork?, onEvent: (WorkerEvent) throws(InstarError) -> LimitChange
  ) throws(InstarError) {
    var deadline = ContinuousClock.now + limit
    var isReady = false
    var messageBytes = 0
    while true {
      switch try Self.next(channel, plugin) {
      case .line(let line):
        switch try Self.event(in: line, plugin, &messageBytes) {
        case .ready:
          guard !isReady else { throw Self.violation(plugin, "the worker reported ready twice") }
          isReady = true
          do {
            try channel.send(try WireCoder.line(request))
          } catch {
            throw Self.death(of: child, plugin: plugin, work)
          }
          continue
        case let event:
          guard isReady else {
            throw Self.violation(plugin, "the worker sent a message before it reported ready")
          }
          switch try onEvent(event) {
          case .ended: return
          case .kept: break
          case .restarted: deadline = ContinuousClock.now + limit
          }
        }
      case .closed:
        throw Self.death(of: child, plugin: plugin, work)
      case .timedOut:
        guard try waitForNews(channel) else {
          Self.cancel(child, channel)
          throw InstarError(
            .interrupted, Self.what(plugin), cause: "the supervisor ended during the run",
            next: CommandText.repetition)
        }
      }
      // Checked after each message too: a worker that never stops sending is late as well.
      guard ContinuousClock.now < deadline else {
        throw isReady
          ? Self.overTime(of: child, plugin: plugin, limit, work)
          : Self.slowToLoad(plugin, limit)
      }
    }
  }

  /// How long a worker whose run is canceled may continue: less than the second that the supervisor waits for the
  /// keeper.
  private static let cancellationGrace = Duration.milliseconds(300)

  /// Tells the worker that its run is canceled, and gives a closure that checks for cancellation the time to end.
  private static func cancel(_ child: ChildProcess, _ channel: LineChannel) {
    child.kill(SIGTERM)
    let deadline = ContinuousClock.now + cancellationGrace
    // The worker is killed next, whatever it sends.
    while case .line(let line)? = try? channel.receive(deadline: deadline),
      ContinuousClock.now < deadline
    {
      if case .failed? = try? WireCoder.message(WorkerEvent.self, from: line) { return }
    }
  }

  private static func next(
    _ channel: LineChannel, _ plugin: String
  ) throws(InstarError) -> LineChannel.Received {
    do {
      return try channel.receive(deadline: .now)
    } catch {
      throw violation(plugin, error.cause)
    }
  }

  /// Reads one message, and adds its size to those of the messages before. Logged statements do not count.
  ///
  /// - Throws: `protocolViolation`; `outputLimit`; what the worker reports as its failure.
  private static func event(
    in line: Data, _ plugin: String, _ messageBytes: inout Int
  ) throws(InstarError) -> WorkerEvent {
    let event: WorkerEvent
    do {
      event = try WireCoder.message(WorkerEvent.self, from: line)
    } catch {
      throw violation(plugin, error.cause)
    }
    if case .sql = event {} else { messageBytes += line.count }
    guard messageBytes <= messageLimitBytes else { throw messageFlood(plugin) }
    if case .failed(let error) = event { throw believable(error) }
    return event
  }

  /// Waits for a message of the worker, but only for a moment. `false` when the supervisor has ended.
  private func waitForNews(_ channel: LineChannel) throws(InstarError) -> Bool {
    var descriptors = [pollfd(fd: channel.descriptor, events: Int16(POLLIN), revents: 0)]
    if let supervisor {
      // Only the end of the session wakes the poll, not a request that waits to be read.
      descriptors.append(pollfd(fd: supervisor, events: Self.peerClosed, revents: 0))
    }
    let count = poll(&descriptors, nfds_t(descriptors.count), Self.pollMilliseconds)
    guard count > 0, descriptors.count > 1 else { return true }
    return descriptors[1].revents == 0
  }

  /// `POLLRDHUP`, which Swift does not import.
  private static let peerClosed = Int16(0x2000)

  private func arguments(plugin: String, _ work: CloneWork?) -> [String] {
    var arguments = ["--library", library, "--plugin", plugin]
    arguments += ["--memory", String(Self.memoryBytes(work))]
    if let work {
      arguments += ["--clone-folder", work.cloneFolder, "--file-size", String(work.fileSizeBytes)]
    }
    if let folder = work?.externalFolder { arguments += ["--read", folder] }
    for path in readable { arguments += ["--read", path] }
    if signatures != nil { arguments.append("--from-input") }
    if allowsUnconfined { arguments.append("--allow-unconfined") }
    return arguments
  }

  private static func memoryBytes(_ work: CloneWork?) -> Int64 {
    work?.memoryBytes ?? MigrationRequest.defaultWorkerMemoryBytes
  }

  /// Only variables that a plugin may depend on. SQLite's temporary files go where the worker may write.
  private func environment(cloneFolder: String?) -> [String: String] {
    let inherited = ProcessInfo.processInfo.environment
    var environment: [String: String] = [:]
    for (name, value) in inherited
    where ["PATH", "TZ", "LANG", "LD_LIBRARY_PATH"].contains(name)
      || name.hasPrefix("LC_")
    {
      environment[name] = value
    }
    // A confined process cannot start the backtracer; without this each trap prints a long complaint.
    environment["SWIFT_BACKTRACE"] = inherited["SWIFT_BACKTRACE"] ?? "enable=no"
    if let cloneFolder {
      environment["TMPDIR"] = cloneFolder
      environment["SQLITE_TMPDIR"] = cloneFolder
    }
    return environment
  }

  /// An error is logged, kept in the ledger, and shown with others.
  private static let longestErrorText = 4096

  /// Removes what a worker cannot know: the store, its state, and who holds it. Shortens texts of a plugin that are too
  /// long to read.
  private static func believable(_ error: InstarError) -> InstarError {
    func cut(_ text: String) -> String {
      text.utf8.count > longestErrorText ? text.prefix(longestErrorText / 4) + "…" : text
    }
    var error = error
    error.what = cut(error.what)
    error.cause = cut(error.cause)
    error.stage = error.stage.map(cut)
    error.next = error.next.map(cut)
    error.store = nil
    error.state = nil
    if error.code == .busyStore { error.code = .stageFailed }
    return error
  }

  private static func what(_ plugin: String) -> String { "cannot run plugin '\(plugin)'" }

  private static func violation(_ plugin: String, _ cause: String) -> InstarError {
    InstarError(.protocolViolation, what(plugin), cause: cause, next: adviceOnDescriptors)
  }

  private static func slowToLoad(_ plugin: String, _ limit: Duration) -> InstarError {
    InstarError(
      .timeLimit, what(plugin), cause: "the plugin did not load within \(text(limit))",
      next: "remove slow code from the plugin's initializers, then build it again")
  }

  /// Ends a worker that exceeded its limit, and finds out whether a statement or the plugin's own code took the time.
  private static func overTime(
    of child: ChildProcess, plugin: String, _ limit: Duration, _ work: CloneWork?
  ) -> InstarError {
    child.kill(SIGXCPU)
    // A plugin may have changed the signal's handler. Then the worker is killed next, without an answer.
    let ended = try? child.wait(deadline: .now + .seconds(1))
    guard case .exited(WorkerEvent.exitStatusOverBudget)? = ended ?? nil else {
      return InstarError(
        .timeLimit, what(plugin), cause: "the plugin took longer than \(text(limit))",
        next: "make the stage faster, or raise 'stageTimeLimit' (instarctl: --stage-time-limit)")
    }
    var error = InstarError.overBudget(what(plugin), store: work?.store)
    error.cause =
      "a statement on the clone was still running at the stage's limit of \(text(limit))"
    error.next? += "; or raise 'stageTimeLimit' (instarctl: --stage-time-limit)"
    return error
  }

  private static func messageFlood(_ plugin: String) -> InstarError {
    InstarError(
      .outputLimit, what(plugin),
      cause: "the worker sent more than \(messageLimitBytes >> 20) MiB of messages",
      next: adviceOnDescriptors)
  }

  /// Why a worker closed the conversation before it had finished.
  private static func death(
    of child: ChildProcess, plugin: String, _ work: CloneWork?
  ) -> InstarError {
    let what = Self.what(plugin)
    // A worker that cannot be waited for counts as running.
    let ended = try? child.wait(deadline: .now + .seconds(2))
    let last = lastLines(of: child.capturedOutput)
    switch ended ?? nil {
    case .exited(WorkerEvent.exitStatusOverMemory):
      return InstarError(
        .workerLimit, what,
        cause: "the plugin used more than \(memoryBytes(work) >> 20) MiB of memory\(last)",
        next: "fetch rows in batches, or raise 'workerMemory' (instarctl: --worker-memory)")
    case .exited(WorkerEvent.exitStatusOverBudget):
      return .overBudget(what, store: work?.store)
    case .exited(WorkerEvent.exitStatusOverThreads):
      return InstarError(
        .workerLimit, what, cause: "the plugin started more threads than the limit allows\(last)",
        next: "start fewer threads in the plugin, and build it again")
    case .signaled(SIGXFSZ):
      return InstarError(
        .workerLimit, what,
        cause:
          "the plugin wrote a file of more than \((work?.fileSizeBytes ?? 0) >> 20) MiB\(last)",
        next: "write less to the store in one stage")
    case .signaled(let signal):
      return InstarError(
        .workerDied, what, cause: "the worker \(ChildProcess.Termination.signaled(signal))\(last)",
        next: signal == SIGKILL
          ? "to see whether the kernel ended the worker for lack of memory, run: "
            + "journalctl -k | grep -i 'killed process'"
          : "the plugin's code crashed: send this message to the plugin's authors (look for a force "
            + "unwrap, an array index or an overflow)")
    case .exited(let status):
      return InstarError(
        .workerExited, what,
        cause:
          "the worker \(ChildProcess.Termination.exited(status)) before it had finished\(last)",
        next: "remove calls of exit() from the plugin"
      )
    case nil:
      return InstarError(
        .protocolViolation, what,
        cause: "the worker closed the conversation but kept running\(last)",
        next: adviceOnDescriptors)
    }
  }

  private static func lastLines(of output: String) -> String {
    let lines = output.split(separator: "\n")
    // A backtrace of Swift follows its reason, and is longer than what is shown.
    if let reason = lines.last(where: { $0.contains("Fatal error: ") }) {
      return "; it printed:\n" + reason.prefix(300)
    }
    let last = lines.suffix(5).map { String($0.prefix(300)) }
    return last.isEmpty ? "" : "; it printed last:\n" + last.joined(separator: "\n")
  }

  private static func text(_ duration: Duration) -> String {
    let seconds = duration.inSeconds
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}

/// The fork server of a keeper, while no worker of it runs.
private final class IdleForkServer: Sendable {
  private struct State {
    var server: ForkServer?
    var hadWork = false
  }

  private let state = Mutex(State())

  /// `nil` for the first worker, which may be the only one: a server takes as long to start as a worker. Also `nil`
  /// where no server can be started.
  func take(orStart start: () throws(InstarError) -> ForkServer) -> ForkServer? {
    let (server, isFirst) = state.withLock { state in
      defer { (state.server, state.hadWork) = (nil, true) }
      return (state.server, !state.hadWork)
    }
    return isFirst ? nil : server ?? (try? start())
  }

  func giveBack(_ server: ForkServer) {
    guard server.isUsable else { return }
    state.withLock { $0.server = server }
  }
}
