import ArgumentParser
import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl restore`
struct RestoreCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Undo a migration: bring stores back to the backup of a run.",
    usage: """
      instarctl restore [--run <run>] [<option> ...] <store> ...
      instarctl restore --to <file> [--run <run>] [<option> ...] <store>
      """,
    discussion: """
        instarctl restore a.store
        instarctl restore --run 20261121T101530Z-3f9c2a a.store
        instarctl restore --to old.store a.store

      Checks the backup of the store's newest run, or of the run that --run names. Then it locks the \
      store as a migration does, keeps its present content as a new backup, and replaces the content \
      in one transaction. Files of large values come back too. You lose what was written since the run, \
      but only until you restore again: the second restore undoes the first. If the store was damaged before \
      the first restore, the second is refused: it would bring the damage back.

      A restored store is held: instard, and 'instarctl migrate' with the same state folder, do not migrate it until \
      'instarctl release'. If you may not read the service's state folder, restore also asks instard for the hold. \
      Stop the app first if it cannot read the old version.

      A damaged backup is never restored; 'instarctl backups verify' finds a sound one.

      With --to, restore writes the backup to a new file and changes nothing else. The file and its large \
      values have the mode of the store, or 0600 if the store is gone. It refuses a file with a log or journal \
      beside it, which SQLite would replay onto the backup. If the file is the store itself, which is gone or was \
      renamed, it is held as after any restore.
      """)

  @OptionGroup var stores: StoreArguments

  @Option(
    help: ArgumentHelp(
      "The run whose backup to restore, as 'instarctl backups list' names it. (default: the store's newest run)",
      valueName: "run"))
  var run: String?

  @Option(
    name: .customLong("to"),
    help: ArgumentHelp(
      "Write the backup to this file, which must not exist, and leave the store alone.",
      valueName: "file"),
    completion: .file(), transform: FilePath.typed)
  var target: String?

  @OptionGroup var state: StateOptions

  @OptionGroup var busy: BusyOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard stores.files.count == 1 || (run == nil && target == nil) else {
      throw ValidationError("--run and --to need exactly one store")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    try requireStateFolder()
    if let target { return try await copy(to: FilePath.absolute(target)) }
    let folder = try state.open()
    let supervisor = try Supervisor(stateFolder: folder)
    let progress = RunProgress(output.json ? .output : .steps)
    let interruption = try Interruption {
      Console.note("interrupted: stopping the run")
      supervisor.cancel()
    }
    let recoveries = Recoveries(state)
    var status = ExitStatus.done
    var serviceHolds = ServiceHolds(state)
    var hasHeld = false
    for store in stores.paths {
      var report: RunReport
      let identifier = RunIdentifier.make()
      progress.begin(store, .writes)
      defer { progress.end(identifier, of: store) }
      do throws(InstarError) {
        try FilePath.requireAnswer(about: store, to: "restore")
        // A recovery may finish the run whose backup is wanted.
        try await supervisor.recover(store: store) { recoveries.note($0) }
        let request = RestoreRequest(
          run: identifier, store: store, backup: try backup(of: store, in: folder),
          busyTimeoutSeconds: busy.timeoutSeconds)
        report =
          interruption.hasHappened
          ? Self.refused(
            identifier, store, folder.completing(Self.interrupted(store, request.backup.run)))
          : try await Self.restore(
            request, by: supervisor, &serviceHolds, onRecovery: { recoveries.note($0) },
            onEvent: { progress.show($0) })
      } catch {
        // No other store can be restored without the state folder.
        guard error.code != .stateFolderFailed else { throw error }
        report = Self.refused(identifier, store, folder.completing(error.about(store: store)))
      }
      if Self.keepsHold(report) {
        report.hold = try folder.hold(on: store)
      }
      status = .gravest(status, ExitStatus(for: report))
      output.write(report)
      guard let hold = report.hold else { continue }
      hasHeld = true
      note(hold, in: folder)
    }
    try await recoveries.makeCopies(with: supervisor)
    if hasHeld, !serviceHolds.wasAsked { state.noteOtherDaemon() }
    return status
  }

  /// Restores a store that instard, if it runs, holds from before until `release`.
  private static func restore(
    _ request: RestoreRequest, by supervisor: Supervisor, _ serviceHolds: inout ServiceHolds,
    onRecovery: @escaping @Sendable (RecoveryReport) -> Void,
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    let store = request.store
    let hold = serviceHolds.place(on: store, forRun: request.run)
    do throws(InstarError) {
      let report = try await supervisor.restore(
        request, by: ProcessIdentity.nameOfCaller, onRecovery: onRecovery, onEvent: onEvent)
      if let hold, !keepsHold(report) { serviceHolds.remove(hold, from: store) }
      return report
    } catch {
      if let hold { serviceHolds.remove(hold, from: store) }
      throw error
    }
  }

  /// Where a failed restore keeps a backup, the store may be restored, and the hold stays.
  private static func keepsHold(_ report: RunReport) -> Bool {
    report.result == .restored || report.backup != nil || report.error?.isInDoubt == true
  }

  private func note(_ hold: Hold, in folder: StateFolder) {
    guard !output.json else { return }
    Console.note(
      "\(hold.sentence); to let instard migrate the store again, run: "
        + "\(folder.releaseCommand(of: hold))")
  }

  /// Refuses a mistyped state folder, which would be made. Backups beside the stores need no ledger.
  private func requireStateFolder() throws(InstarError) {
    do throws(InstarError) {
      try state.requireNamed("cannot restore stores")
    } catch {
      guard error.code == .missingFile else { throw error }
      for store in stores.paths {
        try FilePath.requireAnswer(about: store, to: "restore")
        if try !state.forReading.backups(of: store).isEmpty { return }
      }
      throw error
    }
  }

  /// A link has no backups: the ledger names its target.
  private func backup(
    of store: String, in folder: StateFolder
  ) throws(InstarError) -> BackupReference {
    try FilePath.requireAnswer(about: store, to: "restore")
    do {
      return try folder.backup(of: store, run: run)
    } catch {
      guard error.code == .missingBackup else { throw error }
      if run == nil, !FilePath.exists(store) {
        var missing = error
        missing.code = .missingStore
        missing.cause = "the file does not exist; \(error.cause)"
        missing.state = nil
        missing.next = "check the path; \(error.next ?? "")"
        throw missing
      }
      guard let target = FilePath.targetOfLink(store) else { throw error }
      throw InstarError(
        .unsafePath, error.what, store: store, cause: "a symbolic link", state: "unchanged",
        next: "pass the path of the link's target: \(CommandText.quoted(target))")
    }
  }

  private func copy(to target: String) async throws(InstarError) -> ExitStatus {
    let folder = state.forReading
    let supervisor = try Supervisor()
    // A keeper that outlived the command would put the file in place later.
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    var status = ExitStatus.done
    for store in stores.paths {
      let backup = try backup(of: store, in: folder)
      var answer = WrittenBackup(store: store, run: backup.run, backup: backup.path, file: target)
      do throws(InstarError) {
        if StorePath(target).text == backup.store {
          answer.hold = try await putBack(backup, by: supervisor)
        } else {
          try await supervisor.handle(backup, .copy(to: target))
        }
      } catch {
        answer.error = folder.completing(error)
        // An interrupted copy that is in place stays held. Where holds cannot be read, the next command says so.
        if StorePath(target).text == backup.store { answer.hold = try? folder.hold(on: target) }
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
      guard let hold = answer.hold else { continue }
      note(hold, in: folder)
      state.noteOtherDaemon()
    }
    return status
  }

  /// Writes the backup in the place of its store, which is gone.
  private func putBack(
    _ backup: BackupReference, by supervisor: Supervisor
  ) async throws(InstarError) -> Hold {
    try await state.open().hold(
      missing: backup.store, by: ProcessIdentity.nameOfCaller,
      why: "restored from the backup of run \(backup.run)"
    ) { () async throws(InstarError) in
      try await supervisor.handle(backup, .copy(to: backup.store))
    }
  }

  private static func interrupted(_ store: String, _ run: String) -> InstarError {
    InstarError(
      .interrupted, "cannot restore '\(store)'", store: store,
      cause: "interrupted before the run started", state: "unchanged",
      next: "run: \(CommandText.restore(store, run: run))")
  }

  /// The report on a store whose run did not start.
  private static func refused(_ run: String, _ store: String, _ error: InstarError) -> RunReport {
    let result: RunReport.Result =
      switch ExitStatus(for: error) {
      case .busy: .busy
      case .failed: .failed
      default: .refused
      }
    var report = RunReport(
      run: run, store: store, result: result, startedAt: Date().timeIntervalSince1970)
    report.error = error
    return report
  }
}

/// A backup that was written to another file.
private struct WrittenBackup: CommandOutput {
  var store: String
  var run: String
  var backup: String
  /// The copy.
  var file: String
  /// The hold on the copy, if it is the store.
  var hold: Hold?
  var error: InstarError?

  var lines: [ConsoleLine] {
    error == nil ? ["wrote the backup of run \(run) of \(store) to \(file)"] : []
  }
}
