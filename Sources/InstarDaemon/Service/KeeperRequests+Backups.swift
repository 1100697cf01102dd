import Dispatch
import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Copying, removing and verifying backups, for one watch after the other. Its results are events of the journal;
/// nothing waits for them.
extension KeeperRequests {
  /// How many backups one check verifies. Over many days, the random samples reach each backup.
  private static let sampleSize = 20

  /// Copies the backup of a run that has just ended, if there is to be a copy. Then removes old backups of its store,
  /// where it has more than are kept.
  ///
  /// Their number is read from the folder: the ledger may have a line for each of 100,000 stores. The other limits are
  /// applied by `checkBackups`.
  ///
  /// - Parameter watch: The path of the store's watch.
  func keepBackups(of report: RunReport, in watch: String) {
    guard let stateFolder = supervisor.stateFolder else { return }
    add(watch) { (noteStep) throws(InstarError) in
      var copy: String?
      var recorded = report
      recorded.store = supervisor.ledgerPath(of: report.store).text
      try await supervisor.makeCopies(of: [ListedBackup(recorded)].compactMap(\.self)) {
        post($0, noteStep)
        if case .copied(let made) = $0.outcome { copy = made.path }
      }
      if let backup = ListedBackup(recorded, copy: copy) {
        metrics.noteBackup(backup.occupiedBytes, of: watch)
      }
      let count = countedBackups.noteBackup(of: report.store)
      guard let retention = retention(ofStore: report.store, in: watch), count > retention.count
      else { return }
      // Not those of a store behind a symbolic link that the owner made since: they have another retention.
      let backups = try stateFolder.backups(of: recorded.store)
        .filter { $0.reference.store == recorded.store }
      let sizes = Dictionary(
        backups.map { ($0.reference.run, $0.occupiedBytes) }, uniquingKeysWith: { $1 })
      try await supervisor.prune(
        backups, keeping: retention, now: Date().timeIntervalSince1970,
        while: { _ in self.retention(ofStore: report.store, in: watch) == retention }
      ) { result in
        post(result, noteStep)
        if case .removed = result.outcome {
          metrics.noteBackup(sizes[result.backup.run] ?? 0, sign: -1, of: watch)
        }
      }
    }
  }

  /// Which backups of a store are kept now; `nil` if the store no longer belongs to the watch. Then the regular check
  /// removes them.
  private func retention(ofStore store: String, in watch: String) -> BackupRetention? {
    let configuration = backupSettings.value.configuration
    guard configuration.watch(ofStore: store)?.path == watch else { return nil }
    return configuration.retention(ofStore: store)
  }

  /// Counts the backups of all watched stores, for the metrics. Reads the ledger, so it is not done for each reader.
  func countBackups() {
    guard let stateFolder = supervisor.stateFolder else { return }
    for path in backupSettings.value.watches.map(\.path) {
      add(path) { (_) throws(InstarError) in
        let settings = backupSettings.value
        guard let watch = settings.watches.first(where: { $0.path == path })?.watch else { return }
        setMetrics(try backups(of: watch, settings, stateFolder), of: watch, at: path)
      }
    }
  }

  private func backups(
    of watch: Configuration.Watch, _ settings: BackupSettings.Value, _ stateFolder: StateFolder
  ) throws(InstarError) -> [ListedBackup] {
    try stateFolder.backups(below: watch.folder) { settings.resolved.watch(ofStore: $0) == watch }
  }

  /// - Returns: `false` where the watch was removed or has another folder since the backups were listed.
  @discardableResult
  private func setMetrics(
    _ backups: [ListedBackup], of watch: Configuration.Watch, at path: String
  ) -> Bool {
    let isThere = backupSettings.value.watches.contains {
      $0.path == path && $0.watch.folder == watch.folder
    }
    if isThere { metrics.setBackups(backups, of: path) }
    return isThere
  }

  /// Whether a retention still applies to a store of a watch.
  private func isInForce(
    _ retention: BackupRetention, for store: String, in watch: Configuration.Watch
  ) -> Bool {
    let settings = backupSettings.value.resolved
    return settings.watch(ofStore: store)?.folder == watch.folder
      && settings.retention(ofStore: store) == retention
  }

  /// Makes the copies that are missing because a run of the store was cut off before its copy was made.
  ///
  /// - Parameter watch: The path of the store's watch.
  func copyBackups(of store: String, in watch: String) {
    guard let stateFolder = supervisor.stateFolder else { return }
    add(watch) { (noteStep) throws(InstarError) in
      try await supervisor.makeCopies(of: try stateFolder.backups(of: store)) { post($0, noteStep) }
    }
  }

  /// Makes missing copies of the backups of all watched stores, removes old backups, verifies a random sample of the
  /// others, and removes old files of the ledger.
  ///
  /// A watch whose file system does not answer is left out, and the check then does not count as done. The sample is
  /// drawn when the work on all other watches has ended, however long that takes.
  ///
  /// - Parameter silent: The paths of watches that are known not to answer.
  func checkBackups(without silent: Set<String> = []) {
    guard let stateFolder = supervisor.stateFolder else { return }
    let paths = backupSettings.value.watches.map(\.path)
    metrics.forgetBackups(exceptOfWatches: Set(paths))
    let check = RegularBackupCheck()
    let asked = checkedWatches.begin(paths.filter { !silent.contains($0) })
    add(
      asked, check,
      work: { (path, noteStep) throws(InstarError) in
        try await work(on: path, check, stateFolder, noteStep)
      },
      then: { verifySample(of: check, stateFolder) })
  }

  /// Makes missing copies of the backups of a watch's stores, and removes old backups.
  private func work(
    on path: String, _ check: RegularBackupCheck, _ stateFolder: StateFolder,
    _ noteStep: @Sendable () -> Void
  ) async throws(InstarError) {
    let settings = backupSettings.value
    guard let watch = settings.watches.first(where: { $0.path == path })?.watch else { return }
    var left = try backups(of: watch, settings, stateFolder)
    var hasChanged = false
    try await supervisor.makeCopies(of: left, in: settings.resolved.copyFolder(ofStore:)) {
      post($0, noteStep)
      hasChanged = true
    }
    // The copies count.
    if hasChanged { left = try backups(of: watch, settings, stateFolder) }
    hasChanged = false
    let retention = watch.backups ?? settings.resolved.backups
    try await supervisor.prune(
      left, keeping: retention, now: Date().timeIntervalSince1970,
      while: { isInForce(retention, for: $0, in: watch) }
    ) {
      post($0, noteStep)
      hasChanged = true
    }
    if hasChanged { left = try backups(of: watch, settings, stateFolder) }
    guard setMetrics(left, of: watch, at: path) else { return }
    // A folder that is gone took its backups with it, or its file system is unmounted: no backup is damaged.
    let watched = left.filter {
      !$0.isMissing || FileManager.default.fileExists(atPath: $0.folder)
    }
    .map(\.reference)
    let trusted = watched.shuffled().lazy.filter(supervisor.isTrusted).prefix(Self.sampleSize)
    check.note(RegularBackupCheck.Kept(count: watched.count, trusted: Array(trusted)), of: path)
  }

  private func verifySample(of check: RegularBackupCheck, _ stateFolder: StateFolder) {
    let kept = check.watches
    let free = checkedWatches.begin(kept)
    // A later check is at work on the others.
    for watch in kept.subtracting(free) { check.leaveOut(watch) }
    let sample = check.sample(of: Self.sampleSize)
    for watch in free where sample[watch] == nil { checkedWatches.end(watch) }
    add(
      Array(sample.keys), check,
      work: { (path, noteStep) throws(InstarError) in
        try await supervisor.verify(sample[path] ?? []) { result in
          noteStep()
          let isSound = if case .sound = result.outcome { true } else { false }
          check.noteVerified(isSound: isSound)
          if !isSound { log.post(.backupHandled(result)) }
        }
      },
      then: {
        add(stateFolder.path, check) { (_) throws(InstarError) in try end(check, stateFolder) }
      })
  }

  private func end(
    _ check: RegularBackupCheck, _ stateFolder: StateFolder
  ) throws(InstarError) {
    guard !check.hasFailed else { return }
    let settings = backupSettings.value
    let watches = check.watches
    let ended = Set(settings.watches.filter { watches.contains($0.path) }.map(\.watch))
    try stateFolder.removeOldRuns(keeping: settings.configuration.ledger.files) { store in
      settings.resolved.watch(ofStore: store).map(ended.contains) ?? true
    }
    // Else the next start checks them.
    if ended.count == settings.watches.count { try stateFolder.noteBackupCheck() }
    let (sound, sample, all) = check.result
    if sample > 0 { log.post(.backupsVerified(sound: sound, sample: sample, all: all)) }
  }

  private func post(_ result: BackupResult, _ noteStep: () -> Void) {
    noteStep()
    log.post(.backupHandled(result))
  }

  private typealias Work =
    @Sendable (_ noteStep: @escaping @Sendable () -> Void) async throws(InstarError) -> Void

  /// Adds work of a check on several watches.
  ///
  /// - Parameter next: Called when all of it has ended.
  private func add(
    _ watches: [String], _ check: RegularBackupCheck,
    work:
      @escaping @Sendable (_ watch: String, _ noteStep: @escaping @Sendable () -> Void)
      async
      throws(InstarError) -> Void,
    then next: @escaping @Sendable () -> Void
  ) {
    let group = DispatchGroup()
    for watch in watches {
      group.enter()
      add(
        watch, check,
        onEnd: {
          checkedWatches.end(watch)
          group.leave()
        }
      ) { (noteStep) throws(InstarError) in try await work(watch, noteStep) }
    }
    group.notify(queue: .global(), execute: next)
  }

  /// Adds work. It is left out where the file system of its watch does not answer: the next check makes up for it.
  ///
  /// - Parameters:
  ///   - watch: The path of the watch that the work is about.
  ///   - check: The check that fails if the work fails.
  ///   - onEnd: Called when the work has ended, or was left out.
  private func add(
    _ watch: String, _ check: RegularBackupCheck? = nil,
    onEnd: @escaping @Sendable () -> Void = {}, _ work: @escaping Work
  ) {
    backupWork.add(watch) { noteStep in
      defer { onEnd() }
      guard answers(watch) else {
        check?.leaveOut(watch)
        return
      }
      do throws(InstarError) {
        try await work(noteStep)
      } catch {
        check?.noteFailure()
        // An interrupted check is made after the next start.
        if error.code != .interrupted { log.post(.problem(error)) }
      }
    }
  }

  /// Whether the file system of a watch answers.
  private func answers(_ watch: String) -> Bool {
    let watches = backupSettings.value.configuration.watches
    let folder = watches.first { $0.path == watch }?.folder ?? watch
    return !backupReader.answers(about: [folder]) { folder in
      // The kernel itself answers about a folder that is mounted, but not about its content.
      guard let stream = opendir(folder) else { return }
      _ = readdir(stream)
      closedir(stream)
    }.isEmpty
  }
}
