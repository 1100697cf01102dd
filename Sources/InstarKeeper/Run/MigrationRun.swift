internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
package import InstarWire

/// One attempt to bring one store to its plan's last version.
///
/// A run goes through these states, in this order; an error in any of them ends it.
///
/// 1. `inspecting`: the store is probed and matched, the way is worked out. Nothing is written
///    anywhere.
/// 2. `cloning`: the store is locked; backup and clone are made in the run folder, and verified.
/// 3. `working`: a worker brings the clone to the last version, and is gone.
/// 4. `verifying`: the clone is verified, stamped and durable; the backup is durable in its final
///    place.
/// 5. `cutover`: the store becomes what the clone is, in one transaction of SQLite.
///
/// Invariants:
/// - The supervisor has each of `cloning` and `cutover` on disk before the run enters it, so
///   that a cut-off run can be found and finished or cleared away (see `Recovery`).
/// - Before `cutover` not a byte of the store is written; an error leaves neither clone nor
///   backup behind.
/// - From the start of `cloning` to the end of `cutover` nobody else writes the store; if
///   somebody managed to (see `StoreLock`), what he wrote stays, and the run starts over from
///   `cloning`.
/// - Nothing that a worker says or leaves decides anything but which error is reported.
package struct MigrationRun {
  private let request: MigrationRequest
  private let conversation: any KeeperConversation
  private let host: any PluginHost
  private let plans: () throws -> [PluginCatalog.Plan]
  private let openPolicy: OpenPolicy

  /// How often a run starts over because another process wrote the store.
  static let attempts = 3

  private enum State {
    case inspecting, cloning, working, verifying, cutover
  }

  private var state = State.inspecting
  private var report: RunReport
  private let start = ContinuousClock.now

  /// - Parameters:
  ///   - conversation: Asked before each phase, and told what happens.
  ///   - host: What runs the stages.
  ///   - plans: The plans that may know the store. Called once, when the run begins.
  package init(
    _ request: MigrationRequest, conversation: any KeeperConversation, host: any PluginHost,
    openPolicy: OpenPolicy, plans: @escaping () throws -> [PluginCatalog.Plan]
  ) {
    self.request = request.withinBounds
    self.conversation = conversation
    self.host = host
    self.plans = plans
    self.openPolicy = openPolicy
    report = RunReport(
      run: request.run, store: request.store, result: .refused,
      startedAt: Date().timeIntervalSince1970)
  }

  /// Performs the run, and says how it ended.
  package mutating func perform() -> RunReport {
    do {
      try run()
    } catch {
      report.error = describe(error)
      report.result = result(of: report.error?.code)
      if state != .cutover { report.backup = nil }
    }
    report.durationMicroseconds = microseconds(since: start)
    return report
  }

  private mutating func run() throws {
    try RunIdentifier.require(request.run)
    let plans = try plans()
    let probe = try openPolicy.probe(
      request.store, versionSources: plans.versionSources,
      busyTimeout: request.busyTimeoutSeconds)
    let (inspection, isCurrent) = try StoreInspection.inspect(
      probe, plans: plans, adopt: request.adopt, adoptsDifferences: request.adoptsDifferences)
    let path = inspection.path
    report.plan = path.plan
    report.plugin = inspection.plugin
    report.from = path.from
    report.to = path.to
    report.bytes = inspection.probe.file.state.size
    if isCurrent {
      report.result = .current
      return
    }
    if let finding = inspection.findings().first(where: { $0.severity == .error }) {
      throw InstarError(
        finding.code ?? .unsupported, "cannot migrate the store", cause: finding.message,
        next: finding.fix)
    }
    let conventions = inspection.probe.conventions
    let layout = try StoreLayout(schema: path.last, conventions: conventions)
    let layoutBefore = try StoreLayout(schema: path.first, conventions: conventions)
    if case .coreData(let layout) = layout {
      try inspection.reference?.requireVersion(layout, path.to)
    }
    if !path.stages.isEmpty {
      // Refuses what the plan cannot do, before anything is made.
      _ = try host.plan(path.plan, from: path.from, plugin: inspection.plugin, store: nil)
    }
    emit(.started)

    for attempt in 1... {
      if try attemptRun(inspection, layoutBefore: layoutBefore, layout: layout) { return }
      guard attempt < Self.attempts else {
        throw InstarError(
          .busyStore, "cannot migrate the store",
          cause: "another process wrote it each time it was to be put back",
          next: "try again when it is written less")
      }
      report.stages = []
      report.notes = []
    }
  }

  /// - Returns: `false` when another process wrote the store meanwhile: nothing was changed, start
  ///   over.
  private mutating func attemptRun(
    _ inspection: StoreInspection, layoutBefore: StoreLayout, layout: StoreLayout
  ) throws -> Bool {
    let path = inspection.path
    let external = ExternalFiles(of: inspection.paths)
    try conversation.enter(record(.cloning, inspection))
    state = .cloning
    report.result = .failed

    let lock = try StoreLock(
      try openPolicy.probeFile(inspection.paths.store), busyTimeout: request.busyTimeoutSeconds)
    defer { lock.release() }
    emit(.locked)
    try requireUnchanged(lock, inspection)
    let folder = try RunFolder(inspection.paths, run: request.run)
    defer { folder.remove() }

    let (source, removedValues, bytes) = try backUp(
      lock, into: folder, layout: layoutBefore, path: path)
    emit(.backedUp) { $0.bytes = bytes }
    state = .working
    try makeMissingIndexes(inspection.fit, of: layoutBefore, in: folder.clone)
    try work(inspection, external, in: folder)
    state = .verifying
    let verification = CloneVerification(
      path: path, layout: layout, additions: inspection.fit.additions, before: source)
    var result = try verify(verification, in: folder)
    try external.requireFiles(
      result.externalFiles.subtracting(source.externalFiles), ofClone: folder.clone)
    emit(.verified) { $0.rows = result.census.rows.values.reduce(0, +) }
    let stamp = StoreStamp(
      earlier: source.metadata, uuid: inspection.probe.uuid, path: path, layout: layout,
      fingerprint: result.structure.fingerprint, reference: inspection.reference)
    result.structure = try write(stamp, to: folder.clone, format: layout.format)
    report.notes += removedValues.sentences
    if stamp.lacksSchema {
      report.notes.append(
        "the schema of version \(path.to) is too large for the store's metadata:"
          + " 'instarctl schema import' will tell what the tables tell")
    }
    fill(before: source.census, result: result, path: path)
    if let problem = inspection.probe.metadataProblem, source.metadata == nil {
      report.notes.append(
        "the store has new metadata, as \(problem): what an app kept there is in the backup only")
    }
    if let metadata = source.metadata, !metadata.isMadeByInstar, inspection.reference == nil {
      // Written by Apple's frameworks, which go by hashes that cannot be computed here.
      report.notes.append(
        "Apple's frameworks may not recognise version \(path.to) of this store:"
          + " the hashes of entities that changed are Instar's own")
    }

    let backup = backupPath(inspection.paths)
    try keep(folder.backup, as: backup, in: inspection.paths)
    report.backup = backup
    do {
      try external.backUp(source.externalFiles, besideFile: backup)
    } catch {
      unlink(backup)
      throw error
    }
    var isCutOver = false
    var adopted: Set<String> = []
    do {
      var record = record(.cutover, inspection)
      record.backup = backup
      if layout.format == .plain { record.fingerprint = result.structure.fingerprint }
      try conversation.enter(record)
      state = .cutover
      adopted = try external.adopt(
        result.externalFiles, ofClone: folder.clone, like: inspection.paths.store,
        listedIn: inspection.paths.fileList(request.run))
      isCutOver = try writeBack(folder.clone, under: lock, result: result, path: path)
    } catch {
      // Where SQLite has undone the transaction, or none was begun, there is nothing to go back
      // from: without this a store that stays busy would collect a backup with each attempt.
      if state != .cutover || isAsInspected(lock, inspection) {
        removeBackup(backup, external, adopted, in: inspection.paths)
      }
      throw error
    }
    guard isCutOver else {
      removeBackup(backup, external, adopted, in: inspection.paths)
      return false
    }
    unlink(inspection.paths.fileList(request.run))
    external.removeOrphans(
      source.externalFiles.subtracting(result.externalFiles), besideFile: backup)
    emit(.writtenBack) { $0.backup = backup }
    report.result = .migrated
    return true
  }

  /// Removes what was made for a write-back that did not take place.
  private mutating func removeBackup(
    _ backup: String, _ external: ExternalFiles, _ adopted: Set<String>, in paths: StorePaths
  ) {
    unlink(backup)
    ExternalFiles.removeBackup(besideFile: backup)
    external.disown(adopted)
    unlink(paths.fileList(request.run))
    report.backup = nil
  }

  // MARK: Cloning

  /// The store may have been written since it was inspected; its version must be the same still.
  private func requireUnchanged(_ lock: StoreLock, _ inspection: StoreInspection) throws {
    guard try hasInspectedVersion(lock, inspection) else {
      throw InstarError(
        .storeChanged, "cannot migrate the store",
        cause: "another process changed its version since it was inspected", next: "try again")
    }
  }

  private func hasInspectedVersion(
    _ lock: StoreLock, _ inspection: StoreInspection
  ) throws -> Bool {
    let identity = inspection.probe.identity
    return try lock.read { db in
      let structure = try StoreStructure.read(db, format: identity.format)
      guard structure == identity.structure else { return false }
      switch identity.format {
      case .coredata: return try CoreDataMetadata.readIfSound(db)?.version == identity.version
      case .plain:
        return try PlainVersion.read(
          db, at: Set(identity.declaredVersions.keys), in: structure) == identity.declaredVersions
          && PlainVersion.toolVersions(db, in: structure) == identity.toolVersions
      }
    }
  }

  /// Whether the store reads back as what it was, after a write-back that failed. A store that
  /// cannot be read is in doubt.
  private func isAsInspected(_ lock: StoreLock, _ inspection: StoreInspection) -> Bool {
    (try? hasInspectedVersion(lock, inspection)) ?? false
  }

  /// Makes the backup and, from it, the clone.
  private func backUp(
    _ lock: StoreLock, into folder: RunFolder, layout: StoreLayout, path: MigrationPath
  ) throws -> (store: StoreBaseline, removedValues: RemovedValues, bytes: Int64) {
    let (pageCount, pageSize) = try lock.read { db in
      (
        try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0,
        try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0
      )
    }
    let size = pageCount * pageSize
    // Backup and clone; in write-ahead-log mode the whole new store also goes through the log.
    try FileCopy.requireSpace(
      size * (lock.usesLog ? 3 : 2) + (1 << 20), in: folder.paths.instarFolder)
    try RunFolder.makeFile(folder.backup)
    try lock.copy(to: folder.backup)
    try DurableFile.synchronizeFile(folder.backup)

    let backup = try GuardedConnection.open(folder.backup, access: .immutable)
    defer { try? backup.close() }
    let (source, removedValues) = try backup.inDatabase { db in
      guard try Int64.fetchOne(db, sql: "PRAGMA page_count") == pageCount else {
        throw InstarError(
          .backupFailed, "cannot back the store up", cause: "the backup is not as long as the store"
        )
      }
      try CloneVerification.quickCheck(db, of: "the store")
      return (
        try StoreBaseline(db, layout: layout), try RemovedValues(db, layout: layout, path: path)
      )
    }
    try FileCopy.copy(folder.backup, to: folder.clone)
    try FileCopy.useRollbackJournal(folder.clone)
    return (source, removedValues, size)
  }

  /// Makes on the clone what a store that was adopted lacks of its version.
  private func makeMissingIndexes(
    _ fit: StructureFit, of layout: StoreLayout, in clone: String
  ) throws {
    guard !fit.missingIndexes.isEmpty else { return }
    let connection = try GuardedConnection.open(clone, access: .readWrite, firesTriggers: false)
    defer { try? connection.close() }
    try connection.writeWithoutTransaction { db in
      for (index, statement) in layout.indexStatements {
        // A structure of the Core Data format knows indexes by what they cover, not by their names.
        let isMissing = fit.missingIndexes.contains { missing in
          missing.table == index.table && missing.columns == index.columns
            && missing.isUnique == index.isUnique
        }
        if isMissing { try db.execute(sql: statement) }
      }
    }
  }

  // MARK: Working

  private mutating func work(
    _ inspection: StoreInspection, _ external: ExternalFiles, in folder: RunFolder
  ) throws {
    let path = inspection.path
    // An adopted store that is at the last version has no stage before it, only the stamp.
    guard !path.stages.isEmpty else { return }
    var work = CloneWork(
      plugin: inspection.plugin, plan: path.plan, from: path.from,
      cloneFolder: folder.cloneFolder, clone: folder.clone, sqlDebugLevel: request.sqlDebugLevel,
      stageTimeLimit: .seconds(request.stageTimeLimitSeconds))
    work.externalFolder = try external.existingFolder()
    var finished: [RunReport.Stage] = []
    var stageStart = ContinuousClock.now
    var running: Int?
    func title(_ index: Int) -> String {
      let stage = path.stages[index]
      return "\(stage.from) → \(stage.to) (\(index + 1) of \(path.stages.count))"
    }
    do {
      try host.migrate(work) { event throws(InstarError) in
        switch event {
        case .stageStarted(let stage):
          let index = finished.count
          guard running == nil, index < path.stages.count, path.stages[index] == stage else {
            throw Self.outOfStep
          }
          running = index
          stageStart = .now
          emit(.stageStarted) { $0.stage = title(index) }
        case .stageFinished(let stage):
          guard let index = running, path.stages[index] == stage else { throw Self.outOfStep }
          running = nil
          let duration = microseconds(since: stageStart)
          finished.append(
            RunReport.Stage(
              from: stage.from, to: stage.to, kind: stage.kind, durationMicroseconds: duration))
          emit(.stageFinished) {
            $0.stage = title(index)
            $0.durationMicroseconds = duration
          }
        case .sql(let text):
          emit(.sql) { $0.text = text }
        case .output(let text):
          emit(.output) { $0.text = text }
        }
      }
    } catch {
      let plugin = URL(fileURLWithPath: inspection.plugin).lastPathComponent
      throw error.about(stage: running.map { "\(title($0)), plugin '\(plugin)'" })
    }
    guard finished.count == path.stages.count else { throw Self.outOfStep }
    report.stages = finished
  }

  private static let outOfStep = InstarError(
    .protocolViolation, "cannot migrate the clone",
    cause: "the worker reported other stages than those of the plan")

  // MARK: Verifying

  private func verify(
    _ verification: CloneVerification, in folder: RunFolder
  ) throws -> CloneVerification.Result {
    try CloneVerification.requirePlainFile(folder.paths.name, in: folder.cloneFolder)
    do {
      let clone = try GuardedConnection.open(folder.clone, access: .immutable)
      defer { try? clone.close() }
      return try clone.inDatabase { db in
        var result = try verification.verify(db)
        result.externalFiles = try ExternalFiles.references(db, verification.layout)
        return result
      }
    } catch let error as DatabaseError {
      throw InstarError(
        .verificationFailed, "cannot verify the migrated clone",
        cause: error.message ?? "SQLite reports \(error.extendedResultCode)")
    } catch let error as InstarError where error.code == .corruptStore {
      var error = error
      error.code = .verificationFailed
      throw error
    }
  }

  /// - Returns: what the stamped clone is made of; a plan may keep the version in a table.
  private func write(
    _ stamp: StoreStamp, to clone: String, format: StoreFormat
  ) throws -> StoreStructure {
    let structure: StoreStructure
    try FileCopy.useRollbackJournal(clone)
    let connection = try GuardedConnection.open(clone, access: .readWrite, firesTriggers: false)
    do {
      structure = try connection.writeWithoutTransaction { db in
        try stamp.write(db)
        return try StoreStructure.read(db, format: format)
      }
      try connection.close()
    } catch {
      try? connection.close()
      throw error
    }
    try DurableFile.synchronizeFile(clone)
    return structure
  }

  private mutating func fill(
    before: StoreCensus, result: CloneVerification.Result, path: MigrationPath
  ) {
    report.notes += result.notes
    let kept = path.last.entities.map { ($0.name, path.origin(of: $0.name)) }
    let origins = Set(kept.compactMap(\.1))
    let removed = before.rows.filter { !origins.contains($0.key) }
      .map { RunReport.Entity(name: $0.key, rowsBefore: $0.value, rowsAfter: nil) }
    let entities = kept.map { name, origin in
      RunReport.Entity(
        name: name, rowsBefore: origin.flatMap { before.rows[$0] },
        rowsAfter: result.census.rows[name])
    }
    report.entities = (entities + removed).sorted { $0.name < $1.name }
    var links: [RunReport.Relationship] = []
    var places = Set<String>()
    var continued = Set<String>()
    for entity in path.last.entities {
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        let origin = path.origin(of: relationship, in: entity.name)
        if let origin { continued.insert(origin) }
        // Both ends of a relationship hold the same links.
        guard let now = result.census.links[name], places.insert(now.place).inserted else {
          continue
        }
        links.append(
          RunReport.Relationship(
            name: name, linksBefore: origin.flatMap { before.links[$0]?.count },
            linksAfter: now.count))
      }
    }
    places = Set(continued.compactMap { before.links[$0]?.place })
    for (name, gone) in before.links.sorted(by: { $0.key < $1.key })
    where places.insert(gone.place).inserted {
      links.append(RunReport.Relationship(name: name, linksBefore: gone.count, linksAfter: nil))
    }
    report.relationships = links
  }

  private func backupPath(_ paths: StorePaths) -> String {
    request.backupFolder.map { paths.backup(request.run, in: $0) } ?? paths.backup(request.run)
  }

  /// Gives the backup its final name, durably, before the store is written.
  private func keep(_ file: String, as backup: String, in paths: StorePaths) throws {
    func failure(_ code: Int32) -> InstarError {
      InstarError(.backupFailed, "cannot keep the backup", cause: String(cString: strerror(code)))
    }
    if rename(file, backup) != 0 {
      guard errno == EXDEV else { throw failure(errno) }
      // Another file system: its name comes last, so that it is never a part of a backup.
      let partial = backup + ".part"
      unlink(partial)
      do {
        try RunFolder.makeFile(partial)
        try FileCopy.copy(file, to: partial)
        try DurableFile.synchronizeFile(partial)
        guard rename(partial, backup) == 0 else { throw failure(errno) }
      } catch {
        unlink(partial)
        throw error
      }
    }
    try DurableFile.synchronizeFolder(request.backupFolder ?? paths.instarFolder)
    try DurableFile.synchronizeFolder(paths.folder.isEmpty ? "/" : paths.folder)
  }

  // MARK: Cutover

  private func writeBack(
    _ clone: String, under lock: StoreLock, result: CloneVerification.Result, path: MigrationPath
  ) throws -> Bool {
    let what = "cannot put the migrated clone back"
    do {
      guard try lock.replaceContents(withClone: clone) else { return false }
    } catch let error as DatabaseError {
      let known = InstarError(error, what: what)
      throw InstarError(
        known.code == .busyStore || known.code == .noSpace ? known.code : .writeBackFailed, what,
        cause: known.cause, state: "unchanged; SQLite undid what was written", next: known.next)
    }
    let isThere = try lock.read { db in
      let structure = try StoreStructure.read(db, format: path.last.format)
      guard structure == result.structure else { return false }
      switch path.last.format {
      case .coredata: return try CoreDataMetadata.read(db).version == path.to
      case .plain:
        return try PlainVersion.read(db, at: [path.versionSource], in: structure)[
          path.versionSource] == path.to
      }
    }
    guard isThere else {
      throw InstarError(
        .writeBackFailed, what, cause: "the store does not read back as version \(path.to)",
        state: "to be looked at", next: "put the backup in the store's place")
    }
    return true
  }

  // MARK: Telling

  private func record(_ phase: Phase, _ inspection: StoreInspection) -> PhaseRecord {
    var record = PhaseRecord(
      run: request.run, store: request.store, phase: phase, startedAt: report.startedAt)
    record.plugin = inspection.plugin
    record.plan = inspection.path.plan
    record.from = inspection.path.from
    record.to = inspection.path.to
    // Elsewhere nobody would look for it.
    if request.backupFolder != nil { record.backup = backupPath(inspection.paths) }
    if inspection.path.last.format == .plain {
      record.versionSource = inspection.path.versionSource
    }
    return record
  }

  /// Events are for people: a supervisor that is gone is noticed by the next question.
  private func emit(_ step: RunEvent.Step, _ fill: (inout RunEvent) -> Void = { _ in }) {
    var event = RunEvent(run: request.run, store: request.store, step: step)
    event.plan = report.plan
    event.plugin = report.plugin
    event.from = report.from
    event.to = report.to
    fill(&event)
    try? conversation.send(.run(event))
  }

  private func microseconds(since instant: ContinuousClock.Instant) -> Int64 {
    instant.duration(to: .now).inMicroseconds
  }

  private func result(of code: InstarError.Code?) -> RunReport.Result {
    if code == .busyStore { return .busy }
    return state == .inspecting ? .refused : .failed
  }

  private func describe(_ error: any Error) -> InstarError {
    var what = "cannot migrate '\(request.store)'"
    if let from = report.from, let to = report.to { what += " from \(from) to \(to)" }
    var known = InstarError(error, what: what, store: request.store)
    known.what = what
    known.store = request.store
    if known.code == .busyStore {
      var holders = StoreHolders()
      let text = holders.ofFile(request.store).map { "\($0.pid) (\($0.command))" }
      if !text.isEmpty { known.cause += "; it is open in \(text.joined(separator: ", "))" }
    }
    let isThere = known.code != .missingStore
    known.state = known.state ?? (isThere ? "unchanged" : nil)
    if state == .cutover, let backup = report.backup {
      known.state = (known.state ?? "") + "; backup kept at \(backup)"
    }
    return known
  }
}

extension MigrationRequest {
  private static let longestStageSeconds = 30.0 * 24 * 3600
  private static let longestBusyTimeoutSeconds = 3600.0

  /// The same request with durations that can be counted with: at most 30 days for a stage and an
  /// hour for a busy store.
  fileprivate var withinBounds: MigrationRequest {
    var request = self
    request.stageTimeLimitSeconds = min(max(stageTimeLimitSeconds, 0), Self.longestStageSeconds)
    request.busyTimeoutSeconds = min(max(busyTimeoutSeconds, 0), Self.longestBusyTimeoutSeconds)
    return request
  }
}
