import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// Copying, removing and verifying backups, for one watch after the other. Its results are events of the journal;
/// nothing waits for them.
extension KeeperRequests {
  /// How many backups are verified at a time: over the days the sample meets each of them.
  private static let sampleSize = 20

  /// Copies the backup of a run that has just ended, if there is to be a copy. Then removes old backups of its store,
  /// where it has more than are kept.
  ///
  /// Their number is read from the folder: the ledger may have a line for each of 100,000 stores. The other limits are
  /// applied by `checkBackups`.
  ///
  /// - Parameter watch: The path of the store's watch.
  func keepBackups(of report: RunReport, in watch: String, _ retention: BackupRetention) {
    guard let stateFolder = supervisor.stateFolder else { return }
    add(watch) { (noteStep) throws(InstarError) in
      var copy: String?
      var recorded = report
      recorded.store = supervisor.keptPath(of: report.store).text
      try await supervisor.makeCopies(of: [ListedBackup(recorded)].compactMap(\.self)) {
        post($0, noteStep)
        if case .copied(let made) = $0.outcome { copy = made.path }
      }
      if let backup = ListedBackup(recorded, copy: copy) {
        metrics.noteBackup(backup.occupiedBytes, of: watch)
      }
      guard countedBackups.noteBackup(of: report.store) > retention.count else { return }
      // Not those of a store behind a link that the owner made since: they have another retention.
      let backups = try stateFolder.backups(of: recorded.store)
        .filter { $0.reference.store == recorded.store }
      let sizes = Dictionary(
        backups.map { ($0.reference.run, $0.occupiedBytes) }, uniquingKeysWith: { $1 })
      try await supervisor.prune(
        backups, keeping: retention, now: Date().timeIntervalSince1970
      ) { result in
        post(result, noteStep)
        if case .removed = result.outcome {
          metrics.noteBackup(sizes[result.backup.run] ?? 0, sign: -1, of: watch)
        }
      }
    }
  }

  /// Counts the backups of all watched stores, for the metrics. Reads the ledger, so it is not done for each reader.
  ///
  /// - Parameter realFolders: As of `Configuration.with(realFolders:)`.
  func countBackups(_ configuration: Configuration, realFolders: [String: String]) {
    guard let stateFolder = supervisor.stateFolder else { return }
    let resolved = configuration.with(realFolders: realFolders)
    for (path, watch) in zip(configuration.watches.map(\.path), resolved.watches) {
      add(path) { (_) throws(InstarError) in
        metrics.setBackups(try backups(of: watch, resolved, stateFolder), of: path)
      }
    }
  }

  private func backups(
    of watch: Configuration.Watch, _ configuration: Configuration, _ stateFolder: StateFolder
  ) throws(InstarError) -> [ListedBackup] {
    try stateFolder.backups(below: watch.folder) { configuration.watch(ofStore: $0) == watch }
  }

  /// Makes the copies that the runs of a store were to have: one was cut off before.
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
  /// Each watch is checked by itself: a file system that does not answer leaves out its own watches only, until it
  /// answers.
  ///
  /// - Parameter realFolders: As of `Configuration.with(realFolders:)`.
  func checkBackups(_ configuration: Configuration, realFolders: [String: String]) {
    guard let stateFolder = supervisor.stateFolder else { return }
    let resolved = configuration.with(realFolders: realFolders)
    let check = BackupCheck()
    metrics.keepBackups(ofWatches: Set(configuration.watches.map(\.path)))
    for (path, watch) in zip(configuration.watches.map(\.path), resolved.watches) {
      add(path, check) { (noteStep) throws(InstarError) in
        let left = try await keepBackups(of: watch, resolved, stateFolder, noteStep)
        metrics.setBackups(left, of: path)
        // A folder that is gone took its backups with it, or its file system is unmounted: no backup is damaged.
        let watched = left.filter {
          !$0.isMissing || FileManager.default.fileExists(atPath: $0.folder)
        }
        .map(\.reference)
        check.note(
          watch,
          BackupCheck.Kept(
            path: path, count: watched.count, trusted: watched.filter(supervisor.isTrusted)))
      }
    }
    // After the watches that answer.
    add(stateFolder.path) { (_) throws(InstarError) in
      for (path, sample) in check.sample(of: Self.sampleSize) {
        add(path, check) { (noteStep) throws(InstarError) in
          try await supervisor.verify(sample) { result in
            noteStep()
            let isSound = if case .sound = result.outcome { true } else { false }
            check.noteVerified(isSound: isSound)
            if !isSound { log.post(.backupHandled(result)) }
          }
        }
      }
      add(stateFolder.path) { (_) throws(InstarError) in
        try end(check, resolved, stateFolder)
      }
    }
  }

  /// Makes missing copies of the backups of a watch's stores, and removes old backups.
  ///
  /// - Returns: The backups that are left.
  private func keepBackups(
    of watch: Configuration.Watch, _ configuration: Configuration, _ stateFolder: StateFolder,
    _ noteStep: @Sendable () -> Void
  ) async throws(InstarError) -> [ListedBackup] {
    var listed = try backups(of: watch, configuration, stateFolder)
    var hasChanged = false
    try await supervisor.makeCopies(of: listed, in: configuration.copyFolder(ofStore:)) {
      post($0, noteStep)
      hasChanged = true
    }
    // The copies count.
    if hasChanged { listed = try backups(of: watch, configuration, stateFolder) }
    hasChanged = false
    try await supervisor.prune(
      listed, keeping: watch.backups ?? configuration.backups, now: Date().timeIntervalSince1970
    ) {
      post($0, noteStep)
      hasChanged = true
    }
    return hasChanged ? try backups(of: watch, configuration, stateFolder) : listed
  }

  private func end(
    _ check: BackupCheck, _ configuration: Configuration, _ stateFolder: StateFolder
  ) throws(InstarError) {
    guard !check.hasFailed else { return }
    try stateFolder.removeOldRuns(keeping: configuration.ledger.files) { store in
      configuration.watch(ofStore: store).map(check.hasEnded) ?? true
    }
    try stateFolder.noteBackupCheck()
    let (sound, sample, all) = check.result
    if sample > 0 { log.post(.backupsVerified(sound: sound, sample: sample, all: all)) }
  }

  private func post(_ result: BackupResult, _ noteStep: () -> Void) {
    noteStep()
    log.post(.backupHandled(result))
  }

  /// - Parameters:
  ///   - watch: The path of the watch that the work is about.
  ///   - check: That fails if the work does.
  private func add(
    _ watch: String, _ check: BackupCheck? = nil,
    _ work:
      @escaping @Sendable (_ noteStep: @escaping @Sendable () -> Void) async throws(InstarError) ->
      Void
  ) {
    backupWork.add(watch) { noteStep in
      do throws(InstarError) {
        try await work(noteStep)
      } catch {
        check?.noteFailure()
        // An interrupted check is made after the next start.
        if error.code != .interrupted { log.post(.problem(error)) }
      }
    }
  }
}

/// How far one regular check of backups has come. Its watches are those with folders as in a `StorePath`.
private final class BackupCheck: Sendable {
  /// The backups of a watch that were not removed.
  struct Kept {
    /// The path of the watch, as the configuration has it.
    var path: String
    var count: Int
    var trusted: [BackupReference]
  }

  private struct State {
    var kept: [Configuration.Watch: Kept] = [:]
    var (sound, verified) = (0, 0)
    var hasFailed = false
  }

  private let state = Mutex(State())

  /// Whether some work failed, or was interrupted.
  var hasFailed: Bool { state.withLock(\.hasFailed) }

  var result: (sound: Int, sample: Int, all: Int) {
    state.withLock { ($0.sound, $0.verified, $0.kept.values.map(\.count).reduce(0, +)) }
  }

  /// Whether copies were made and old backups removed: the file system of this watch answers.
  func hasEnded(_ watch: Configuration.Watch) -> Bool { state.withLock { $0.kept[watch] != nil } }

  func note(_ watch: Configuration.Watch, _ kept: Kept) { state.withLock { $0.kept[watch] = kept } }

  func noteFailure() { state.withLock { $0.hasFailed = true } }

  func noteVerified(isSound: Bool) {
    state.withLock { state in
      state.verified += 1
      if isSound { state.sound += 1 }
    }
  }

  /// Returns random backups by the path of their watch.
  func sample(of count: Int) -> [String: [BackupReference]] {
    let all = state.withLock { state in
      state.kept.values.flatMap { kept in kept.trusted.map { (path: kept.path, backup: $0) } }
    }
    return Dictionary(grouping: all.shuffled().prefix(count), by: \.path)
      .mapValues { $0.map(\.backup) }
  }
}
