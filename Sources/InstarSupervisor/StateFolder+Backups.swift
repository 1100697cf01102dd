import Foundation
public import InstarSchema
public import InstarWire

extension StateFolder {
  /// Returns the backups that the ledger knows, of one store or of all, oldest first. Their files may be gone.
  public func backups(of store: String? = nil) throws(InstarError) -> [BackupReference] {
    var known: [String: BackupReference] = [:]
    var order: [String] = []
    for report in try history(store: store).reports {
      guard let path = report.backup else { continue }
      // A recovery that was done twice has two lines.
      if known[report.run] == nil { order.append(report.run) }
      known[report.run] = BackupReference(
        run: report.run, store: report.store, path: path, manifest: report.manifest)
    }
    return order.compactMap { known[$0] }
  }

  /// Returns the backup of one run of a store, by default of the newest run that made one.
  ///
  /// - Throws: `missingBackup` where the ledger has none. Whether the file exists is found out when it is used.
  public func backup(of store: String, run: String?) throws(InstarError) -> BackupReference {
    let backups = try backups(of: store)
    if let found = run.map({ run in backups.last { $0.run == run } }) ?? backups.last {
      return found
    }
    throw InstarError(
      .missingBackup, "cannot restore '\(store)'", store: store,
      cause: run.map { "run \($0) of this store made no backup" }
        ?? "the ledger in '\(path)' has no run of this store that made a backup",
      state: "unchanged", next: "list the store's runs: instarctl history '\(store)'")
  }
}
