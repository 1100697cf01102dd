import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The daemon's loop: watches folders, and starts the migration of stores that are behind.
///
/// It handles one input after the other and owns everything that changes. Work that may take long (scans, probes, runs)
/// runs elsewhere, and its result is an input. Each part has its own file: `WatchedFolders`, `WatchedPlugins`,
/// `StoreQueue`, `ManagerNotifications`, `Alarm`; `KeeperRequests` starts the work.
///
/// States:
///
/// ```text
/// scanning ──▶ running ──▶ stopping ──▶ (end)
///     └────────────────────────▲
/// ```
///
/// - scanning: folders are watched and read for the first time. When all were, the service manager gets READY. It does
///   not wait for a folder whose file system does not answer; only rollouts do, because its stores may be their canary.
/// - running: idle until a folder, a timer or a client has an input.
/// - stopping: no run is started. Runs in their cutover finish; keepers roll back all others.
///
/// Invariants:
/// - No store and no plugin is opened here: only names and `lstat` are used. Keepers do the rest.
/// - Nothing here waits for the file system of a store for longer than a `FileReader` does.
/// - An error of one store, plugin or folder is reported, and never ends the loop.
struct Daemon {
  let supervisor: Supervisor
  let log: EventLog
  private let mailbox: DaemonMessage.Mailbox
  private let readConfiguration: @Sendable () throws(InstarError) -> Configuration
  private let reader = FileReader.ofDaemon
  private let keepers: KeeperRequests
  private let metrics: DaemonMetrics

  private(set) var phase = Manager.Status.Phase.scanning
  /// Whether the queue knows that all watches were read.
  private var hasFedScanned = false
  private(set) var configuration: Configuration {
    didSet { keepers.backupSettings.use(configuration, realFolders: folders.realFolders) }
  }
  private(set) var folders: WatchedFolders
  private(set) var plugins: WatchedPlugins
  private(set) var windows: WatchWindows
  var queue: StoreQueue
  private(set) var runsInProgress = RunsInProgress()
  private var repeatedFailures = RepeatedFailureLog<RunReport>()
  private var repeatedVerdicts = RepeatedFailureLog<ProbeReport>()
  /// The control socket, which stays where it is until the daemon ends.
  private let socket: String
  /// An operator's order to start no run.
  var pause: Manager.Pause?
  /// `false` while the record of rollouts is unreadable, so that nothing overwrites it.
  var keepsRollouts = true
  /// `false` after the record of rollouts could not be written.
  var rolloutsAreOnDisk = true
  /// The store of each hold, by the hold's identifier, as the queue knows them.
  private var knownHolds: [String: String] = [:]
  /// The statuses that clients got a moment ago.
  var lastStatuses: [ControlClient: (at: ContinuousClock.Instant, status: Manager.Status)] = [:]
  let startedAt = Date().timeIntervalSince1970
  private var manager = ManagerNotifications()
  private var publishedMetrics: PublishedMetrics
  private var alarm: Alarm
  private var rescan = RescanProgress()
  /// When old backups are removed and a sample is verified.
  private var backupsDue: ContinuousClock.Instant?

  /// - Throws: `watchFailed` when the kernel gives no more inotify instances.
  init(
    configuration: Configuration, supervisor: Supervisor, log: EventLog,
    mailbox: DaemonMessage.Mailbox,
    readConfiguration: @escaping @Sendable () throws(InstarError) -> Configuration
  ) throws(InstarError) {
    self.configuration = configuration
    socket = configuration.socket
    self.supervisor = supervisor
    let metrics = DaemonMetrics(version: Release.version, startedAt: startedAt)
    self.metrics = metrics
    let log = log.reportingErrors { metrics.noteError($0.rawValue) }
    self.log = log
    self.mailbox = mailbox
    self.readConfiguration = readConfiguration
    keepers = KeeperRequests(
      supervisor: supervisor, log: log, metrics: metrics, mailbox: mailbox, reader: reader)
    folders = try WatchedFolders(
      configuration, generation: 0, log: log, mailbox: mailbox, reader: reader)
    plugins = WatchedPlugins(configuration, keepers: keepers, log: log)
    windows = WatchWindows(log: log, mailbox: mailbox)
    queue = StoreQueue(settings: StoreQueue.Settings(configuration))
    publishedMetrics = PublishedMetrics(log: log, mailbox: mailbox)
    alarm = Alarm(mailbox: mailbox)
    keepers.backupSettings.use(configuration, realFolders: folders.realFolders)
  }

  mutating func start() {
    log.post(.daemonStarted(version: Release.version, configuration))
    supervisor.stateFolder?.setLedgerSize(configuration.ledger.fileBytes)
    publishMetrics()
    readPause()
    readQuarantine()
    readRollouts()
    recoverRuns()
    watchHolds()
    followAllHolds()
    windows.use(configuration)
    listPlugins()
    scanAll()
    backupsDue =
      .now
      + (supervisor.stateFolder?.timeToBackupCheck(
        every: configuration.backupCheckInterval) ?? configuration.backupCheckInterval)
    setAlarm()
  }

  /// Starts the recovery of the runs that an earlier process left. Only their stores wait for it.
  private mutating func recoverRuns() {
    do throws(InstarError) {
      let (stores, unreadable) = try supervisor.storesWithOpenRuns()
      for error in unreadable { log.post(.recoveryFailed(error, .afterRestart)) }
      let owners = answersInTime(about: stores) {
        WatchedVersion.owner(of: $0)
      }
      feed(stores.map { .interrupted($0, owner: owners[$0]) })
    } catch {
      log.post(.recoveryFailed(error, .afterRestart))
    }
  }

  /// Whether the daemon was told to stop, and no run is left.
  var isDone: Bool { phase == .stopping && queue.runningCount == 0 }

  mutating func close() {
    postRepeatedFailures()
    for verdicts in repeatedVerdicts.takeAll() { log.post(.storesUnusable(verdicts)) }
    publishedMetrics.close()
    alarm.cancel()
    folders.close()
  }

  mutating func handle(_ input: DaemonMessage) {
    switch input {
    case .folderEvent(let event, let kernelWatch):
      kernelWatch.taken(event)
      if event == .overflow, rescan.want(at: .now) { log.post(.changesLost) }
      plugins.handle(event)
      followHolds(event)
      feed(folders.handle(event))
    case .scanned(let scan):
      if scan.isWhole, scan.generation == folders.generation {
        metrics.noteScan(scan.duration)
        rescan.finish(
          scan.watch.path, scan.processorTime, at: .now, delay: configuration.rescanDelay)
      }
      let realFolders = folders.realFolders
      let found = folders.finish(scan) { queue.stores(inFolders: $0) }
      // Holds name stores by the folders of links, and the queue asks about holds as soon as it knows the stores.
      if folders.realFolders != realFolders { followAllHolds() }
      feed(found)
      keepers.backupSettings.use(configuration, realFolders: folders.realFolders)
      // A scan of many stores needs much memory for a moment.
      MemorySettings.returnUnused()
      becomeReadyIfScanned()
    case .described(let descriptions):
      // Before the entry about a plugin that replaces theirs.
      postRepeatedFailures()
      followPlugins(plugins.handle(descriptions))
    case .windows(let check):
      feed(windows.finish(check))
    case .store(let event):
      if case .probed = event { metrics.noteProbe() }
      feed([event])
    case .silent(let store): folders.noteSilence(of: store)
    case .control(let request): answer(request)
    case .metricsWanted(let reply): reply(metricsText())
    case .progress(let event):
      if runsInProgress.note(event, at: .now) { log.post(.run(event)) }
    case .mountsChanged: folders.followMounts()
    case .tick:
      tick()
    case .reload:
      if phase != .stopping { reload() }
    case .shutdown:
      guard phase != .stopping else { break }
      phase = .stopping
      manager.sendStopping()
      log.post(.daemonStopping(running: queue.runningCount))
      feed([.stopping])
      supervisor.cancel()
    }
    if phase == .running { manager.update(status: status) }
    setAlarm()
  }

  // MARK: Folders and plugins

  private mutating func scanAll() {
    // The next rescan does not wait for those that do not answer.
    let silent = folders.silent
    rescan.begin(
      configuration.watches.map(\.path).filter { !silent.contains($0) }, at: .now,
      delay: configuration.rescanDelay)
    folders.scanAll()
    becomeReadyIfScanned()
  }

  private mutating func becomeReadyIfScanned() {
    if folders.areRead, !hasFedScanned {
      hasFedScanned = true
      feed([.scanned])
    }
    guard phase == .scanning, folders.areReadOrSilent else { return }
    phase = .running
    manager.sendReady(status: status)
  }

  /// Watches the folder of holds. If the kernel cannot watch it, the rescan finds changes of holds.
  private func watchHolds() {
    guard let holds = supervisor.stateFolder?.holdsFolder else { return }
    do throws(InstarError) {
      try folders.kernelWatch.add(holds)
    } catch {
      log.post(.watchFailed(error))
    }
  }

  private mutating func followHolds(_ event: FolderWatch.Event) {
    let holds = supervisor.stateFolder?.holdsFolder
    switch event {
    case .changed(let folder, let name, _):
      if folder == holds, name.hasSuffix(".json") { followHolds(of: []) }
    case .removed(let folder), .moved(let folder, _):
      if folder == holds { followAllHolds() }
    case .overflow: followAllHolds()
    }
  }

  /// Tells the queue which holds were placed or released.
  ///
  /// - Parameter stores: Stores whose hold may have come and gone since the holds were last read.
  mutating func followHolds(of stores: [String]) {
    let (before, now) = (knownHolds, readHolds())
    let changed =
      stores + now.filter { before[$0.key] == nil }.values
      + before.filter { now[$0.key] == nil }.values
    guard !changed.isEmpty else { return }
    feed([.holdsChanged(of: watchedPaths(changed), held: watchedPaths(now.values))])
  }

  private mutating func followAllHolds() {
    feed([.holdsChanged(of: nil, held: watchedPaths(readHolds().values))])
  }

  /// Reads the store of each hold. An unreadable hold is found when its store is probed or runs.
  private mutating func readHolds() -> [String: String] {
    let holds = (try? supervisor.stateFolder?.holds().holds) ?? []
    knownHolds = Dictionary(holds.map { ($0.id, $0.store) }, uniquingKeysWith: { $1 })
    return knownHolds
  }

  private func watchedPaths(_ stores: some Sequence<String>) -> Set<String> {
    Set(configuration.watchedPaths(of: Array(stores), realFolders: folders.realFolders))
  }

  private mutating func listPlugins() {
    // Before the entry about a plugin that was removed.
    postRepeatedFailures()
    followPlugins(plugins.list(watchedBy: folders.kernelWatch))
  }

  /// Passes events of plugins, and others with them, to the queue. With other plugins, stores that fail are news, also
  /// if they fail as before.
  private mutating func followPlugins(_ events: [StoreQueue.Event]) {
    let areOthers = events.contains { if case .pluginsKnown = $0 { true } else { false } }
    if areOthers {
      postRepeatedFailures()
      repeatedFailures = RepeatedFailureLog()
    }
    feed(events)
  }

  private mutating func postRepeatedFailures() {
    for failures in repeatedFailures.takeAll() { log.post(.runsFailed(failures)) }
  }

  // MARK: Stores

  /// Passes events to the queue, and performs its actions.
  mutating func feed(_ events: [StoreQueue.Event]) {
    var actions = events.flatMap { queue.handle($0, at: .now) }
    var next = 0
    while next < actions.count {
      let action = actions[next]
      next += 1
      for event in perform(action) { actions += queue.handle(event, at: .now) }
    }
  }

  /// Does what the queue asks for. Results of keepers come later, as messages.
  ///
  /// - Returns: what is known at once.
  private mutating func perform(_ action: StoreQueue.Action) -> [StoreQueue.Event] {
    switch action {
    case .readVersion(let store):
      guard let answer = folders.versions(of: [store])[store] else { return [] }
      return [answer.map { .versionRead(store, $0) } ?? .missing(store)]
    case .probe(let stores): return probe(stores)
    case .run(let store, let plugin, let rehearses):
      return run(store, plugin, rehearses: rehearses)
    case .keepQuarantine(let record): keep(record)
    case .endQuarantine(let stores): endQuarantine(of: stores)
    case .rolloutChanged(let rollout, let change):
      log.post(.rolloutChanged(rollout, change))
      do throws(InstarError) {
        try keepRollouts()
      } catch {
        // It goes on. A restart finds an earlier wave, and the ledger says which stores were migrated.
        log.post(.problem(error))
      }
    case .recover(let store):
      guard folders.versions(of: [store]).keys.contains(store) else { return [.unanswered(store)] }
      keepers.recover(store, of: watchPath(of: store))
    case .reportRecoveryFailure(let error, let followUp):
      log.post(.recoveryFailed(error, followUp))
    case .reportProbe(let report):
      post(.storeProbed(report, supervisor.stateFolder), about: report)
    case .reportProbeFailure(let store, let error, let followUp):
      var report = ProbeReport(store: store, state: .unreadable, reason: error.cause)
      report.error = error
      post(.probeFailed(store: store, error, followUp), about: report)
    case .reportProbesFailure(let error, let followUp):
      log.post(.probeFailed(store: nil, error, followUp))
      if error.isAboutPlugin {
        // The plugin was usable when it was last described. Another description shows whether it still is.
        plugins.describeAllAgain()
        return plugins.describeNext()
      }
    case .reportRun(let report, let followUp): reportRun(report, followUp)
    }
    return []
  }

  /// Has a keeper probe stores of one watch.
  ///
  /// - Returns: the stores that it does not probe, because they are missing or their file systems did not answer.
  private mutating func probe(_ stores: [String]) -> [StoreQueue.Event] {
    let answers = folders.versions(of: stores)
    let found = stores.compactMap { store in (answers[store] ?? nil).map { (store, $0) } }
    let plans = stores.first.flatMap { configuration.watch(ofStore: $0)?.plans } ?? []
    keepers.probe(found, PlanSelection(plugins: plugins.usable, names: plans))
    return Set(stores).subtracting(found.map(\.0)).map {
      answers[$0] == nil ? .unanswered($0) : .missing($0)
    }
  }

  /// Has a keeper migrate or rehearse a store.
  ///
  /// - Returns: an event if the store's file system did not answer, and no run began.
  private mutating func run(
    _ store: String, _ plugin: String?, rehearses: Bool
  ) -> [StoreQueue.Event] {
    guard let before = folders.versions(of: [store])[store] else { return [.unanswered(store)] }
    var request = request(store, plugin)
    request.rehearses = rehearses
    keepers.migrate(
      request, of: watchPath(of: store), before,
      copyingBackupTo: rehearses ? nil : configuration.copyFolder(ofStore: store),
      priority: configuration.watch(ofStore: store)?.priority ?? ProcessPriority())
    return []
  }

  /// Logs how a run ended, unless the log has such a failure already. After a migration, copies and removes backups as
  /// the configuration says.
  private mutating func reportRun(_ report: RunReport, _ followUp: StoreQueue.FollowUp) {
    runsInProgress.end(report.run)
    metrics.note(report)
    if repeatedFailures.note(report, at: .now) {
      log.post(.runEnded(report, followUp))
    } else {
      log.forget(run: report.run)
    }
    if report.result == .migrated {
      keepers.keepBackups(of: report, in: watchPath(of: report.store))
    }
  }

  /// The path of a store's watch. A reload may have removed that of a store with an open run, which then stands for
  /// itself.
  private func watchPath(of store: String) -> String {
    configuration.watch(ofStore: store)?.path ?? store
  }

  /// Logs a verdict, or counts it with earlier ones like it. Clients and hooks get it in either case.
  private mutating func post(_ event: DaemonEvent, about report: ProbeReport) {
    if repeatedVerdicts.note(report, at: .now) { log.post(event) } else { log.postJoined(event) }
  }

  func request(_ store: String, _ plugin: String?) -> MigrationRequest {
    let usable = plugins.usable
    let watch = configuration.watch(ofStore: store)
    var request = MigrationRequest(
      run: RunIdentifier.make(), store: store,
      plans: PlanSelection(
        plugins: plugin.flatMap { usable.contains($0) ? [$0] : nil } ?? usable,
        names: watch?.plans ?? []),
      stageTimeLimitSeconds: (watch?.stageTimeLimit ?? configuration.stageTimeLimit).inSeconds,
      busyTimeoutSeconds: (watch?.busyTimeout ?? configuration.busyTimeout).inSeconds,
      sqlDebugLevel: watch?.sqlDebugLevel ?? 0)
    request.whenBusy = watch?.whenBusy ?? .wait
    request.cutover = watch?.cutover ?? .automatic
    request.verification = watch?.verification ?? .standard
    request.workerMemoryBytes = watch?.workerMemoryBytes ?? configuration.workerMemoryBytes
    return request
  }

  // MARK: Time

  private mutating func tick() {
    alarm.clear()
    let now = ContinuousClock.now
    manager.tick(at: now)
    log.postLeftOut()
    for failures in repeatedFailures.takeDue(at: now) { log.post(.runsFailed(failures)) }
    for verdicts in repeatedVerdicts.takeDue(at: now) { log.post(.storesUnusable(verdicts)) }
    if publishedMetrics.isFileDue(at: now) { publishedMetrics.writeFile(metricsText()) }
    guard phase != .stopping else { return }
    if let due = windows.due, due <= now { windows.check() }
    if let due = plugins.listDue, due <= now { listPlugins() }
    if let due = rescan.due, due <= now {
      rescanNow()
    }
    if let due = folders.pollDue, due <= now { folders.poll() }
    if let due = folders.silenceDue, due <= now {
      for watch in folders.leaveSilentWatches(at: now) { rescan.leave(watch, at: now) }
      becomeReadyIfScanned()
    }
    if let due = backupsDue, due <= now {
      backupsDue = now + configuration.backupCheckInterval
      keepers.checkBackups(without: folders.silent)
    }
    if let due = queue.nextDeadline, due <= now { feed([.tick]) }
  }

  /// Reads everything again that the kernel or a person may have changed.
  mutating func rescanNow() {
    // Runs that could not be recovered or written to the ledger when they ended.
    feed(supervisor.storesWithRunsLeftOpen.map { .interrupted($0, owner: queue.owner(of: $0)) })
    watchHolds()
    followAllHolds()
    scanAll()
    listPlugins()
  }

  private mutating func setAlarm() {
    alarm.set(
      for: [
        queue.nextDeadline, rescan.due, folders.pollDue, folders.silenceDue, backupsDue,
        plugins.listDue, windows.due, manager.nextDeadline, repeatedFailures.nextDeadline,
        repeatedVerdicts.nextDeadline,
        log.nextDeadline,
        publishedMetrics.fileDue,
      ]
      .compactMap { $0 }.min())
  }

  private var status: String {
    let total = configuration.watches.count
    guard total > 0 else { return "no folder is watched" }
    let unreadable = folders.unreadable.sorted { $0.key < $1.key }
    let share = unreadable.isEmpty ? "" : "\(total - unreadable.count) of "
    var parts = [
      "watching \(queue.storeCount) stores in \(share)\(total.counted("folder"))"
    ]
    if pause != nil { parts.append("paused") }
    if queue.runningCount > 0 {
      let progress = runsInProgress.status.map { " (\($0))" } ?? ""
      parts.append("\(queue.runningCount) running\(progress)")
    }
    if queue.queuedCount > 0 { parts.append("\(queue.queuedCount) queued") }
    if queue.quarantinedCount > 0 { parts.append("\(queue.quarantinedCount) quarantined") }
    let status = parts.joined(separator: ", ")
    guard let (folder, error) = unreadable.first else { return status }
    let others = unreadable.count > 1 ? " (and \(unreadable.count - 1) more)" : ""
    return "\(status); cannot watch '\(folder)': \(error.cause)\(others)"
  }

  // MARK: Metrics

  private mutating func publishMetrics() {
    let wereRead = publishedMetrics.settings.areRead
    publishedMetrics.settings = configuration.metrics
    if !wereRead, configuration.metrics.areRead {
      keepers.countBackups()
    }
  }

  private func metricsText() -> String {
    metrics.show(
      DaemonMetrics.Snapshot(
        queue: queue, isPaused: pause != nil, watches: configuration.watches.count,
        unreadableWatches: folders.unreadable.count, plugins: plugins.usable.count,
        keeperRestarts: supervisor.lostKeepers),
      at: .now)
    return metrics.text
  }

  // MARK: Configuration

  private mutating func reload() {
    do throws(InstarError) {
      // Before the first READY the manager is not told: for it the start goes on.
      guard phase == .running else { return try loadConfiguration() }
      manager.sendReloading()
      defer { manager.sendReady(status: status) }
      try loadConfiguration()
    } catch {
      log.post(.problem(error))
    }
  }

  private mutating func loadConfiguration() throws(InstarError) {
    let new: Configuration
    do throws(InstarError) {
      new = try readConfiguration()
      guard new.stateFolder == configuration.stateFolder else {
        throw InstarError(
          .invalidConfiguration, "cannot reload the configuration",
          cause: "the state folder cannot change from '\(configuration.stateFolder)' to "
            + "'\(new.stateFolder)' in a running daemon",
          next: "run: systemctl restart instard")
      }
    } catch {
      log.post(.configurationRefused(error))
      return
    }
    if new.socket != socket { log.post(.settingIgnored(socketChange(to: new.socket))) }
    let newFolders = try WatchedFolders(
      new, generation: folders.generation + 1, after: folders, log: log, mailbox: mailbox,
      reader: reader)
    folders.close()
    folders = newFolders
    configuration = new
    plugins.configuration = new
    supervisor.stateFolder?.setLedgerSize(new.ledger.fileBytes)
    windows.use(new)
    log.hooks?.use(new.hooks)
    watchHolds()
    publishMetrics()
    log.post(.configurationLoaded(new))
    let forgotten = queue.stores.filter { new.watch(ofStore: $0) == nil }
    plugins.describeAllAgain()
    postRepeatedFailures()
    // All stores are probed again under the new settings before any of them runs.
    followPlugins(
      [.settingsChanged(StoreQueue.Settings(new)), .verdictsInDoubt]
        + forgotten.map { .forgotten($0) } + plugins.list(watchedBy: folders.kernelWatch))
    scanAll()
  }

  private func socketChange(to new: String) -> InstarError {
    InstarError(
      .invalidConfiguration, "cannot move the control socket to '\(new)'",
      cause: "a running instard keeps its socket '\(socket)'",
      next: "run: systemctl restart instard")
  }
}
