import Foundation
import InstarLinux
public import InstarSchema
import InstarWire

/// What a keeper's advice leaves open. A keeper knows neither the state folder nor the backups in its ledger.
extension StateFolder {
  /// Completes the first `instarctl` command of a text about a store: the command must use this state folder too.
  /// Advises to restore a damaged store only where `restore` would do so.
  public func completing(_ text: String, store: String) -> String {
    completing(text, store: store) { remedy(of: store, backupRuns(of: store), $0) }
  }

  /// Completes the next step of an error.
  public func completing(_ error: InstarError) -> InstarError {
    completing(error) { remedy(of: $0, backupRuns(of: $0), $1) }
  }

  /// Completes the next step of an error with a remedy that the caller finds.
  ///
  /// - Parameter remedy: Called with the store where that is damaged. Of many damaged stores, not each may read the
  ///   ledger.
  func completing(
    _ error: InstarError, _ remedy: (_ store: String, CommandText.Damage) -> String?
  ) -> InstarError {
    guard let store = error.store, let next = error.next else { return error }
    var error = error
    error.next = completing(next, store: store) { remedy(store, $0) }
    return error
  }

  private func completing(
    _ text: String, store: String, _ remedy: (CommandText.Damage) -> String?
  ) -> String {
    var text = text
    for damage in CommandText.Damage.allCases where text.contains(damage.advice(on: store)) {
      guard let remedy = remedy(damage) else { continue }
      text = CommandText.completing(text, .remedy(remedy, damage, store: store))
      break
    }
    return naming(folderOf: store, in: text)
  }

  private func naming(folderOf store: String, in text: String) -> String {
    CommandText.completing(text, .stateFolder(option: option, store: store))
  }
}

/// The advice on damaged stores: which backup to restore, and how.
extension StateFolder {
  /// Returns what to do about each of some damaged stores: to restore a backup only where `restore` would do so. The
  /// commands use this state folder. Reads the ledger once.
  public func adviceOnDamage(of stores: [String]) -> [String: String] {
    let runs = stores.count == 1 ? backupRuns(of: stores[0]) : backupRuns()
    let advice = stores.map { store in
      let remedy = remedy(of: store, runs, .content) ?? CommandText.restoring(store)
      return (store, naming(folderOf: store, in: remedy))
    }
    return Dictionary(advice, uniquingKeysWith: { $1 })
  }

  /// What the ledger says about backups. Nothing was asked about the files of any store.
  struct BackupRuns: Sendable {
    /// What the advice needs of the report of a run that left a backup. A large ledger has more reports than fit in
    /// memory.
    fileprivate struct Entry {
      let run: String
      let backup: String
      let copy: String?
      let madeAt: Double
    }

    /// The runs that left a backup, by the path of their store.
    fileprivate var runs: [String: [Entry]] = [:]
    /// The manifests of the backups of damaged stores.
    fileprivate var damaged: [BackupReference.Identity: BackupManifest] = [:]
    fileprivate var copies = KeptCopies([])
    fileprivate var removed: Set<BackupReference.Identity> = []
    /// `false` where the ledger cannot be read.
    fileprivate var areKnown = true

    fileprivate mutating func add(_ report: RunReport) {
      guard let backup = report.backup else { return }
      let madeAt = report.manifest?.madeAt ?? report.startedAt
      runs[report.store, default: []].append(
        Entry(run: report.run, backup: backup, copy: report.backupCopy, madeAt: madeAt))
      let identity = BackupReference.Identity(run: report.run, store: report.store)
      damaged[identity] = report.manifest.flatMap { $0.isSound ? nil : $0 }
    }

    /// Returns the backups of a store. Asks about their files.
    fileprivate func backups(of store: String) -> [ListedBackup] {
      (runs[store] ?? []).map { entry in
        let reference = BackupReference(
          run: entry.run, store: store, path: entry.backup,
          manifest: damaged[.init(run: entry.run, store: store)],
          copy: copies.path(ofRun: entry.run, of: store) ?? entry.copy)
        return ListedBackup(reference, madeAt: entry.madeAt)
      }
    }
  }

  /// Reads the ledger once, for the advice on one damaged store or on several.
  func backupRuns(of store: String? = nil) -> BackupRuns {
    var runs = BackupRuns()
    do throws(InstarError) {
      runs.copies = try copies()
      runs.removed = try removedBackups()
      let path = store.map { StorePath($0).text }
      var keys: [Data]?
      if let path { keys = [Data("\"store\":".utf8) + (try WireCoder.line(path).dropLast())] }
      try forEachRunWithBackup(inLinesWith: keys, where: { path == nil || path == $0 }) {
        runs.add($0)
      }
    } catch {
      // `restore` says why.
      runs.areKnown = false
    }
    return runs
  }

  /// Returns what to do about one store, without the state folder; `nil` if that is what the keeper says.
  func remedy(of store: String, _ runs: BackupRuns, _ damage: CommandText.Damage) -> String? {
    // `restore` says why they are not.
    guard runs.areKnown else { return nil }
    let path = StorePath(store).text
    var listed = LedgerBackups(copies: runs.copies, removed: runs.removed)
    for backup in runs.backups(of: path) { listed.add(backup) }
    // Among thousands of stores there may be hundreds of other files, and each would have the folder listed again.
    let own =
      damage == .unknownFile
      ? listed.all : Self.addingFound(to: listed.all, of: [path], runs.copies)
    guard let usable = own.last(where: \.isRestorable) else {
      return damage == .unknownFile ? nil : CommandText.restoringOwnBackup
    }
    let run = usable.reference.run
    switch damage {
    case .content: return usable == own.last ? nil : CommandText.restoring(store, run: run)
    case .file: return CommandText.replacement(of: store, byBackupOf: run)
    case .unknownFile:
      // It may be the new store of an app, which has written nothing yet.
      return "if it was a store, \(CommandText.replacement(of: store, byBackupOf: run))"
    }
  }
}
