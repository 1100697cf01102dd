import Foundation
import InstarLinux
public import InstarSchema
import InstarWire

/// The rollouts: one file, which outlasts the daemon.
extension StateFolder {
  private var rolloutsFile: String { path + "/rollouts.json" }

  /// Returns the rollouts that an earlier daemon recorded, each with what its runs made of each store.
  ///
  /// - Throws: `stateFolderFailed` where the file or the ledger cannot be read: nobody knows who may run then.
  public func rollouts() throws(InstarError) -> [(RolloutRecord, runs: [RolloutRun])] {
    let records = try rolloutRecords()
    guard let first = records.map(\.began).min() else { return [] }
    var runs = records.map { _ in [String: RolloutRun]() }
    try forEachRun(ofPlans: Set(records.map(\.plan)), since: first) { run in
      for index in records.indices where records[index].covers(run) {
        let began = runs[index][run.store]?.firstStartedAt ?? run.startedAt
        runs[index][run.store] = RolloutRun(run, firstStartedAt: began)
      }
    }
    return zip(records, runs).map { ($0, runs: Array($1.values)) }
  }

  /// Returns the rollouts that a daemon recorded, without their runs.
  ///
  /// - Throws: `stateFolderFailed` where the file cannot be read.
  public func rolloutRecords() throws(InstarError) -> [RolloutRecord] {
    guard access(rolloutsFile, F_OK) == 0 || errno != ENOENT else { return [] }
    let data = try read(rolloutsFile)
    guard let records = try? WireCoder.message([RolloutRecord].self, from: data) else {
      throw InstarError(
        .stateFolderFailed, "cannot read the rollouts '\(rolloutsFile)'",
        cause: "the file is damaged, or a newer release wrote it",
        next: "restore the file, and run: systemctl restart instard; "
          + "or start all rollouts again, without their halts and approvals: instarctl resume")
    }
    return records
  }

  /// Records the rollouts. They are on disk when this returns.
  public func setRollouts(_ records: [RolloutRecord]) throws(InstarError) {
    try DurableFile.write(try WireCoder.line(records), to: rolloutsFile, mode: 0o600, owner: owner)
  }
}

extension RolloutRecord {
  /// Whether a run is one of the rollout, or a restore after it.
  fileprivate func covers(_ run: LedgerRun) -> Bool {
    run.startedAt >= began && (run.plan == plan && run.to == version || run.result == .restored)
  }
}
