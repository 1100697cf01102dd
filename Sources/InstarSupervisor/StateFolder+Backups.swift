import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// Backups, as the ledger knows them, and as their manifests beside the stores do: a ledger may be lost, and a store
/// may have been migrated with another state folder. `ledger/removed.jsonl` names those that were removed on purpose,
/// one a line, and `ledger/copies.jsonl` the copies in other folders that were read back. A removed backup whose copy
/// exists again, because its disk was not mounted, is listed again.
///
/// A line of either file is about one run of one store. A tree of stores that was copied with its folders `.instar` has
/// backups of the same runs, and in one folder for copies these have the same file as their copy.
extension StateFolder {
  /// Returns the backups of one store, or of all that the ledger names, oldest first, without those that were removed
  /// on purpose.
  public func backups(of store: String? = nil) throws(InstarError) -> [ListedBackup] {
    try backups(ofStores: store.map { [StorePath($0).text] })
  }

  /// Returns the backups of several stores, oldest first, without those that were removed on purpose. Reads the ledger
  /// once.
  public func backups(ofAll stores: [String]) throws(InstarError) -> [ListedBackup] {
    try backups(ofStores: Set(stores.map { StorePath($0).text }))
  }

  /// Returns the backups of the stores below a folder that are wanted, oldest first, without those that were removed on
  /// purpose. Asks nothing about other stores, whose file system may not answer.
  ///
  /// - Parameters:
  ///   - folder: As a `StorePath` has it.
  ///   - isWanted: Called with the paths of stores as the ledger has them.
  public func backups(
    below folder: String, where isWanted: (_ store: String) -> Bool
  ) throws(InstarError) -> [ListedBackup] {
    // Without the end of the line and the quotation mark.
    let path = try WireCoder.line(folder == "/" ? folder : folder + "/").dropLast(2)
    return try backups(inLinesWith: [Data("\"store\":".utf8) + path], of: nil, where: isWanted)
  }

  /// - Parameter wanted: Their paths, as a `StorePath` has them; `nil` for all that the ledger names.
  private func backups(ofStores wanted: Set<String>?) throws(InstarError) -> [ListedBackup] {
    var keys: [Data]?
    // To search a line for more paths takes longer than to decode it.
    if let wanted, wanted.count <= 32 {
      keys = []
      for store in wanted {
        keys?.append(Data("\"store\":".utf8) + (try WireCoder.line(store).dropLast()))
      }
    }
    return try backups(inLinesWith: keys, of: wanted) { wanted?.contains($0) != false }
  }

  /// - Parameters:
  ///   - keys: As of `forEachRunWithBackup`.
  ///   - stores: Beside which backups are also looked for; `nil` for the wanted ones in the ledger.
  private func backups(
    inLinesWith keys: [Data]?, of stores: Set<String>?, where isWanted: (String) -> Bool
  ) throws(InstarError) -> [ListedBackup] {
    let copies = try copies()
    var inLedger = LedgerBackups(copies: copies, removed: try removedBackups())
    try forEachRunWithBackup(inLinesWith: keys, where: isWanted) { inLedger.add($0) }
    let listed = inLedger.all
    return Self.addingFound(
      to: listed, of: stores ?? Set(listed.map(\.reference.store)), copies)
  }

  /// Adds the backups beside stores that the ledger does not have.
  static func addingFound(
    to listed: [ListedBackup], of stores: Set<String>, _ copies: KeptCopies
  ) -> [ListedBackup] {
    // Of a tree that was moved, the ledger has the same runs under the old paths.
    let known = Set(listed.map(\.reference.identity))
    let found = FoundBackups(stores: stores).all
      .filter { !known.contains($0.reference.identity) }
      .map { backup in
        var reference = backup.reference
        reference.copy = copies.path(ofRun: reference.run, of: reference.store)
        return ListedBackup(reference, madeAt: backup.madeAt)
      }
    return merge(listed, found)
  }

  /// The backups of runs in the order of the ledger. A large ledger has more reports than fit in memory.
  struct LedgerBackups {
    let copies: KeptCopies
    let removed: Set<BackupReference.Identity>
    private var known: [String: ListedBackup] = [:]
    private var order: [String] = []

    init(copies: KeptCopies, removed: Set<BackupReference.Identity>) {
      self.copies = copies
      self.removed = removed
    }

    var all: [ListedBackup] { order.compactMap { known[$0] } }

    mutating func add(_ report: RunReport) {
      let copy = copies.path(ofRun: report.run, of: report.store)
      if let backup = ListedBackup(report, copy: copy) { add(backup) }
    }

    mutating func add(_ backup: ListedBackup) {
      guard StateFolder.isListed(backup, copies, without: removed) else { return }
      let run = backup.reference.run
      // A recovery that could not end its journal has a second line.
      if known[run] == nil { order.append(run) }
      known[run] = backup
    }
  }

  /// Whether a backup was not removed.
  private static func isListed(
    _ backup: ListedBackup, _ copies: KeptCopies, without removed: Set<BackupReference.Identity>
  ) -> Bool {
    guard removed.contains(backup.reference.identity) else { return true }
    // A copy whose disk was not mounted when its backup was removed is still to be removed, unless another store needs
    // it.
    let isLast = removed.isSuperset(of: copies.others(withCopyOf: backup.reference))
    return backup.copyBytes != nil && isLast
  }

  /// Merges two lists. Each stays in its own order, that of the runs: a clock may have been set back.
  private static func merge(_ first: [ListedBackup], _ second: [ListedBackup]) -> [ListedBackup] {
    var merged: [ListedBackup] = []
    var rest = second[...]
    for backup in first {
      while let next = rest.first, next.madeAt < backup.madeAt {
        merged.append(next)
        rest.removeFirst()
      }
      merged.append(backup)
    }
    return merged + rest
  }

  /// Returns the backup of one run of a store, by default of the newest run that made one.
  ///
  /// - Throws: `missingBackup` where there is none; `damagedBackup` where the newest one is of a damaged store, so that
  ///   nobody restores an older one unawares. Whether the file exists is found out when it is used.
  public func backup(of store: String, run: String?) throws(InstarError) -> BackupReference {
    let backups = try backups(of: store)
    if let run, let found = backups.last(where: { $0.reference.run == run }) {
      return found.reference
    }
    if run == nil, let newest = backups.last?.reference {
      guard let damage = newest.damage else { return newest }
      let usable = backups.last(where: \.isRestorable)
      throw completing(Self.damaged(newest, damage, older: usable?.reference))
    }
    let error = InstarError(
      .missingBackup, "cannot restore '\(store)'", store: store,
      cause: run.map { "the backup of run \($0) is not in the ledger, or was removed" }
        ?? "neither the ledger in '\(path)' nor the folder '.instar' beside the store has a backup of it",
      state: "unchanged",
      next: run == nil
        ? Self.adviceOnLedger(CommandText.quoted(store))
        : "to list the backups, run: instarctl backups list \(CommandText.quoted(store))")
    // The advice without a run is about other state folders.
    throw run == nil ? error : completing(error)
  }

  /// Where the ledger with the backups of a store may be. Only root can read the one of the service.
  private static func adviceOnLedger(_ store: String) -> String {
    let moved =
      "if the store was moved, run with its old path: instarctl restore --to FILE OLD; else "
    let folder =
      "pass the state folder of the instard that migrated the store: instarctl restore --state-dir FOLDER \(store)"
    return moved
      + (geteuid() == 0 ? folder : "run as root: instarctl restore \(store); or \(folder)")
  }

  private static func damaged(
    _ backup: BackupReference, _ damage: String, older: BackupReference?
  ) -> InstarError {
    InstarError(
      .damagedBackup, "cannot restore '\(backup.store)'", store: backup.store,
      cause: "the newest backup, of run \(backup.run), is of a store that was damaged: \(damage)",
      state: "unchanged",
      next: older.map {
        "to restore the newest sound backup, run: \(CommandText.restore(backup.store, run: $0.run))"
      } ?? "to list the backups, run: instarctl backups list \(CommandText.quoted(backup.store))")
  }
}
