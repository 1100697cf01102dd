internal import CInstar
internal import Foundation
internal import InstarSchema
internal import InstarStore
package import InstarWire

/// One run: brings one store to its plan's last version, in one or more attempts.
///
/// A run goes through these states, in this order. An error in any of them ends it.
///
/// 1. `inspecting`: the store is probed and matched, and its path through the plan is found. Nothing is written
///    anywhere.
/// 2. `cloning`: the store is locked. Clone and backup are made (see `RunFiles`). A store that is to be exchanged for
///    its clone is not copied a second time: its own file becomes the backup. A small store may need no clone (see
///    `StoreTransaction`).
/// 3. `working`: the stages bring the clone to the last version. Meanwhile what becomes the backup is checked. A large
///    store whose stages only write the schema and the history shares one check with its clone, after them. In a short
///    run (`isShort`) the check comes after them too, or before them if they change the store in a transaction.
/// 4. `verifying`: the clone is verified and stamped. A copied backup is sound, and durable under its final name.
/// 5. `cutover`: the store's content is replaced by the clone's, in one step (see `Cutover`). A rehearsal ends before
///    this state, and removes its clone and backup.
///
/// Invariants:
/// - The supervisor has each of `cloning` and `cutover` on disk before the run enters it, so that a run that was cut
///   off can be found and finished or discarded (see `Recovery`).
/// - Before `cutover` not a byte of the store's file is written; an error leaves neither clone nor backup behind.
/// - From the start of `cloning` to the end of `cutover` nobody else writes to the store. With `BusyPolicy.migrate`
///   that begins with `cutover`. If another process wrote since the store was cloned (see `StoreLock`), its changes
///   stay, and the run starts over from `cloning`.
/// - What a worker says or leaves decides only which error is reported. A loss that it counts ends the run, like an
///   error, unless somebody accepts the loss.
package struct MigrationRun {
  let request: MigrationRequest
  let conversation: any KeeperConversation
  let host: any PluginHost
  let openPolicy: OpenPolicy
  private let plans: () throws -> [PluginCatalog.Plan]
  private let runFileNames: RunFileNames
  private let removedJournals: RemovedJournals

  /// How often a run that holds the lock clones the store, before it ends because others write to the store.
  static let attempts = 3
  /// How often a run clones the store without holding its lock, before it holds the lock for the whole attempt.
  static let optimisticAttempts = 3

  /// The largest store of a short run, with its log.
  static let shortRunBytes = 1 << 20

  enum State {
    case inspecting, cloning, working, verifying, cutover
  }

  var state = State.inspecting
  var report: RunReport
  /// Whether the run takes only some milliseconds: the store is small, and no code of the plan runs. Then one thread
  /// does all its work, because starting another one would take longer than it saves.
  private(set) var isShort = false
  /// Whether each step of the run but a stage takes some milliseconds only. Then nobody needs to see these steps one by
  /// one.
  private(set) var hasShortSteps = false
  /// What the stages of this attempt lost.
  var lostValues: [LostValues] = []
  /// `nil` before the run makes its first file.
  private var paths: StorePaths?
  private let start = ContinuousClock.now
  /// Whether the run may exchange the store: `false` after an exchange that failed because another process uses the
  /// store.
  var mayExchange = true
  /// The files of its exchanges that are not the store, and that apps have open.
  private var staleFiles: [StaleFile] = []
  /// Whether the run may make its change in the store: `false` after a change that made something else of the store
  /// than of its clone.
  private var mayMakeChange = true

  /// - Parameters:
  ///   - conversation: Asked before each phase, and told what happens.
  ///   - host: Runs the stages.
  ///   - runFileNames: Those that the keeper has listed.
  ///   - removedJournals: Those that the keeper keeps.
  ///   - plans: Returns the plans that may know the store. Called when the run begins, and again if another run may
  ///     have migrated the store since.
  package init(
    _ request: MigrationRequest, conversation: any KeeperConversation, host: any PluginHost,
    openPolicy: OpenPolicy, runFileNames: RunFileNames = RunFileNames(),
    removedJournals: RemovedJournals = RemovedJournals(),
    plans: @escaping () throws -> [PluginCatalog.Plan]
  ) {
    self.request = request.withinBounds
    self.conversation = conversation
    self.host = host
    self.plans = plans
    self.runFileNames = runFileNames
    self.removedJournals = removedJournals
    self.openPolicy = openPolicy
    report = RunReport(ofNewRun: request.run, store: request.store)
    if request.rehearses { report.rehearsal = RunReport.Rehearsal() }
  }

  /// Performs the run, and reports how it ended.
  package mutating func perform() -> RunReport {
    do {
      try run()
    } catch  where wasMigratedMeanwhile(error) {
      report.result = .current
    } catch {
      let known = describe(error)
      report.fail(with: known, mayHaveBackup: state == .cutover)
      report.result = result(of: known.code)
    }
    report.notes += staleFiles.map(\.note)
    report.end(since: start, in: paths, backupFolder: request.backupFolder)
    return report
  }

  /// Whether another run has migrated the store since this run has inspected it. This one has only copied it.
  private mutating func wasMigratedMeanwhile(_ error: any Error) -> Bool {
    guard state == .cloning, (error as? InstarError)?.code == .storeChanged else { return false }
    // If the store cannot be inspected now, the first error says why the run failed.
    return (try? inspect())?.isCurrent == true
  }

  private mutating func run() throws {
    try RunIdentifier.require(request.run)
    let (inspection, isCurrent) = try inspect()
    if isCurrent {
      report.result = .current
      report.notes = [inspection.adoptionNote].compactMap(\.self)
      return
    }
    let layouts = try check(inspection)
    if request.whenBusy == .skip { try requireUnused(inspection) }
    emit(.started)
    if request.rehearses {
      // No lock: an app may write after the copy, because the rehearsal never replaces the store's content.
      _ = try attempt(inspection, layouts, .never)
      return
    }
    let optimistic = request.whenBusy == .migrate ? Self.optimisticAttempts : 0
    let attempts = optimistic + Self.attempts
    for attempt in 1...attempts {
      if try self.attempt(inspection, layouts, attempt <= optimistic ? .cutover : .run) {
        if attempt > 1 {
          let reason =
            mayMakeChange
            ? "another process used it meanwhile"
            : "the stages changed the store differently from its clone, so Instar rolled them back"
          report.notes.append("the run made \(attempt) copies of the store, because \(reason)")
        }
        return
      }
      report.stages = []
      report.notes = []
    }
    throw InstarError(
      .busyStore, "cannot migrate the store",
      cause: "another process wrote to the store before each of \(attempts) cutover attempts",
      next: "when the store is less busy, run: \(command.text)")
  }

  // MARK: Before anything is written

  private mutating func inspect() throws -> (inspection: StoreInspection, isCurrent: Bool) {
    let plans = try plans()
    let probe = try openPolicy.probe(
      request.store, versionSources: plans.versionSources,
      busyTimeout: request.busyTimeoutSeconds)
    let found = try StoreInspection.inspect(
      probe, plans: plans, pluginFolders: request.plans.folders, adopt: request.adopt,
      adoptsDifferences: request.adoptsDifferences, command: request.command)
    let path = found.inspection.path
    report.plan = path.plan
    report.plugin = found.inspection.plugin
    report.from = path.from
    report.to = path.to
    report.bytes = probe.file.state.size
    hasShortSteps = probe.file.state.size + (probe.file.log?.size ?? 0) <= Int64(Self.shortRunBytes)
    isShort = path.isLightweight && hasShortSteps
    return found
  }

  /// The layouts of the version that the store is at, and of the last one.
  typealias Layouts = (before: any StoreLayout, after: any StoreLayout)

  /// Refuses a run that cannot succeed.
  private func check(_ inspection: StoreInspection) throws -> Layouts {
    let path = inspection.path
    var findings = inspection.findings(openPolicy)
    // Only SQLite may open a store that this process has open: the worker counts the rows there.
    if openPolicy != .shared {
      findings += try inspection.rowsInNeed(openPolicy, includesWarnings: false)
      findings += try inspection.duplicateValues(openPolicy, includesWarnings: false)
      if path.isLightweight { findings += try inspection.modelCounts(openPolicy) }
      findings += try inspection.unreadableIntegers(openPolicy)
    }
    if let finding = findings.first(where: { $0.severity == .error }) {
      throw InstarError(
        finding.code ?? .unsupported, "cannot migrate the store", cause: finding.message,
        next: finding.fix, rows: finding.rows)
    }
    let after = try inspection.layout(of: path.last)
    let before = try inspection.layout(of: path.first)
    if after.format.hasMetadata {
      try inspection.reference?.requireVersion(after, path.to)
    }
    try path.requirePossibleStages()
    return (before, after)
  }

  /// - Throws: `busyStore` while another process has the store open.
  private func requireUnused(_ inspection: StoreInspection) throws(InstarError) {
    let store = inspection.paths.store
    var holders = StoreHolders()
    guard instar_is_open(store) == 1 || !holders.ofFile(store).isEmpty else { return }
    throw InstarError(
      .busyStore, "cannot migrate the store",
      cause:
        "another process has the store open, and 'whenBusy' is 'skip' (instarctl: --when-busy skip)",
      next: "when that process has closed the store, run: \(command.text)")
  }

  // MARK: One attempt

  /// What the steps of an attempt share, from the lock to the cutover.
  struct CutoverAttempt {
    let inspection: StoreInspection
    let layouts: Layouts
    let external: ExternalFiles
    let lock: StoreLock
    let files: RunFiles

    /// The store, where its own file is to become the backup, by an exchange; `nil` where the store is copied.
    let departing: StoreLock.LockedContent?

    var path: MigrationPath { inspection.path }
    var paths: StorePaths { inspection.paths }

    var backupSource: BackupSource { departing.map { .store($0) } ?? .copy(files.backup) }

    func backupCheck(
      pageCount: Int64, _ before: SchemaBaseline, _ verification: CloneVerification,
      _ policy: VerificationPolicy, inStore original: StoreLock.LockedContent?
    ) -> BackupCheck {
      BackupCheck(
        source: backupSource, original: original, run: files.run,
        store: inspection.probe.file.path,
        pageCount: pageCount, own: before.pages, layout: layouts.before, path: path,
        references: verification.references, policy: policy, external: external)
    }
  }

  /// - Parameter scope: How long the store is locked.
  /// - Returns: `false` when another process wrote to the store in the meantime: it was not changed, start over.
  private mutating func attempt(
    _ inspection: StoreInspection, _ layouts: Layouts, _ scope: StoreLock.Scope
  ) throws -> Bool {
    try requireSpaceForRun(inspection)
    try conversation.enter(record(.cloning, inspection))
    state = .cloning
    // Where the lock is taken late, the supervisor must learn when the wait for it begins.
    if scope != .run { (isShort, hasShortSteps) = (false, false) }
    paths = inspection.paths
    report.result = .failed
    let lock = try StoreLock(
      try openPolicy.probeFile(inspection.paths.store), busyTimeout: request.busyTimeoutSeconds,
      scope: scope)
    defer { lock.release() }
    if scope == .run { emit(.locked) }
    let files = try RunFiles(
      inspection.paths, run: request.run,
      transaction: try transaction(inspection, layouts, lock), names: runFileNames)
    defer {
      // First, because apps wait for it. And while the run's files exist, a recovery removes the journal of its
      // transaction.
      removedJournals.keepingJournal(ofStore: inspection.paths.store) { lock.release() }
      files.remove()
    }
    let attempt = CutoverAttempt(
      inspection: inspection, layouts: layouts, external: ExternalFiles(of: inspection.paths),
      lock: lock, files: files, departing: try departingContent(lock, files))

    guard let verified = try migrateClone(attempt) else { return false }
    let copiesPages =
      files.clone.transaction == nil && (!mayMakeChange || verified.clone.change == nil)
    try requireSpaceForCutover(attempt, copiesPages: copiesPages)
    if request.rehearses {
      report.rehearsal?.cloneBytes = try files.clone.size()
      report.result = .rehearsed
      return true
    }
    guard try lock.take() else { return false }
    if scope == .cutover { emit(.locked) }
    return try cutOver(attempt, verified)
  }

  /// What the cutover needs of a clone that was migrated and verified.
  private struct Verified {
    let backup: BackupCheck.Result
    let clone: CloneVerification.Result
    /// What the store declared before its transaction; `nil` without one.
    let earlier: CutoverOutcome.Declaration?
  }

  /// Makes the copies, runs the stages and verifies the clone, while the backup is checked.
  ///
  /// - Returns: `nil` when another process wrote to the store before its transaction began.
  private mutating func migrateClone(_ attempt: CutoverAttempt) throws -> Verified? {
    var (pageCount, before) = try makeCopies(attempt)
    if let schema = try makeMissingIndexes(attempt) { before.schema = schema }
    let ranPlugin = host.loadsPlugin(for: attempt.path.schemaStages, on: before.schema)
    // Lightweight stages may need the plan's types, whose code may take as long as a stage may.
    if ranPlugin { isShort = false }
    let verification = try CloneVerification(
      path: attempt.path, layout: attempt.layouts.after, before: before, ranPlugin: ranPlugin,
      policy: request.verification)
    let check = attempt.backupCheck(
      pageCount: pageCount, before, verification, request.verification,
      inStore: isShort ? try attempt.lock.lockedContent() : nil)
    state = .working
    // Stages that only write the schema take no time, and an update of the history takes less than a second check. So
    // they run first: then the clone can be compared with the store, and both share one check.
    let early =
      verification.leavesRows && before.pages != nil
      ? Result { try work(attempt, on: before.schema) } : nil
    let comparison = compare(attempt, before, after: early)
    // No thread may use the files of the run after its end.
    defer { _ = comparison?.failure() }
    let checking = BackgroundWork(isSmall: isShort) {
      try check.perform(hasSameRows: { try comparison?.wait() ?? false })
    }
    var earlier: CutoverOutcome.Declaration?
    if attempt.files.clone.transaction != nil {
      earlier = try beginTransaction(attempt, checking)
      if earlier == nil { return nil }
    }
    do {
      if let early {
        try early.get()
      } else {
        try work(attempt, on: before.schema)
      }
      state = .verifying
      let clone = try verifyAndStamp(attempt, before, verification, comparison, checking)
      return Verified(backup: try checking.wait(), clone: clone, earlier: earlier)
    } catch {
      throw try cause(of: error, attempt, checking)
    }
  }

  /// Finds out whether an error of the stages or of the verification is only a consequence of another one.
  ///
  /// - Returns: The error to report.
  /// - Throws: That the store was moved. SQLite reports such a store as read-only, which hides the cause.
  private func cause(
    of error: any Error, _ attempt: CutoverAttempt,
    _ checking: BackgroundWork<BackupCheck.Result>
  ) throws -> any Error {
    // The thread must have ended before the run removes its files.
    let failure = checking.failure().map { InstarError($0, what: request.what) }
    if attempt.files.clone.transaction != nil {
      try attempt.lock.requirePath("cannot migrate the store", since: "after it was copied")
    }
    if let failure, failure.code == .corruptStore { return failure }
    return error
  }

  /// Checks the store as it is, and begins the transaction that changes it.
  ///
  /// - Returns: What the store declared before; `nil` when another process wrote to it in the meantime.
  private func beginTransaction(
    _ attempt: CutoverAttempt, _ checking: BackgroundWork<BackupCheck.Result>
  ) throws -> CutoverOutcome.Declaration? {
    _ = try checking.wait()
    let record = record(.cutover, attempt.inspection)
    let earlier = try attempt.lock.read { try CutoverOutcome.Declaration($0, record) }
    return try attempt.lock.beginChange() ? earlier : nil
  }

  /// Keeps the backup, and replaces the store's content by the clone's.
  ///
  /// - Returns: `false` when another process wrote to the store in the meantime: it was not changed.
  private mutating func cutOver(_ attempt: CutoverAttempt, _ verified: Verified) throws -> Bool {
    let (before, result) = (verified.backup, verified.clone)
    let path = attempt.path
    var cutover = Cutover(
      conversation, openPolicy, lock: attempt.lock, files: attempt.files,
      external: attempt.external, backupFolder: request.backupFolder, command: command.text)
    if mayExchange { cutover.policy = request.cutover }
    cutover.storeBecomesBackup = attempt.departing != nil
    var record = record(.cutover, attempt.inspection)
    record.manifest = manifest(of: attempt, before)
    defer {
      report.backup = cutover.keptBackup
      report.manifest = cutover.keptBackup.flatMap { _ in cutover.manifest }
    }
    try cutover.keepBackup(externalFiles: before.externalFiles)
    defer { staleFiles += [cutover.staleFile].compactMap(\.self) }
    state = .cutover
    if !path.last.format.hasMetadata { record.fingerprint = result.structure.fingerprint }
    let content = Cutover.Content(
      format: path.last.format, structure: result.structure, externalFiles: result.externalFiles,
      newFiles: ExternalFiles.ofClone(attempt.files.cloneFile), version: path.to,
      versionSource: path.versionSource, change: mayMakeChange ? result.change : nil)
    guard
      try cutover.perform(
        record, content, earlier: verified.earlier, earlierFiles: before.externalFiles)
    else {
      mayExchange = false
      mayMakeChange = mayMakeChange && !cutover.hasOtherResult
      return false
    }
    report.cutover = cutover.kind
    report.notes += cutover.notes
    if attempt.departing != nil { emit(.backedUp) { $0.bytes = cutover.manifest?.bytes } }
    emit(.cutOver) {
      $0.backup = cutover.keptBackup
      $0.cutover = cutover.kind
    }
    report.result = .migrated
    return true
  }
}

extension MigrationRequest {
  private static let longestStageSeconds = 30.0 * 24 * 3600
  private static let longestBusyTimeoutSeconds = 3600.0

  /// The same request with durations that can be added to the clock: at most 30 days for a stage and an hour for a busy
  /// store.
  fileprivate var withinBounds: MigrationRequest {
    var request = self
    request.stageTimeLimitSeconds = min(max(stageTimeLimitSeconds, 0), Self.longestStageSeconds)
    request.busyTimeoutSeconds = min(max(busyTimeoutSeconds, 0), Self.longestBusyTimeoutSeconds)
    return request
  }
}
