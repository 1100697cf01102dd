import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// The operations of instarctl and instard. Starts keepers, answers their questions, and alone writes the state folder.
///
/// It opens no store and loads no plugin, so neither a hostile file nor a trap in a plugin reaches its process. Calls
/// may run at the same time; each has keepers of its own. A call's handlers run one after the other, on a thread that
/// may block. Cancelling a task has the effect of `cancel()` on its call.
public final class Supervisor: Sendable {
  public let installation: Installation
  public let stateFolder: StateFolder?
  let keepers: KeeperPool
  let access: KeeperAccess
  private let cutoverGrace: Duration
  private let probeLimit: Duration
  /// The most time for the work on one backup that is not very large; `nil` without a limit besides that for its size.
  private let backupLimit: Duration?
  /// The daemon works on the backups of all owners one after the other: an owner's slow disk must not stop that.
  private static let backupLimitOfDaemon = Duration.seconds(3600)
  private let openConversations = Mutex(OpenConversations())

  private struct OpenConversations {
    var conversations: [ObjectIdentifier: Conversation] = [:]
    /// Stays set, so that it also ends calls that have not registered yet.
    var areCanceled = false
  }

  /// - Parameters:
  ///   - stateFolder: Needed by `migrate`, `restore` and `recover`, which write stores. `probe` and `plan` read the
  ///     holds in it.
  ///   - rights: The user whose rights keepers have.
  ///   - cutoverGrace: How long `cancel` waits for a keeper in its cutover.
  ///   - probeLimit: The time limit for probing one store; more for a large store if all rows are counted.
  public init(
    installation: Installation, stateFolder: StateFolder?, rights: KeeperRights = .caller,
    cutoverGrace: Duration = .seconds(900), probeLimit: Duration = .seconds(60)
  ) {
    self.installation = installation
    self.stateFolder = stateFolder
    access = KeeperAccess(rights)
    self.cutoverGrace = cutoverGrace
    self.probeLimit = probeLimit
    backupLimit = rights == .storeOwner ? Self.backupLimitOfDaemon : nil
    keepers = KeeperPool(
      installation: installation, opensOwnStoresOnly: rights == .storeOwner)
  }

  /// How many keepers ended before they finished their work, or were killed because they hung. Another keeper replaced
  /// each.
  public var lostKeepers: Int { keepers.killedCount }

  /// Has keepers load only plugins that one of the keys signed; `nil` lets them load all. A call in progress keeps the
  /// keys with which it began.
  public func requireSignatures(by keys: [TrustedKeys.Key]?) { keepers.trust(keys) }

  /// Ends every call, also those started later, and may be called from any thread.
  ///
  /// A run before its cutover fails with the code `interrupted` and the store unchanged. A run in its cutover may
  /// finish for `cutoverGrace`; then its keeper hangs and is killed, and another one recovers the run. A recovery may
  /// finish within seconds; then it is left to the next call.
  public func cancel() {
    let conversations = openConversations.withLock { open in
      open.areCanceled = true
      return Array(open.conversations.values)
    }
    for conversation in conversations { conversation.cancel() }
  }

  /// Returns one description per plugin, untrusted plugins first. A plugin that is not trusted, cannot be loaded or
  /// crashes the worker has an error as its result.
  public func describe(plugins: [String]) async throws(InstarError) -> [PluginDescription] {
    let descriptions = Mutex<[PluginDescription]>([])
    var trusted: [String] = []
    for plugin in plugins {
      do throws(InstarError) {
        try access.requireTrusted(plugins: [plugin])
        trusted.append(plugin)
      } catch {
        descriptions.withLock { $0.append((plugin, .failure(error))) }
      }
    }
    try await inBatch(
      trusted, as: access.identityForPlugins, request: { .describe(plugins: $0) },
      endsInDone: false
    ) { (plugin, reply) throws(InstarError) in
      let result: Result<PluginManifest, InstarError>
      switch reply {
      case .event(.described(let manifest)): result = .success(manifest)
      case .event(.failed(let error)), .died(let error): result = .failure(error)
      case .event: throw unexpectedEvent()
      }
      descriptions.withLock { $0.append((plugin, result)) }
    }
    return descriptions.withLock { $0 }
  }

  /// Returns the schema of a store, read without changing it.
  public func schema(of store: String) async throws(InstarError) -> SchemaReport {
    let schema = Mutex<SchemaReport?>(nil)
    try await inBatch(
      [store], as: try access.identity(forStore: store), request: { .readSchema(stores: $0) },
      endsInDone: false, limit: { [probeLimit] _ in probeLimit }
    ) { (store, reply) throws(InstarError) in
      switch reply {
      case .event(.schema(let report)) where report.store == store:
        schema.withLock { $0 = report }
      case .event(.failed(let error)), .died(let error): throw error
      case .event: throw unexpectedEvent()
      }
    }
    guard let report = schema.withLock({ $0 }) else { throw unexpectedEvent() }
    return report
  }

  /// Probes stores without changing them, and reports on each. The reports have the order of the stores, unless keepers
  /// run as the stores' owners and there are several owners. Several keepers read many stores; a report then waits for
  /// the reports before it.
  ///
  /// - Parameters:
  ///   - plans: The plans that each store is compared with.
  ///   - rows: Which rows to count. Counting all takes time that grows with the store.
  ///   - findsHolders: Whether the reports name the processes that have a store open. This searches all processes.
  ///   - endsAtDeath: Whether to skip the rest of a user's stores after one whose keeper died or exceeded its limit.
  ///   - onReport: Called with one report at a time.
  public func probe(
    stores: [String], plans: PlanSelection, rows: RowCounting, findsHolders: Bool = false,
    endsAtDeath: Bool = false,
    onReport: @escaping @Sendable (ProbeReport) -> Void
  ) async throws(InstarError) {
    try await probe(
      stores: stores, plans: plans, rows: rows, findsHolders: findsHolders, endsAtDeath: endsAtDeath
    ) { (report) throws(InstarError) in
      let report = try report.report()
      return { onReport(report) }
    }
  }

  /// Probes stores as `probe(…onReport:)` does, but passes reports on as JSON, and prepares the output on several
  /// threads.
  ///
  /// - Parameter prepare: Called with each report as soon as it arrives, by several threads at once. What it returns
  ///   is called in order, one at a time.
  public func probe(
    stores: [String], plans: PlanSelection, rows: RowCounting, findsHolders: Bool = false,
    endsAtDeath: Bool = false,
    prepare: @escaping @Sendable (EncodedProbeReport) throws(InstarError) -> @Sendable () -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let batches = try batches(of: stores) { (store, error) throws(InstarError) in
      var report = ProbeReport(store: store, state: .unknown, reason: error.cause)
      report.error = error
      try prepare(EncodedProbeReport(report))()
    }
    // An error with one user's stores does not stop the probes of another user's.
    var failure: InstarError?
    for batch in batches {
      let parts = endsAtDeath ? [batch.stores] : Self.parts(of: batch.stores)
      let reports = OrderedReports()
      let failures = await withTaskGroup(of: (part: Int, error: InstarError?).self) { group in
        for (part, stores) in parts.enumerated() {
          group.addTask {
            defer { reports.end(part) }
            do throws(InstarError) {
              try await self.probe(
                stores, as: batch.identity, plans: plans, rows: rows,
                findsHolders: findsHolders, endsAtDeath: endsAtDeath
              ) { (report) throws(InstarError) in reports.add(try prepare(report), of: part) }
              return (part, nil)
            } catch {
              return (part, error)
            }
          }
        }
        return await group.reduce(into: [Int: InstarError]()) { $0[$1.part] = $1.error }
      }
      let inOrder = failures.sorted { $0.key < $1.key }.map(\.value)
      if let interruption = inOrder.first(where: { $0.code == .interrupted }) { throw interruption }
      failure = failure ?? inOrder.first
    }
    if let failure { throw failure }
  }

  /// Starting a keeper takes as long as reading this number of small stores.
  private static let storesForKeeper = 100

  /// Divides stores among one keeper for each processor. One keeper reads a store that is named twice: a second keeper
  /// would report the first as a process that has the store open.
  private static func parts(of stores: [String]) -> [[String]] {
    let processors = ProcessInfo.processInfo.activeProcessorCount
    let count = max(min(stores.count / storesForKeeper, processors), 1)
    guard count > 1, Set(stores).count == stores.count else { return [stores] }
    let size = (stores.count + count - 1) / count
    return stride(from: 0, to: stores.count, by: size).map {
      Array(stores[$0..<min($0 + size, stores.count)])
    }
  }

  /// Probes stores with one keeper, in order.
  private func probe(
    _ stores: [String], as identity: ProcessIdentity, plans: PlanSelection, rows: RowCounting,
    findsHolders: Bool, endsAtDeath: Bool,
    onReport: @escaping @Sendable (EncodedProbeReport) throws(InstarError) -> Void
  ) async throws(InstarError) {
    try await inBatch(
      stores, as: identity,
      request: {
        .probe(stores: $0, plans: plans, rows: rows, findsHolders: findsHolders)
      },
      endsInDone: true, endsAtDeath: endsAtDeath,
      limit: { [probeLimit] store in
        rows == .all ? probeLimit + Self.timeToReadAll(of: store) : probeLimit
      }
    ) { (store, reply) throws(InstarError) in
      switch reply {
      // A hostile store may have taken the keeper over: its reports count only for the store that it was asked about.
      case .event(.probed(let report)) where report.store == store:
        try onReport(self.addingHold(to: report))
      case .died(let error):
        var report = ProbeReport(
          store: store, state: error.code == .keeperDied ? .unknown : .unreadable,
          reason: "\(error.what): \(error.cause)")
        report.error = error.about(store: store)
        try onReport(EncodedProbeReport(report))
      case .event(.failed(let error)): throw error
      case .event: throw unexpectedEvent()
      }
    }
  }

  private func addingHold(
    to report: EncodedProbeReport
  ) throws(InstarError) -> EncodedProbeReport {
    guard let hold = hold(on: report.store) else { return report }
    var held = try report.report()
    held.hold = hold
    return try EncodedProbeReport(held)
  }

  /// The hold to show in a report. An unreadable hold is ignored here: the run of the store reports it and does not
  /// start.
  private func hold(on store: String) -> Hold? {
    try? stateFolder?.hold(on: store)
  }

  /// Groups stores by the user that their keeper runs as, in the order of each user's first store.
  ///
  /// - Parameter refuse: Called with each store that is refused, and the reason.
  private func batches(
    of stores: [String], refuse: (String, InstarError) throws(InstarError) -> Void
  ) throws(InstarError) -> [(identity: ProcessIdentity, stores: [String])] {
    var batches: [(identity: ProcessIdentity, stores: [String])] = []
    let folders = TrustedFolders()
    for store in stores {
      do throws(InstarError) {
        let identity = try access.identity(forStore: store, folders: folders)
        if let place = batches.firstIndex(where: { $0.identity == identity }) {
          batches[place].stores.append(store)
        } else {
          batches.append((identity, [store]))
        }
      } catch {
        try refuse(store, error)
      }
    }
    return batches
  }

  /// Reports what a run would do on each store, without changing it, in the order that `probe` has.
  ///
  /// - Parameter adopt: The version to adopt an unversioned store as.
  public func plan(
    stores: [String], plans: PlanSelection, adopt: Schema.Version?,
    onReport: @escaping @Sendable (PlanReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let refuse: @Sendable (String, InstarError) -> Void = { store, error in
      onReport(
        PlanReport(
          store: store, probe: ProbeReport(store: store, state: .unknown, reason: error.cause),
          error: error.about(store: store, state: "unchanged")))
    }
    for batch in try batches(of: stores, refuse: refuse) {
      try await inBatch(
        batch.stores, as: batch.identity,
        request: { .plan(stores: $0, plans: plans, adopt: adopt) }, endsInDone: true,
        limit: { [probeLimit] in probeLimit * 3 + Self.timeToReadAll(of: $0) }
      ) { (store, reply) throws(InstarError) in
        switch reply {
        case .event(.planned(var report)) where report.store == store:
          report.probe.hold = self.hold(on: store)
          if let stateFolder = self.stateFolder {
            report.error = report.error.map { stateFolder.completing($0) }
            for index in report.findings.indices {
              report.findings[index].fix = report.findings[index].fix.map {
                stateFolder.completing($0, store: store)
              }
            }
          }
          if let hold = report.probe.hold {
            report.findings.append(
              Finding(
                severity: .error, code: .heldStore, message: hold.sentence,
                fix: "when the reason is gone, run: "
                  + (self.stateFolder?.releaseCommand(of: hold) ?? hold.releaseCommand)))
          }
          onReport(report)
        case .died(let error): refuse(store, error)
        case .event(.failed(let error)): throw error
        case .event: throw unexpectedEvent()
        }
      }
    }
  }

  /// Verifies stores without changing them: whether they are sound, and fit the plans that know them. The reports have
  /// the order that those of `probe` have.
  ///
  /// - Parameters:
  ///   - plans: The plans that each store is compared with.
  ///   - busyTimeout: How long to wait for a process that has a store locked.
  public func verify(
    stores: [String], plans: PlanSelection, busyTimeout: Duration,
    onReport: @escaping @Sendable (VerificationReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let refuse: @Sendable (String, InstarError) -> Void = { store, error in
      onReport(VerificationReport(store: store, unverified: error))
    }
    for batch in try batches(of: stores, refuse: refuse) {
      try await inBatch(
        batch.stores, as: batch.identity,
        request: {
          .verify(stores: $0, plans: plans, busyTimeoutSeconds: busyTimeout.inSeconds)
        }, endsInDone: true,
        limit: { [probeLimit] in
          probeLimit + busyTimeout * 2 + Self.timeToReadAll(of: $0) * Self.readsOfVerification
        }
      ) { (store, reply) throws(InstarError) in
        switch reply {
        case .event(.verified(var report)) where report.store == store:
          if let stateFolder = self.stateFolder {
            report.errors = report.errors.map { stateFolder.completing($0) }
          }
          onReport(report)
        case .died(let error): refuse(store, error)
        case .event(.failed(let error)): throw error
        case .event: throw unexpectedEvent()
        }
      }
    }
  }

  /// A verification reads a store about this often: its rows for their number, and for SQLite's two checks, the indexes
  /// and the references.
  private static let readsOfVerification = 5

  /// Migrates one store to the last version of its plan.
  ///
  /// Each phase is on disk before the keeper takes the step that it announces. The report is appended to the ledger,
  /// except for a store that was current. If the keeper dies, another one recovers the run at once.
  ///
  /// An earlier run of the store that was cut off is recovered first. If that fails, this run does not start.
  ///
  /// A rehearsal (`MigrationRequest.rehearses`) never changes the store, is not stopped by a hold, and has no line in
  /// the ledger.
  ///
  /// - Parameters:
  ///   - folder: The folder for a copy of the backup, which `addingCopy` or `makeCopies` makes afterwards.
  ///   - priority: Of the keeper that makes the run, and of its worker.
  ///   - onRecovery: Called with each run of the store that was recovered first.
  /// - Throws: If the run cannot start, without a state folder or keeper. Any other failure is the error of the report.
  public func migrate(
    _ request: MigrationRequest, copyingBackupTo folder: BackupFolder? = nil,
    priority: ProcessPriority = ProcessPriority(),
    onRecovery: @escaping @Sendable (RecoveryReport) -> Void = { _ in },
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    try await perform(
      .migrate(request), copyingBackupTo: folder, priority: priority, onRecovery, onEvent)
  }

  /// Brings a store back to a backup, as a run of its own: each phase is on disk first, the state that the store is in
  /// becomes a backup, and the report is appended to the ledger. A hold then keeps the store from being migrated again.
  ///
  /// An earlier run of the store that was cut off is recovered first. If that fails, this run does not start.
  ///
  /// - Parameters:
  ///   - user: Who asks for it, for the hold.
  ///   - onRecovery: Called with each run of the store that was recovered first.
  /// - Throws: If the run cannot start, without a state folder or keeper. Any other failure is the error of the report.
  public func restore(
    _ request: RestoreRequest, by user: String,
    onRecovery: @escaping @Sendable (RecoveryReport) -> Void = { _ in },
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    try await perform(.restore(request, by: user), onRecovery, onEvent)
  }

  private func perform(
    _ request: RunRequest, copyingBackupTo folder: BackupFolder? = nil,
    priority: ProcessPriority = ProcessPriority(),
    _ onRecovery: @escaping @Sendable (RecoveryReport) -> Void,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    let stateFolder = try requireStateFolder()
    return try await inConversation { (conversation) throws(InstarError) in
      try Run(
        request: request, stateFolder: stateFolder, keepers: self.keepers,
        recovery: self.recovery(conversation), conversation: conversation,
        copyTo: folder, priority: priority, onEvent: onEvent
      ).perform(onRecovery: onRecovery)
    }
  }

  /// Verifies, copies or removes one backup, with the rights of the store's owner. No store is opened.
  ///
  /// - Returns: The copy that is kept, if that was the work.
  /// - Throws: `missingBackup`, `damagedBackup`, or why the work failed.
  @discardableResult
  public func handle(
    _ backup: BackupReference, _ work: BackupWork
  ) async throws(InstarError) -> BackupCopy? {
    let identity =
      switch work {
      case .copy(let target), .keepCopy(let target):
        try access.identity(forCopyOf: backup.store, to: target)
      case .verify, .remove: try access.identity(forRecoveryOf: backup.store)
      }
    let copied = Mutex<BackupCopy?>(nil)
    do throws(InstarError) {
      try await inBatch(
        [backup.path], as: identity, request: { _ in .backup(backup, work) }, endsInDone: false,
        limit: { [probeLimit, backupLimit] in
          let time = Self.timeToReadSpace(of: $0)
          let limit = probeLimit + time * 3
          // At 10 MiB per second, where that takes longer.
          return backupLimit.map { min(max($0, time / 10), limit) } ?? limit
        }
      ) { (_, reply) throws(InstarError) in
        switch reply {
        case .event(.done): return
        case .event(.copied(let copy)): copied.withLock { $0 = copy }
        case .event(.failed(let error)), .died(let error): throw error
        case .event: throw unexpectedEvent()
        }
      }
    } catch {
      throw error.code == .interrupted ? interrupted(work, backup) : error
    }
    return copied.withLock { $0 }
  }

  /// Returns the stores with runs that were cut off or are in progress, the store of the oldest run first. Removes
  /// files that killed processes left in the phase journal.
  ///
  /// - Returns: `unreadable` has one error for each phase record that cannot be read.
  public func storesWithOpenRuns() throws(InstarError) -> (
    stores: [String], unreadable: [InstarError]
  ) {
    let stateFolder = try requireStateFolder()
    try stateFolder.removeLeftovers()
    let (records, unreadable) = try stateFolder.openPhases()
    var known: Set<String> = []
    return (records.map(\.store).filter { known.insert($0).inserted }, unreadable)
  }

  /// The stores of runs that this process supervised, and that stayed open when they ended: the runs could not be
  /// recovered, or their reports not be written to the ledger.
  public var storesWithRunsLeftOpen: [String] {
    stateFolder.map { Set($0.storesLeftOpen).sorted() } ?? []
  }

  /// The path under which the ledger has the runs of a store.
  public func keptPath(of store: String) -> StorePath { access.keptPath(of: store) }

  /// Recovers the runs of one store whose supervisors have ended. Runs with a live supervisor in any process are left
  /// alone. A run that cannot be recovered stays for the next call.
  public func recover(
    store: String, onReport: @escaping @Sendable (RecoveryReport) -> Void
  ) async throws(InstarError) {
    let stateFolder = try requireStateFolder()
    try await inConversation { (conversation) throws(InstarError) in
      try self.recovery(conversation).recover(store: store, in: stateFolder, onReport: onReport)
    }
  }

  private func recovery(_ conversation: Conversation) -> SupervisedRecovery {
    SupervisedRecovery(
      keepers: keepers, access: access, limit: probeLimit, conversation: conversation)
  }

  // MARK: - Conversations

  private func requireStateFolder() throws(InstarError) -> StateFolder {
    guard let stateFolder else {
      throw InstarError(
        .stateFolderFailed, "cannot change stores", cause: "no state folder was given",
        next: "name one with --state-dir")
    }
    return stateFolder
  }

  private func inConversation<Value: Sendable>(
    _ body: @escaping @Sendable (Conversation) throws(InstarError) -> Value
  ) async throws(InstarError) -> Value {
    let conversation = Conversation(cutoverGrace: cutoverGrace)
    let key = ObjectIdentifier(conversation)
    let isCanceled = openConversations.withLock { open in
      open.conversations[key] = conversation
      return open.areCanceled
    }
    defer { openConversations.withLock { $0.conversations[key] = nil } }
    if isCanceled { conversation.cancel() }
    let result: Result<Value, InstarError> = await withTaskCancellationHandler {
      do throws(InstarError) {
        return .success(
          try await onOwnThread { () throws(InstarError) in try body(conversation) })
      } catch {
        return .failure(error)
      }
    } onCancel: {
      conversation.cancel()
    }
    return try result.get()
  }

  private enum Reply {
    case event(KeeperEvent)
    /// The keeper died while it worked on this subject.
    case died(InstarError)
  }

  /// Sends one request about many subjects, and receives one answer for each, in order.
  ///
  /// If the keeper dies, another one gets the rest of the subjects, after it has answered a request without a subject.
  /// A keeper that sends no answer within the limit hangs: it is killed, and replaced in the same way.
  private func inBatch(
    _ subjects: [String], as identity: ProcessIdentity,
    request: @escaping @Sendable ([String]) -> KeeperRequest,
    endsInDone: Bool, endsAtDeath: Bool = false,
    limit: @escaping @Sendable (String) -> Duration? = { _ in nil },
    onReply: @escaping @Sendable (String, Reply) throws(InstarError) -> Void
  ) async throws(InstarError) {
    guard !subjects.isEmpty else { return }
    try await inConversation { (conversation) throws(InstarError) in
      var rest = subjects[...]
      var hasDied = false
      while !rest.isEmpty {
        if conversation.isCanceled { throw interrupted() }
        let session = try self.keepers.take(as: identity)
        do throws(InstarError) {
          try conversation.begin(session)
          if hasDied { try self.requireLife(session) }
        } catch {
          session.kill()
          throw conversation.isCanceled ? interrupted() : error
        }
        var hangs = false
        do throws(InstarError) {
          try session.send(request(Array(rest)))
          while let subject = rest.first {
            let limit = limit(subject)
            let event = try session.next(
              deadline: limit.map { .now + $0 },
              pause: rest.count < Self.manySubjects ? .zero : Self.pauseForMany)
            guard let event else {
              hangs = true
              throw Self.overdueReading(limit ?? self.probeLimit)
            }
            try onReply(subject, .event(event))
            rest.removeFirst()
          }
          if endsInDone { try self.requireDone(session) }
          self.keepers.giveBack(session)
        } catch {
          session.kill()
          if conversation.isCanceled { throw interrupted() }
          hasDied = true
          guard hangs || [.keeperDied, .timeLimit].contains(error.code), let subject = rest.first
          else { throw error }
          rest.removeFirst()
          try onReply(subject, .died(error.about("cannot read '\(subject)'")))
          if endsAtDeath { return }
        }
      }
    }
  }

  /// A keeper needs longer for this number of answers than a pause lasts, so pauses do not delay such a batch
  /// noticeably.
  private static let manySubjects = 100
  private static let pauseForMany = Duration.milliseconds(1)

  /// Checks that a new keeper answers at all. If it does not, the reason is not in a subject.
  private func requireLife(_ session: KeeperSession) throws(InstarError) {
    try session.send(.probe(stores: [], plans: [], rows: .none, findsHolders: false))
    try requireDone(session)
  }

  /// Waits for the end of a batch. One that hangs there must not keep the next batch from being sent.
  private func requireDone(_ session: KeeperSession) throws(InstarError) {
    guard let event = try session.next(deadline: .now + probeLimit) else {
      throw Self.overdueReading(probeLimit)
    }
    guard event == .done else { throw unexpectedEvent() }
  }

  /// The error of a keeper that hangs. Its state is `nil`, because the keeper may have been in a cutover.
  static func overdue(_ limit: Duration) -> InstarError {
    InstarError(
      .unreadableStore, "cannot read the store",
      cause: "the keeper did not finish within \(DurationText.format(limit))",
      next: "check that the disk or file server of the store responds")
  }

  /// The same for a keeper that only reads stores.
  private static func overdueReading(_ limit: Duration) -> InstarError {
    overdue(limit).about(state: "unchanged")
  }

  /// The time to count all rows of a store on a disk that reads 1 MiB per second.
  static func timeToReadAll(of store: String) -> Duration {
    var status = stat()
    return lstat(store, &status) == 0 ? .seconds(status.st_size >> 20) : .zero
  }

  /// The same for the space that a file takes: a file of holes has any size.
  private static func timeToReadSpace(of file: String) -> Duration {
    var status = stat()
    guard lstat(file, &status) == 0 else { return .zero }
    return .seconds(min(Int64(status.st_size), Int64(status.st_blocks) * 512) >> 20)
  }
}

/// The manifest of a plugin, or the reason why it cannot be used.
public typealias PluginDescription = (
  plugin: String, result: Result<PluginManifest, InstarError>
)

func unexpectedEvent() -> InstarError {
  InstarError(
    .protocolViolation, "cannot use the keeper's reply",
    cause: "the keeper's reply does not match the request",
    next: "install all packages of Instar in the same version")
}

/// Work on a backup has no cutover, and does not change the store.
private func interrupted(_ work: BackupWork, _ backup: BackupReference) -> InstarError {
  let verb =
    switch work {
    case .verify: "verify"
    case .copy, .keepCopy: "copy"
    case .remove: "remove"
    }
  return InstarError(
    .interrupted, "cannot \(verb) the backup of run \(backup.run)", store: backup.store,
    cause: "interrupted before the end of this work", state: "unchanged",
    next: "run the command again")
}

func interrupted() -> InstarError {
  InstarError(
    .interrupted, "cannot finish the request", cause: "interrupted before the cutover",
    state: "unchanged", next: "run the command again")
}
