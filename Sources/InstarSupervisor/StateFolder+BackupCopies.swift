import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// The copies of backups in other folders: `ledger/copies.jsonl`.
extension StateFolder {
  struct CopyRecord: Codable {
    var run: String
    var store: String
    var madeAt: Double
    var copy: BackupCopy

    var identity: BackupReference.Identity { .init(run: run, store: store) }
  }

  /// The copies that were read back. The last line about a run of a store counts.
  struct KeptCopies {
    /// By run, one for each store.
    private var records: [String: [CopyRecord]] = [:]

    init(_ records: [CopyRecord]) {
      for record in records {
        self.records[record.run, default: []].removeAll { $0.store == record.store }
        self.records[record.run, default: []].append(record)
      }
    }

    private func record(of backup: BackupReference.Identity) -> CopyRecord? {
      guard let ofRun = records[backup.run] else { return nil }
      if let record = ofRun.first(where: { $0.store == backup.store }) { return record }
      let store = StorePath(backup.store).text
      return ofRun.first { $0.store == store }
    }

    /// Returns the path of a backup's copy; `nil` where none was recorded.
    func path(ofRun run: String, of store: String) -> String? {
      record(of: .init(run: run, store: store))?.copy.path
    }

    /// The same for a store by its path in the ledger, which is not resolved again: its file system may not answer.
    func path(ofRun run: String, inLedger store: String) -> String? {
      records[run]?.first { $0.store == store }?.copy.path
    }

    /// Returns the backups of other stores whose copy is the same file.
    func others(withCopyOf backup: BackupReference) -> [BackupReference.Identity] {
      guard let copy = backup.copy, let ofRun = records[backup.run], ofRun.count > 1 else {
        return []
      }
      let own = record(of: backup.identity)?.store
      return ofRun.filter { $0.store != own && Self.isSameFile($0.copy.path, copy) }
        .map(\.identity)
    }

    /// The folder for copies may be spelled with a symbolic link.
    private static func isSameFile(_ path: String, _ other: String) -> Bool {
      if path == other { return true }
      var (first, second) = (stat(), stat())
      return lstat(path, &first) == 0 && lstat(other, &second) == 0
        && FileIdentity(first) == FileIdentity(second)
    }
  }

  var copiesFile: String { ledger + "/copies.jsonl" }

  /// Records that a copy of a backup was read back.
  func noteCopy(_ copy: BackupCopy, of backup: BackupReference) throws(InstarError) {
    let record = CopyRecord(
      run: backup.run, store: StorePath(backup.store).text,
      madeAt: Date().timeIntervalSince1970, copy: copy)
    let line = try WireCoder.line(record)
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    try DurableFile.append(line: line, to: copiesFile, mode: 0o600, owner: owner)
  }

  func copies() throws(InstarError) -> KeptCopies {
    guard access(copiesFile, F_OK) == 0 else { return KeptCopies([]) }
    // A line that a crash cut off is that of a copy that is read back and recorded again.
    return KeptCopies(
      try read(copiesFile).split(separator: 0x0A).compactMap {
        try? WireCoder.message(CopyRecord.self, from: Data($0))
      })
  }

  /// Returns what is to be removed of a backup: not its copy, while that is the copy of another store's backup which
  /// was not removed.
  func removablePart(
    of backup: BackupReference, _ copies: KeptCopies
  ) throws(InstarError) -> BackupReference {
    let others = copies.others(withCopyOf: backup)
    guard !others.isEmpty else { return backup }
    return try removedBackups().isSuperset(of: others) ? backup : backup.withoutCopy
  }
}
