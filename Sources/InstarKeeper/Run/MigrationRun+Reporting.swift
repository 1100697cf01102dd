internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension MigrationRun {
  func record(_ phase: Phase, _ inspection: StoreInspection) -> PhaseRecord {
    var record = report.record(phase)
    if request.rehearses { record.rehearses = true }
    // A recovery finds it beside the store by itself, but nowhere else.
    if let folder = request.backupFolder {
      record.backup = inspection.paths.backup(request.run, in: folder)
    }
    if !inspection.path.last.format.hasMetadata {
      record.versionSource = inspection.path.versionSource
    }
    return record
  }

  func manifest(of attempt: CutoverAttempt, _ backup: BackupCheck.Result) -> BackupManifest {
    let path = attempt.path
    var manifest = backup.manifest
    manifest.version = path.from
    manifest.versionSource = path.first.format.hasMetadata ? nil : path.versionSource
    manifest.plan = path.plan
    manifest.plugin = attempt.inspection.plugin
    return manifest
  }

  /// Sends an event for people to see.
  func emit(_ step: RunEvent.Step, _ fill: (inout RunEvent) -> Void = { _ in }) {
    guard request.reportsSteps || !isShort || [.output, .sql].contains(step) else { return }
    var event = report.event(step)
    fill(&event)
    let canWait =
      switch step {
      case .started, .locked, .backedUp, .stageFinished, .verified, .cutOver: hasShortSteps
      // Code of the plan may follow, and may take any time.
      case .stageStarted, .output, .sql: isShort
      case .progress: false
      }
    // An event may be lost: if the supervisor has ended, the next question fails.
    try? canWait ? conversation.post(.run(event)) : conversation.send(.run(event))
  }

  func result(of code: InstarError.Code?) -> RunReport.Result {
    if code == .busyStore { return .busy }
    // Found on the clone, but not a failure of the run: another attempt would find the same.
    let isRefusal = code == .needsCustomStage || code == .unacceptedLoss
    return state == .inspecting || isRefusal ? .refused : .failed
  }

  /// The command that makes the run again, with the plugin that has the store's plan.
  var command: MigrationCommand {
    var command = request.command
    if let plugin = report.plugin { command.plugins = [plugin] }
    return command
  }

  /// The error as the supervisor gets it: about this store, with the state that the store is in now.
  mutating func describe(_ error: any Error) -> InstarError {
    var what = request.what
    if let from = report.from, let to = report.to { what += " from \(from) to \(to)" }
    var known = InstarError(error, what: what, store: request.store)
    // Without the plugin's path, its error would read as one of the store.
    if let plugin = request.plans.plugins.first(where: { known.what.contains("'\($0)'") }) {
      known = known.about(what)
      report.plugin = report.plugin ?? plugin
    }
    known.what = what
    known.store = request.store
    let folder = request.store.parentFolder
    let mayLackSpace: [InstarError.Code] = [.unreadableStore, .backupFailed, .writeBackFailed]
    if mayLackSpace.contains(known.code), FileCopy.isFull(folder) {
      known.code = .noSpace
      known.cause += "; the file system of '\(folder)' is full"
      known.next = "free some space, then run: \(command.text)"
    }
    known.completeNext(.command(command.text))
    known.nameState(keeping: state == .cutover ? report.backup : nil)
    return known
  }
}
