import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Copying, removing and verifying backups. Its results are events of the journal; nothing waits for them.
extension KeeperRequests {
  /// How many backups are verified at a time: over the days the sample meets each of them.
  private static let sampleSize = 20

  /// Copies the backup of a run that has just ended, if there is to be a copy. Then removes old backups of its store,
  /// where it has more than are kept.
  ///
  /// Their number is read from the folder: the ledger may have a line for each of 100,000 stores. The other limits are
  /// applied by `checkBackups`.
  func keepBackups(of report: RunReport, _ retention: BackupRetention) {
    guard let stateFolder = supervisor.stateFolder else { return }
    background.add {
      await self.report { () async throws(InstarError) in
        var copy: String?
        var recorded = report
        recorded.store = supervisor.keptPath(of: report.store).text
        try await supervisor.makeCopies(of: [ListedBackup(recorded)].compactMap(\.self)) {
          log.post(.backupHandled($0))
          if case .copied(let made) = $0.outcome { copy = made.path }
        }
        if let backup = ListedBackup(recorded, copy: copy) {
          metrics.noteBackup(backup.occupiedBytes)
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
          log.post(.backupHandled(result))
          if case .removed = result.outcome {
            metrics.noteBackup(sizes[result.backup.run] ?? 0, sign: -1)
          }
        }
      }
    }
  }

  /// Counts the backups of all watched stores, for the metrics. Reads the ledger, so it is not done for each reader.
  func countBackups(_ configuration: Configuration) {
    guard let stateFolder = supervisor.stateFolder else { return }
    background.add {
      let configuration = configuration.withResolvedFolders
      await report { () async throws(InstarError) in
        metrics.setBackups(try watchedBackups(stateFolder, configuration))
      }
    }
  }

  private func watchedBackups(
    _ stateFolder: StateFolder, _ configuration: Configuration
  ) throws(InstarError) -> [ListedBackup] {
    try stateFolder.backups().filter { configuration.watch(ofStore: $0.reference.store) != nil }
  }

  /// Makes the copies that the runs of a store were to have: one was cut off before.
  func copyBackups(of store: String) {
    guard let stateFolder = supervisor.stateFolder else { return }
    background.add {
      await report { () async throws(InstarError) in
        try await supervisor.makeCopies(of: try stateFolder.backups(of: store)) {
          log.post(.backupHandled($0))
        }
      }
    }
  }

  /// Makes missing copies of the backups of all watched stores, removes old backups, verifies a random sample of the
  /// others, and removes old files of the ledger.
  func checkBackups(_ configuration: Configuration) {
    guard let stateFolder = supervisor.stateFolder else { return }
    background.add {
      let configuration = configuration.withResolvedFolders
      await report { () async throws(InstarError) in
        let all = try watchedBackups(stateFolder, configuration)
        try await supervisor.makeCopies(of: all, in: configuration.copyFolder(ofStore:)) {
          log.post(.backupHandled($0))
        }
        // Again: the copies count.
        let backups = try stateFolder.backups()
        let byWatch = Dictionary(
          grouping: backups, by: { configuration.watch(ofStore: $0.reference.store) })
        for (watch, ofWatch) in byWatch {
          guard let watch else { continue }
          try await supervisor.prune(
            ofWatch, keeping: watch.backups ?? configuration.backups,
            now: Date().timeIntervalSince1970
          ) { log.post(.backupHandled($0)) }
        }
        let left = try watchedBackups(stateFolder, configuration)
        metrics.setBackups(left)
        // A folder that is gone took its backups with it, or its file system is unmounted: no backup is damaged.
        let watched = left.filter {
          !$0.isMissing || FileManager.default.fileExists(atPath: $0.folder)
        }
        .map(\.reference)
        let sample = Array(
          watched.shuffled().lazy.filter(supervisor.isTrusted).prefix(Self.sampleSize))
        var sound = 0
        try await supervisor.verify(sample) { result in
          if case .sound = result.outcome { sound += 1 } else { log.post(.backupHandled(result)) }
        }
        try stateFolder.removeOldRuns(keeping: configuration.ledger.files)
        try stateFolder.noteBackupCheck()
        guard !sample.isEmpty else { return }
        log.post(.backupsVerified(sound: sound, sample: sample.count, all: watched.count))
      }
    }
  }

  private func report(_ body: () async throws(InstarError) -> Void) async {
    do throws(InstarError) {
      try await body()
    } catch {
      // An interrupted check is made after the next start.
      if error.code != .interrupted { log.post(.problem(error)) }
    }
  }
}
