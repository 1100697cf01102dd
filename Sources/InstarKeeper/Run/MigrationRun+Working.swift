internal import Foundation
internal import GRDB
internal import InstarChange
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  /// Brings the clone to the last version: the host runs the stages.
  ///
  /// - Parameter schema: The schema of the clone.
  mutating func work(_ attempt: CutoverAttempt, on schema: SchemaText) throws {
    lostValues = []
    // An adopted store that is at the last version has no stage before it, only the stamp.
    guard !attempt.path.stages.isEmpty else { return }
    let files = attempt.files
    var work = CloneWork(
      plugin: attempt.inspection.plugin, plan: attempt.path.plan, from: attempt.path.from,
      stages: attempt.path.schemaStages, schema: schema, cloneFolder: files.cloneFolder,
      clone: files.cloneFile, transaction: files.clone.transaction, store: attempt.paths.store,
      sqlDebugLevel: request.sqlDebugLevel, memoryBytes: request.workerMemoryBytes,
      fileSizeBytes: max(Self.smallestFileSizeLimit, (report.bytes ?? 0) * 8),
      stageTimeLimit: .seconds(request.stageTimeLimitSeconds))
    work.externalFolder = try attempt.external.existingFolder()
    var progress = ReportedStages(stages: attempt.path.stages)
    do {
      try host.migrate(work) { event throws(InstarError) in
        try follow(event, &progress)
      }
    } catch {
      let plugin = attempt.inspection.plugin.lastName
      throw error.about(
        stage: progress.runningTitle.map { "\($0), plugin '\(plugin)'" },
        next: error.code == .sqlFailed
          ? "correct the stage, or the stored values that it cannot use; build the plugin again "
            + "and install it" : nil)
    }
    report.stages = try progress.allFinished()
  }

  /// Room for a small store that a plan makes much larger, and for temporary files.
  private static let smallestFileSizeLimit: Int64 = 4 << 30

  private mutating func follow(
    _ event: CloneWorkEvent, _ progress: inout ReportedStages
  ) throws(InstarError) {
    switch event {
    case .stageStarted(let stage):
      let title = try progress.start(stage)
      emit(.stageStarted) { $0.stage = title }
    case .stageFinished(let stage):
      let (title, duration) = try progress.finish(stage)
      emit(.stageFinished) {
        $0.stage = title
        $0.durationMicroseconds = duration
      }
    case .progress(let work):
      guard let title = progress.titleForReport(at: .now) else { return }
      emit(.progress) {
        $0.stage = title
        $0.progress = work.plausible
      }
    case .valuesLost(let values):
      lostValues.append(values)
    case .fetchedWhole(let fetch):
      report.rehearsal?.add(fetch)
    case .sql(let text):
      emit(.sql) { $0.text = text }
    case .output(let text):
      emit(.output) { $0.text = text }
    }
  }

  /// Makes on the clone the indexes that an adopted store lacks of its version.
  ///
  /// - Returns: The schema with them; `nil` where none is missing.
  func makeMissingIndexes(_ attempt: CutoverAttempt) throws -> SchemaText? {
    let missingIndexes = attempt.inspection.fit.missingIndexes
    guard !missingIndexes.isEmpty else { return nil }
    let statements = attempt.layouts.before.indexStatements.filter { index, _ in
      // A structure of the Core Data format knows indexes by what they cover, not by their names.
      missingIndexes.contains { missing in
        missing.table == index.table && missing.columns == index.columns
          && missing.isUnique == index.isUnique
      }
    }
    do {
      return try attempt.files.clone.change { db in
        for (_, statement) in statements { try db.runFirstStatement(of: statement) }
        return try SchemaText(db)
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      // The check of the store has not begun. Its own damage is to be reported, not that of its copy.
      try attempt.backupSource.read {
        _ = try StoreCheck.requireSound($0, "the store", path: attempt.paths.store)
      }
      throw error
    }
  }
}

/// Compares the stages that a worker reports with those of the plan.
private struct ReportedStages {
  let stages: [StageManifest]
  private var finished: [RunReport.Stage] = []
  private var running: Int?
  private var start = ContinuousClock.now
  /// A worker may report its progress as often as it likes; the supervisor hears of it no more often than this.
  private static let reportInterval = Duration.milliseconds(200)
  private var nextReport = ContinuousClock.now

  init(stages: [StageManifest]) { self.stages = stages }

  var runningTitle: String? { running.map(title) }

  private func title(_ index: Int) -> String {
    stages[index].title("\(index + 1) of \(stages.count)")
  }

  /// - Returns: The stage whose progress may be reported now; `nil` if none runs, or the last report was just before.
  mutating func titleForReport(at now: ContinuousClock.Instant) -> String? {
    guard let runningTitle, nextReport <= now else { return nil }
    nextReport = now + Self.reportInterval
    return runningTitle
  }

  mutating func start(_ stage: StageManifest) throws(InstarError) -> String {
    let index = finished.count
    guard running == nil, index < stages.count, stages[index] == stage else {
      throw Self.outOfStep
    }
    running = index
    start = .now
    return title(index)
  }

  mutating func finish(
    _ stage: StageManifest
  ) throws(InstarError) -> (title: String, durationMicroseconds: Int64) {
    guard let index = running, stages[index] == stage else { throw Self.outOfStep }
    running = nil
    let duration = start.duration(to: .now).inMicroseconds
    finished.append(
      RunReport.Stage(
        from: stage.from, to: stage.to, kind: stage.kind, label: stage.label,
        durationMicroseconds: duration))
    return (title(index), duration)
  }

  func allFinished() throws(InstarError) -> [RunReport.Stage] {
    guard finished.count == stages.count else { throw Self.outOfStep }
    return finished
  }

  private static let outOfStep = InstarError(
    .protocolViolation, "cannot migrate the clone",
    cause: "the worker's stages do not match those of the plan",
    next: "build the plugin again with this version of Instar")
}
