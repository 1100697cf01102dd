import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// What became of one backup.
public struct BackupResult: Sendable {
  /// What was done, or found.
  public enum Outcome: Sendable {
    /// The backup is what its manifest says.
    case sound
    /// The backup was removed; with the reason.
    case removed(String)
    /// The backup would be removed, but nothing was: a dry run; with the reason.
    case surplus(String)
    /// The backup should be removed, and could not be.
    case kept(InstarError)
    /// The backup cannot be used.
    case failed(InstarError)
    /// A copy in another folder was made and read back.
    case copied(BackupCopy)
    /// The copy that the backup is to have could not be made.
    case notCopied(InstarError)
  }

  public var backup: BackupReference
  public var outcome: Outcome
}

extension Supervisor {
  /// Checks backups against their manifests and with SQLite's `quick_check`, one after the other.
  ///
  /// - Throws: `interrupted`. What is wrong with a backup is its result.
  public func verify(
    _ backups: [BackupReference], onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    for backup in backups {
      let failure = try await self.failure { () async throws(InstarError) in
        try await handle(backup, .verify)
      }
      onResult(BackupResult(backup: backup, outcome: failure.map { .failed($0) } ?? .sound))
    }
  }

  /// Removes the backups that a retention does not keep.
  ///
  /// Guarantees that a store whose backups are removed has one left that was just verified. Where no backup that would
  /// stay is sound, the newest sound one is kept in its place. Where none is sound, nothing is removed. A backup is
  /// sound if a restore can use it, whatever its copy is. The backups of a store with an open run are left alone: its
  /// recovery may need them. So are those that are not trusted (`isTrusted`).
  ///
  /// A copy is removed before its backup. If it cannot be removed, the backup stays. If it is not there, as on a disk
  /// that is not mounted, the backup is removed, and the copy is listed again as soon as it is there. If it is also the
  /// copy of another store's backup, which was not removed, it stays.
  ///
  /// - Parameters:
  ///   - backups: Those of all stores that share the retention's `totalBytes`, oldest first.
  ///   - now: In seconds since 1970.
  ///   - isDryRun: Whether nothing is removed, so that the results say what would be.
  ///   - isInForce: Whether the retention still applies to a store. It is asked before each removal.
  /// - Throws: `interrupted`, `stateFolderFailed`; `unreadableStore` where a file system does not answer. Why a backup
  ///   could not be removed is its result.
  public func prune(
    _ backups: [ListedBackup], keeping retention: BackupRetention, now: Double,
    isDryRun: Bool = false, while isInForce: (_ store: String) -> Bool = { _ in true },
    onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    let surplus = surplus(of: backups, keeping: retention, now: now)
    guard !surplus.isEmpty else { return }
    let copies = try stateFolder?.copies()
    let open = try openRuns().records
    var runs = OpenRuns(access: access, reader: reader)
    let stores = Set(
      backups.map(\.reference).filter { surplus[$0.identity] != nil }.map(\.store))
    for store in stores.sorted() {
      let path = StorePath(inLedger: store)
      guard isInForce(store), !open.contains(where: { runs.isOf(path, $0) }) else { continue }
      let ofStore = backups.filter {
        $0.reference.store == store && !$0.isMissing && isTrusted($0.reference)
      }
      try await prune(
        ofStore.map(\.reference), surplus, copies, isDryRun: isDryRun,
        while: { isInForce(store) }, onResult: onResult)
    }
  }

  /// Has the ledger list backups no longer whose file somebody deleted, and removes what is left of them: manifests and
  /// files of large values. A backup whose file is back stays.
  ///
  /// - Parameters:
  ///   - all: Whether all missing backups are forgotten, also where a disk may not be mounted.
  ///   - isDryRun: Whether nothing is removed, so that the results say what would be.
  /// - Throws: `interrupted`, `stateFolderFailed`.
  public func forgetDeleted(
    _ backups: [ListedBackup], orMissing all: Bool, isDryRun: Bool,
    onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    // All before the first removal, which also removes an empty folder.
    for backup in backups.filter({ all ? $0.isMissing : $0.isDeleted }).map(\.reference) {
      // Asked after the question about its folder: a disk may have been mounted since the backups were listed.
      guard Self.isMissing(backup) else { continue }
      try await remove(
        backup, .removeRemains,
        because: backup.copy == nil ? "its file is gone" : "its file and its copy are gone",
        isDryRun: isDryRun, onResult: onResult)
    }
  }

  private func surplus(
    of backups: [ListedBackup], keeping retention: BackupRetention, now: Double
  ) -> [BackupReference.Identity: String] {
    let present = backups.filter { !$0.isMissing }
    // The store's owner counts: a keeper that a store has taken over can name another user's file as its backup.
    let owners = Dictionary(
      Set(present.map(\.reference.store)).map { ($0, access.owner(of: $0)) },
      uniquingKeysWith: { $1 })
    return retention.surplus(
      of: present.map { backup in
        BackupRetention.Backup(
          run: backup.reference.run, store: backup.reference.store,
          owner: owners[backup.reference.store] ?? nil, madeAt: backup.madeAt,
          bytes: backup.occupiedBytes)
      }, now: now)
  }

  /// - Parameter backups: Those of one store, oldest first.
  private func prune(
    _ backups: [BackupReference], _ surplus: [BackupReference.Identity: String],
    _ copies: StateFolder.KeptCopies?, isDryRun: Bool, while isInForce: () -> Bool,
    onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    // Those that stay first, each group newest first.
    let order =
      backups.reversed().filter { surplus[$0.identity] == nil }
      + backups.reversed().filter { surplus[$0.identity] != nil }
    var lastGood: BackupReference?
    for backup in order {
      guard let error = try await failureToRestore(backup) else {
        lastGood = backup
        break
      }
      onResult(BackupResult(backup: backup, outcome: .failed(error)))
    }
    guard let lastGood else { return }
    for backup in backups {
      guard let reason = surplus[backup.identity], backup.run != lastGood.run else { continue }
      guard isInForce() else { return }
      var backup = backup
      if let stateFolder, let copies {
        backup = try stateFolder.removablePart(of: backup, copies)
      }
      try await remove(backup, because: reason, isDryRun: isDryRun, onResult: onResult)
    }
  }

  private static func isMissing(_ backup: BackupReference) -> Bool {
    ListedBackup(backup, madeAt: 0).isMissing
  }

  /// Removes a backup with its copy, or what is left of a missing one, and records that. A dry run only has the result.
  ///
  /// - Parameter work: `remove` or `removeRemains`.
  /// - Throws: `interrupted`, `stateFolderFailed`. Why the backup could not be removed is its result.
  private func remove(
    _ backup: BackupReference, _ work: BackupWork = .remove, because reason: String,
    isDryRun: Bool, onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    let outcome: BackupResult.Outcome
    // Asked before the removal: the keeper does not say whether it found the copy. That of a missing backup is
    // forgotten too.
    let leavesCopy =
      work == .remove && backup.copy != nil && ListedBackup(backup, madeAt: 0).copyBytes == nil
    if isDryRun {
      outcome = .surplus(reason)
    } else if let error = try await failure({ () async throws(InstarError) in
      try await remove(backup, work)
    }) {
      outcome = .kept(error)
    } else if work == .removeRemains, !Self.isMissing(backup) {
      // The file is back, and the keeper left it alone.
      return
    } else {
      stateFolder?.synchronizeRemovals(in: backup.path.parentFolder)
      try stateFolder?.noteRemoval(
        of: backup, why: reason, part: leavesCopy ? .allButCopy : .all)
      outcome = .removed(reason)
    }
    onResult(BackupResult(backup: backup, outcome: outcome))
  }

  /// Whether this supervisor works on a backup: nobody but the store's owner can have chosen its path.
  public func isTrusted(_ backup: BackupReference) -> Bool {
    (try? access.requireTrusted(backup)) != nil
  }

  /// - Returns: Why a restore cannot use the backup; `nil` if it can use it, or its copy if the backup is missing or
  ///   damaged.
  private func failureToRestore(
    _ backup: BackupReference
  ) async throws(InstarError) -> InstarError? {
    let error = try await failure { () async throws(InstarError) in
      try await handle(backup.withoutCopy, .verify)
    }
    guard let error, let copy = backup.ofCopy else { return error }
    let errorOfCopy = try await failure { () async throws(InstarError) in
      try await handle(copy, .verify, as: identity(forCopyOf: backup))
    }
    return errorOfCopy == nil ? nil : error
  }

  private func remove(
    _ backup: BackupReference, _ work: BackupWork
  ) async throws(InstarError) {
    let identity = try identity(forCopyOf: backup)
    if let copy = backup.ofCopy, try identity != access.identity(forRecoveryOf: backup.store) {
      // The owner can change the folder beside the store: root removes nothing there.
      try await handle(copy, work, as: identity)
      try await handle(backup.withoutCopy, work)
    } else {
      try await handle(backup, work)
    }
  }

  /// The user for work on the copy of a backup: root where the store's owner has no access.
  private func identity(
    forCopyOf backup: BackupReference
  ) throws(InstarError) -> ProcessIdentity {
    try access.requireTrusted(backup)
    guard let copy = backup.copy else { return try access.identity(forRecoveryOf: backup.store) }
    return try access.identity(forCopyOf: backup.store, to: copy)
  }

  /// - Returns: Why the work on a backup failed; `nil` if it succeeded.
  private func failure(
    _ work: () async throws(InstarError) -> Void
  ) async throws(InstarError) -> InstarError? {
    do throws(InstarError) {
      try await work()
      return nil
    } catch {
      if error.code == .interrupted { throw error }
      return stateFolder?.completing(error) ?? error
    }
  }
}
