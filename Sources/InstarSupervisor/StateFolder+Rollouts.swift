import Foundation
import InstarLinux
public import InstarSchema
import InstarWire

/// The rollouts: one file, which outlasts the daemon.
extension StateFolder {
  private var rolloutsFile: String { path + "/rollouts.json" }

  /// Returns the rollouts that an earlier daemon recorded, each with the stores that its runs migrated, and those whose
  /// last run failed.
  ///
  /// - Throws: `stateFolderFailed` where the file or the ledger cannot be read.
  public func rollouts() throws(InstarError) -> [(
    RolloutRecord, migrated: Set<String>, failed: Set<String>
  )] {
    guard access(rolloutsFile, F_OK) == 0 || errno != ENOENT else { return [] }
    let records: [RolloutRecord]
    do throws(InstarError) {
      records = try WireCoder.message([RolloutRecord].self, from: try read(rolloutsFile))
    } catch {
      throw InstarError(
        .stateFolderFailed, "cannot read the rollouts '\(rolloutsFile)'", cause: error.cause,
        next: "to start all rollouts again, move the file away, then run: systemctl restart instard"
      )
    }
    guard !records.isEmpty else { return [] }
    let runs = try history().reports
    return records.map { record in
      var migrated: Set<String> = []
      var failed: Set<String> = []
      for run in runs where record.covers(run) {
        switch run.result {
        case .migrated:
          migrated.insert(run.store)
          failed.remove(run.store)
        case .failed, .refused:
          migrated.remove(run.store)
          failed.insert(run.store)
        case .restored: migrated.remove(run.store)
        case .busy, .current, .rehearsed: break
        }
      }
      return (record, migrated, failed)
    }
  }

  /// Records the rollouts. They are on disk when this returns.
  public func setRollouts(_ records: [RolloutRecord]) throws(InstarError) {
    try DurableFile.write(try WireCoder.line(records), to: rolloutsFile, mode: 0o600, owner: owner)
  }
}

extension RolloutRecord {
  /// Whether a run is one of the rollout.
  fileprivate func covers(_ run: RunReport) -> Bool {
    run.startedAt >= began && (run.plan == plan && run.to == version || run.result == .restored)
  }
}
