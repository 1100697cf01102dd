import Dispatch
import Foundation
public import InstarConfiguration
public import InstarLinux
public import InstarSchema
import InstarSupervisor
import InstarSystemd
import InstarWire
public import ServiceLifecycle

/// The daemon: watches folders, and has stores that are behind migrated.
///
/// One loop takes one input after the other and owns everything that changes. What may take long
/// (scans, probes, runs) goes on elsewhere and comes back as an input.
///
/// States:
///
/// ```text
/// recovering ──▶ scanning ──▶ running ──▶ stopping ──▶ (end)
///      └─────────────┴────────────────────────▲
/// ```
///
/// - recovering: what an earlier process left is cleared away; nothing is watched.
/// - scanning: folders are watched and read for the first time. When all were, the service manager
///   is told READY.
/// - running: idle, but for what the watch, the timer and people bring.
/// - stopping: nothing new is begun. Runs that write their store are waited for, all others are
///   undone by their keeper.
///
/// Invariants:
/// - A folder is watched before it is listed: a store that is made in between is met twice rather
///   than never.
/// - No store and no plugin is opened here: only names and `lstat` are used. Keepers do the rest.
/// - An error of one store, plugin or folder is reported, and never ends the loop.
public actor DaemonService: Service {
  private enum State {
    case recovering
    case scanning
    case running
    case stopping
  }

  private enum Input: Sendable {
    case recoveryEnded(InstarError?)
    case folderEvent(FolderWatch.Event)
    case scanned(
      Configuration.Watch, folder: String, Result<Scanner.Findings, InstarError>, generation: Int)
    case described([(path: String, result: Result<PluginManifest, InstarError>)])
    case probed(ProbeReport, before: FileVersion?, after: FileVersion?)
    case probesEnded(InstarError?)
    case runEnded(RunReport, before: FileVersion?, after: FileVersion?)
    case tick
    case reload
    case shutdown
  }

  private let installation: Installation
  private let log: EventLog
  private let readConfiguration: @Sendable () throws(InstarError) -> Configuration
  private nonisolated let mailbox: AsyncStream<Input>.Continuation
  private let inputs: AsyncStream<Input>
  /// Listings are read here, one after the other: they block.
  private let scanQueue = DispatchQueue(label: "instard.scan")

  private var state = State.recovering
  private var configuration: Configuration
  private var queue: StoreQueue
  private var registry = PluginRegistry()
  private var isReleased = false
  /// A reload was asked for before there was anything to reload.
  private var isReloadWanted = false
  private var runningStores: Set<String> = []

  /// Counts reloads: a scan that began before the last one is not believed.
  private var generation = 0
  /// Folders of watches whose scan is out; `true` where another one is wanted after it.
  private var scansOut: [String: Bool] = [:]
  /// Folders of watches that have not been read yet since the start or the last reload.
  private var unread: Set<String> = []
  /// What was reported of a watch; reported again only when it changes.
  private var problems: [String: Set<InstarError>] = [:]
  private var brokenWatches: Set<String> = []

  private var rescanDue: ContinuousClock.Instant?
  private var pluginListDue: ContinuousClock.Instant?
  private var statusDue: ContinuousClock.Instant?
  private var statusSentAt: ContinuousClock.Instant?
  private var status = ""
  private var watchdogDue: ContinuousClock.Instant?
  private let watchdogInterval = ServiceNotification.watchdogInterval
  private var extensionDue: ContinuousClock.Instant?
  private var timer: Task<Void, Never>?
  private var timerDue: ContinuousClock.Instant?

  /// Ticks are not closer together than this: under a burst of changes one tick serves many stores.
  private static let shortestTick = Duration.milliseconds(20)

  /// To clear away what an earlier process left, and to end runs that write a store, may take longer
  /// than the service manager waits for a start or a stop. It is told so in time, by the loop: one
  /// that hangs is given up.
  private static let extensionInterval = Duration.seconds(10)
  private static let extendedTimeout = Duration.seconds(60)

  /// A plugin file that cannot be used is reported only when it was left alone for so long.
  private static let settlingTime = Duration.seconds(2)

  /// - Parameters:
  ///   - configuration: what to begin with.
  ///   - installation: where keeper and worker are.
  ///   - log: where events go.
  ///   - readConfiguration: reads the configuration again; called on `reload`.
  public init(
    configuration: Configuration, installation: Installation, log: EventLog,
    readConfiguration: @escaping @Sendable () throws(InstarError) -> Configuration
  ) {
    self.configuration = configuration
    self.installation = installation
    self.log = log
    self.readConfiguration = readConfiguration
    queue = StoreQueue(settings: StoreQueue.Settings(configuration))
    (inputs, mailbox) = AsyncStream.makeStream(of: Input.self)
  }

  /// Reads the configuration again, and looks at every folder, plugin and store anew, also at those
  /// that were given up. A configuration that cannot be used is reported, and the old one stays in
  /// force.
  public nonisolated func reload() {
    mailbox.yield(.reload)
  }

  /// Works until graceful shutdown is asked for.
  ///
  /// - Throws: `stateFolderFailed` when the state folder cannot be used, or another daemon uses it;
  ///   `watchFailed` when the kernel gives no more inotify instances. No store is touched then.
  public func run() async throws {
    let stateFolder = try StateFolder(path: configuration.stateFolder)
    guard let lock = try stateFolder.tryLock() else {
      throw InstarError(
        .stateFolderFailed, "cannot use the state folder '\(configuration.stateFolder)'",
        cause: "another instard uses it", next: "stop that one, or give this one its own 'state'")
    }
    defer { lock.release() }
    let supervisor = Supervisor(
      installation: installation, stateFolder: stateFolder, rights: .storeOwner)
    var watcher = try Watcher(mailbox: mailbox)
    defer { watcher.close() }
    log.post(.daemonStarted(version: Release.version, configuration))

    let mailbox = mailbox
    let log = log
    Task {
      do throws(InstarError) {
        try await supervisor.recoverAll(
          onReport: { log.post(.runRecovered($0)) }, onError: { log.post(.recoveryFailed($0)) })
        mailbox.yield(.recoveryEnded(nil))
      } catch {
        mailbox.yield(.recoveryEnded(error))
      }
    }
    await withGracefulShutdownHandler {
      watchdogDue = watchdogInterval.map { .now + $0 / 2 }
      extensionDue = .now + Self.extensionInterval
      updateTimer()
      for await input in inputs {
        do throws(InstarError) {
          try handle(input, supervisor, &watcher)
        } catch {
          log.post(.problem(error))
        }
        if state == .stopping, runningStores.isEmpty { break }
        updateStatus()
        updateTimer()
      }
    } onGracefulShutdown: {
      mailbox.yield(.shutdown)
    }
    timer?.cancel()
    // Also reached when the task was cancelled rather than shut down.
    supervisor.cancel()
  }

  private func handle(
    _ input: Input, _ supervisor: Supervisor, _ watcher: inout Watcher
  ) throws(InstarError) {
    switch input {
    case .recoveryEnded(let error):
      if let error { log.post(.recoveryFailed(error)) }
      guard state == .recovering else { return }
      state = .scanning
      listPlugins(supervisor, watcher)
      beginScanning(watcher)
      if isReloadWanted { try reload(supervisor, &watcher) }
    case .folderEvent(let event):
      folderChanged(event, watcher)
      perform(supervisor)
    case .scanned(let watch, let folder, let result, let generation):
      guard generation == self.generation else { return }
      scanned(watch, folder, result, watcher)
      perform(supervisor)
    case .described(let results):
      described(results, supervisor)
    case .probed(let report, let before, let after):
      feed(.probed(report, before: before, after: after), supervisor)
    case .probesEnded(let error):
      feed(.probesEnded(error), supervisor)
    case .runEnded(let report, let before, let after):
      runningStores.remove(report.store)
      feed(.runEnded(report, before: before, after: after), supervisor)
    case .tick:
      tick(supervisor, watcher)
    case .reload:
      switch state {
      case .recovering: isReloadWanted = true
      case .scanning, .running: try reload(supervisor, &watcher)
      case .stopping: break
      }
    case .shutdown:
      guard state != .stopping else { return }
      state = .stopping
      ServiceNotification.send(.stopping)
      extensionDue = .now + Self.extensionInterval
      log.post(.daemonStopping(running: runningStores.count))
      feed(.stopping, supervisor)
      supervisor.cancel()
    }
  }

  // MARK: Folders

  /// Reads every watched folder.
  private func beginScanning(_ watcher: Watcher) {
    rescanDue = .now + configuration.rescanInterval
    unread = Set(configuration.watches.map(\.folder))
    for watch in configuration.watches { scan(watch, watcher) }
    becomeReadyIfScanned()
  }

  private func scan(_ watch: Configuration.Watch, _ watcher: Watcher) {
    guard scansOut[watch.folder] == nil else {
      scansOut[watch.folder] = true
      return
    }
    scansOut[watch.folder] = false
    scan(watch, from: watch.folder, watcher)
  }

  private func scan(_ watch: Configuration.Watch, from folder: String, _ watcher: Watcher) {
    let mailbox = mailbox
    let generation = generation
    let folderWatch = watcher.folderWatch
    scanQueue.async {
      let result: Result<Scanner.Findings, InstarError>
      do throws(InstarError) {
        result = .success(
          try Scanner(watch: watch).scan(from: folder) { folder in
            do throws(InstarError) {
              try folderWatch.add(folder)
              return nil
            } catch {
              return error
            }
          })
      } catch {
        result = .failure(error)
      }
      mailbox.yield(.scanned(watch, folder: folder, result, generation: generation))
    }
  }

  private func scanned(
    _ watch: Configuration.Watch, _ folder: String, _ result: Result<Scanner.Findings, InstarError>,
    _ watcher: Watcher
  ) {
    let isWhole = folder == watch.folder
    var found: Set<String> = []
    switch result {
    case .success(let findings):
      for store in findings.stores {
        found.insert(store.path)
        handle(.found(store.path, store.version))
      }
      reportProblems(Set(findings.problems), of: watch, isWhole: isWhole)
      if isWhole, unread.contains(watch.folder) || brokenWatches.contains(watch.folder) {
        brokenWatches.remove(watch.folder)
        log.post(.watchStarted(folder: watch.folder, stores: findings.stores.count))
      }
    case .failure(let error):
      // A folder below that is gone again is no problem: its stores are looked at now.
      if isWhole {
        brokenWatches.insert(watch.folder)
        reportProblems([error], of: watch, isWhole: true)
      }
    }
    // What was there and is not listed is looked at once more: it may have come back.
    for store in queue.stores where !found.contains(store) && Self.lies(store, in: folder, watch) {
      handle(.touched(store))
    }
    guard isWhole else { return }
    unread.remove(watch.folder)
    if scansOut.removeValue(forKey: watch.folder) == true { scan(watch, watcher) }
    becomeReadyIfScanned()
  }

  private func reportProblems(
    _ found: Set<InstarError>, of watch: Configuration.Watch, isWhole: Bool
  ) {
    let known = problems[watch.folder] ?? []
    for problem in found.subtracting(known).sorted(by: { $0.what < $1.what }) {
      log.post(.watchFailed(problem))
    }
    problems[watch.folder] = isWhole ? found : known.union(found)
  }

  private func becomeReadyIfScanned() {
    guard state == .scanning, unread.isEmpty else { return }
    state = .running
    status = statusText
    statusSentAt = .now
    ServiceNotification.send(.ready, .status(status))
  }

  private func folderChanged(_ event: FolderWatch.Event, _ watcher: Watcher) {
    switch event {
    case .changed(let folder, let name):
      if PluginFolder.isPlugin(name), configuration.pluginFolders.contains(folder) {
        pluginListDue = .now + configuration.debounce
      }
      guard let watch = watch(of: folder) else { return }
      let path = folder == "/" ? "/" + name : "\(folder)/\(name)"
      if watch.isRecursive, !StoreName.isPrivateFolder(name), Scanner.isFolder(path) {
        scan(watch, from: path, watcher)
      } else if let store = StoreName.store(of: name, patterns: watch.patterns) {
        if store == name, let problem = Scanner.kindProblem(of: path) {
          reportProblems([problem], of: watch, isWhole: false)
        }
        handle(.touched(folder == "/" ? "/" + store : "\(folder)/\(store)"))
      }
    case .removed(let folder):
      if configuration.pluginFolders.contains(folder) {
        pluginListDue = .now + configuration.debounce
      }
      if let watch = watch(of: folder) { scan(watch, watcher) }
    case .overflow:
      log.post(.changesLost)
      pluginListDue = .now
      rescanDue = .now
    }
  }

  /// The watch that a folder belongs to.
  private func watch(of folder: String) -> Configuration.Watch? {
    configuration.watches.first { $0.folder == folder }
      ?? configuration.watches
      .filter { $0.isRecursive && folder.hasPrefix($0.folder == "/" ? "/" : $0.folder + "/") }
      .max { $0.folder.utf8.count < $1.folder.utf8.count }
  }

  /// The watch that has a store of that path.
  private func watch(ofStore store: String) -> Configuration.Watch? {
    let path = store as NSString
    guard let watch = watch(of: path.deletingLastPathComponent),
      StoreName.matches(path.lastPathComponent, patterns: watch.patterns)
    else { return nil }
    return watch
  }

  /// Would a scan of `folder` list the store?
  private static func lies(
    _ store: String, in folder: String, _ watch: Configuration.Watch
  ) -> Bool {
    let prefix = folder == "/" ? "/" : folder + "/"
    guard store.hasPrefix(prefix) else { return false }
    return watch.isRecursive || !store.utf8.dropFirst(prefix.utf8.count).contains(UInt8(ascii: "/"))
  }

  // MARK: Plugins

  private func listPlugins(_ supervisor: Supervisor, _ watcher: Watcher) {
    pluginListDue = nil
    var files: [String: FileVersion] = [:]
    var found: Set<InstarError> = []
    for folder in configuration.pluginFolders {
      do throws(InstarError) {
        // Watched before it is listed. A folder that is not there yet is looked for at each rescan.
        if FileManager.default.fileExists(atPath: folder) { try watcher.folderWatch.add(folder) }
        files.merge(try PluginFolder.list(folder)) { first, _ in first }
      } catch {
        found.insert(error)
      }
    }
    let known = problems["plugins"] ?? []
    for problem in found.subtracting(known) { log.post(.watchFailed(problem)) }
    problems["plugins"] = found
    report(registry.list(files))
    registry.doubtRefused(.untrustedPlugin)
    describePlugins(supervisor)
    perform(supervisor)
  }

  private func describePlugins(_ supervisor: Supervisor) {
    let plugins = registry.nextToDescribe()
    if plugins.isEmpty {
      if !registry.isBusy, !isReleased {
        isReleased = true
        handle(.released)
      }
      return
    }
    let mailbox = mailbox
    Task {
      var results: [(path: String, result: Result<PluginManifest, InstarError>)]
      do throws(InstarError) {
        results = try await supervisor.describe(plugins: plugins).map { ($0.plugin, $0.result) }
      } catch {
        results = plugins.map { ($0, .failure(error)) }
      }
      mailbox.yield(.described(results))
    }
  }

  private func described(
    _ results: [(path: String, result: Result<PluginManifest, InstarError>)],
    _ supervisor: Supervisor
  ) {
    var versions: [String: FileVersion] = [:]
    for (path, _) in results { versions[path] = PluginFolder.version(of: path) }
    let fresh = versions.filter { PluginFolder.isFresh($0.value, age: Self.settlingTime) }
    let (changes, isStale) = registry.describe(
      results, versions: versions, fresh: Set(fresh.keys))
    if isStale { pluginListDue = .now + max(configuration.debounce, .milliseconds(100)) }
    report(changes)
    describePlugins(supervisor)
    perform(supervisor)
  }

  private func report(_ changes: [PluginRegistry.Change]) {
    var isUsableSetChanged = false
    for change in changes {
      switch change {
      case .accepted(let plugin, let manifest):
        log.post(.pluginAccepted(plugin: plugin, manifest))
        isUsableSetChanged = true
      case .refused(let plugin, let error, let wasUsable):
        log.post(.pluginRefused(plugin: plugin, error))
        if wasUsable { isUsableSetChanged = true }
      case .removed(let plugin):
        log.post(.pluginRemoved(plugin: plugin))
        isUsableSetChanged = true
      }
    }
    if isUsableSetChanged { handle(.verdictsInDoubt) }
  }

  // MARK: Stores

  /// Actions that wait to be performed, in order.
  private var actions: [StoreQueue.Action] = []

  private func feed(_ event: StoreQueue.Event, _ supervisor: Supervisor) {
    handle(event)
    perform(supervisor)
  }

  private func handle(_ event: StoreQueue.Event) {
    actions += queue.handle(event, at: .now)
  }

  private func perform(_ supervisor: Supervisor) {
    var next = 0
    while next < actions.count {
      let action = actions[next]
      next += 1
      switch action {
      case .look(let store):
        if watch(ofStore: store) != nil, let version = FileVersion(path: store) {
          handle(.found(store, version))
        } else {
          handle(.missing(store))
        }
      case .probe(let stores): probe(stores, supervisor)
      case .run(let store, let plugin): migrate(store, plugin, supervisor)
      case .reportProbe(let report): log.post(.storeProbed(report))
      case .reportProbeFailure(let store, let error, let followUp):
        log.post(.probeFailed(store: store, error, followUp))
      case .reportProbesFailure(let error, let followUp):
        log.post(.probeFailed(store: nil, error, followUp))
        if error.isAboutPlugin {
          // It could be used a while ago. Described anew, it is either well or left out.
          registry.doubtAll()
          describePlugins(supervisor)
        }
      case .reportRun(let report, let followUp): log.post(.runEnded(report, followUp))
      }
    }
    actions.removeAll()
  }

  private func probe(_ stores: [String], _ supervisor: Supervisor) {
    var before: [String: FileVersion] = [:]
    for store in stores {
      if let version = FileVersion(path: store) {
        before[store] = version
      } else {
        handle(.missing(store))
      }
    }
    let versions = before
    let present = stores.filter { versions[$0] != nil }
    let plugins = registry.usable
    let mailbox = mailbox
    guard !present.isEmpty else {
      mailbox.yield(.probesEnded(nil))
      return
    }
    Task {
      do throws(InstarError) {
        try await supervisor.probe(stores: present, plugins: plugins, rows: .none) { report in
          mailbox.yield(
            .probed(
              report, before: versions[report.store], after: FileVersion(path: report.store)))
        }
        mailbox.yield(.probesEnded(nil))
      } catch {
        mailbox.yield(.probesEnded(error))
      }
    }
  }

  private func migrate(_ store: String, _ plugin: String?, _ supervisor: Supervisor) {
    let usable = registry.usable
    let request = MigrationRequest(
      run: RunIdentifier.make(), store: store,
      plugins: plugin.flatMap { usable.contains($0) ? [$0] : nil } ?? usable,
      stageTimeLimitSeconds: configuration.stageTimeLimit.inSeconds,
      busyTimeoutSeconds: configuration.busyTimeout.inSeconds,
      sqlDebugLevel: watch(ofStore: store)?.sqlDebugLevel ?? 0)
    runningStores.insert(store)
    let mailbox = mailbox
    let log = log
    let before = FileVersion(path: store)
    Task {
      var report: RunReport
      do throws(InstarError) {
        // Steps are posted from here and not through the loop: a plugin that says much slows down
        // its own run only.
        report = try await supervisor.migrate(request) { log.post(.run($0)) }
      } catch {
        report = RunReport(
          run: request.run, store: store, result: .failed, startedAt: Date().timeIntervalSince1970)
        report.error = error.about(store: store, state: "unchanged")
      }
      mailbox.yield(.runEnded(report, before: before, after: FileVersion(path: store)))
    }
  }

  // MARK: Time

  private func tick(_ supervisor: Supervisor, _ watcher: Watcher) {
    timerDue = nil
    let now = ContinuousClock.now
    if let due = watchdogDue, due <= now, let interval = watchdogInterval {
      ServiceNotification.send(.watchdog)
      watchdogDue = now + interval / 2
    }
    if let due = extensionDue, due <= now {
      extensionDue = state == .running ? nil : now + Self.extensionInterval
      if state != .running { ServiceNotification.send(.extendTimeout(Self.extendedTimeout)) }
    }
    guard state != .stopping else { return }
    if let due = pluginListDue, due <= now { listPlugins(supervisor, watcher) }
    if let due = rescanDue, due <= now {
      rescanDue = now + configuration.rescanInterval
      for watch in configuration.watches { scan(watch, watcher) }
      listPlugins(supervisor, watcher)
    }
    if let due = queue.nextDeadline, due <= now { feed(.tick, supervisor) }
  }

  /// Sees to it that a tick comes when the next thing is due.
  private func updateTimer() {
    let dues = [
      queue.nextDeadline, rescanDue, pluginListDue, statusDue, watchdogDue, extensionDue,
    ]
    guard let due = dues.compactMap({ $0 }).min() else { return }
    if let timerDue, timerDue <= due { return }
    let at = max(due, .now + Self.shortestTick)
    if let timerDue, timerDue <= at { return }
    timerDue = at
    timer?.cancel()
    let mailbox = mailbox
    timer = Task {
      do {
        try await Task.sleep(until: at, clock: .continuous)
        mailbox.yield(.tick)
      } catch {
        // Cancelled: another timer took its place.
      }
    }
  }

  private var statusText: String {
    let folders = configuration.watches.count
    var parts = [
      folders == 0
        ? "no folder is watched"
        : "watching \(queue.storeCount) stores in \(folders) \(folders == 1 ? "folder" : "folders")"
    ]
    if !runningStores.isEmpty { parts.append("\(runningStores.count) running") }
    if queue.queuedCount > 0 { parts.append("\(queue.queuedCount) queued") }
    if queue.givenUpCount > 0 { parts.append("\(queue.givenUpCount) given up") }
    return parts.joined(separator: ", ")
  }

  /// Tells the service manager, at most once a second.
  private func updateStatus() {
    guard state == .running else { return }
    let text = statusText
    guard text != status else {
      statusDue = nil
      return
    }
    let earliest = (statusSentAt ?? .now - .seconds(1)) + .seconds(1)
    guard earliest <= .now else {
      statusDue = earliest
      return
    }
    statusDue = nil
    statusSentAt = .now
    status = text
    ServiceNotification.send(.status(text))
  }

  // MARK: Configuration

  private func reload(_ supervisor: Supervisor, _ watcher: inout Watcher) throws(InstarError) {
    isReloadWanted = false
    // Before the first READY the manager is not told: for it the start goes on.
    guard state == .running else { return try loadConfiguration(supervisor, &watcher) }
    ServiceNotification.send(.reloading)
    defer { ServiceNotification.send(.ready, .status(statusText)) }
    try loadConfiguration(supervisor, &watcher)
  }

  private func loadConfiguration(
    _ supervisor: Supervisor, _ watcher: inout Watcher
  ) throws(InstarError) {
    let new: Configuration
    do throws(InstarError) {
      new = try readConfiguration()
      guard new.stateFolder == configuration.stateFolder else {
        throw InstarError(
          .invalidConfiguration, "cannot load the configuration again",
          cause: "the state folder cannot change from '\(configuration.stateFolder)' to "
            + "'\(new.stateFolder)' in a running daemon",
          next: "restart the daemon")
      }
    } catch {
      log.post(.configurationRefused(error))
      return
    }
    // A new set of kernel watches is simpler than finding out which are not wanted any more; what
    // happens in between is found by the scans.
    let newWatcher = try Watcher(mailbox: mailbox)
    watcher.close()
    watcher = newWatcher
    configuration = new
    generation += 1
    scansOut = [:]
    problems = [:]
    brokenWatches = []
    log.post(.configurationLoaded(new))
    handle(.settingsChanged(StoreQueue.Settings(new)))
    for store in queue.stores where watch(ofStore: store) == nil { handle(.forgotten(store)) }
    registry.doubtAll()
    handle(.verdictsInDoubt)
    listPlugins(supervisor, watcher)
    beginScanning(watcher)
  }

  /// The kernel's notifications, brought into the mailbox.
  private struct Watcher {
    let folderWatch: FolderWatch
    private let pump: Task<Void, Never>

    init(mailbox: AsyncStream<Input>.Continuation) throws(InstarError) {
      let folderWatch = try FolderWatch()
      self.folderWatch = folderWatch
      pump = Task {
        for await event in folderWatch.events { mailbox.yield(.folderEvent(event)) }
      }
    }

    func close() {
      pump.cancel()
      folderWatch.close()
    }
  }
}

extension InstarError {
  /// One of the errors of the group "a plugin".
  fileprivate var isAboutPlugin: Bool { code.rawValue.hasPrefix("I4") }
}
