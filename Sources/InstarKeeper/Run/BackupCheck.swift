internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Checks the future backup of a run, and reads from it the census and the manifest of the store.
///
/// Nobody writes the backup meanwhile. So a run checks it on a second processor while its stages work on the clone, or
/// while the clone is verified; a short run checks it on its own thread. A damaged store ends the run, also if the
/// stages and the verification of the clone succeed.
struct BackupCheck: Sendable {
  let source: BackupSource
  /// The locked store that was copied, where this thread may read it; else `nil`.
  let original: StoreLock.LockedContent?
  let run: String
  let store: String
  /// The pages of the store, which the backup must have too.
  let pageCount: Int64
  /// The store's trees whose pages the clone need not have; `nil` where the two are not compared.
  let own: PageBaseline?
  let layout: any StoreLayout
  let path: MigrationPath
  /// Which links and foreign keys of the clone are checked.
  let references: CloneVerification.ReferenceCheck
  let policy: VerificationPolicy
  let external: ExternalFiles

  /// What was read of the store before the run.
  struct Result: Sendable {
    let census: StoreCensus
    /// The external values that its rows reference.
    let externalFiles: Set<String>
    let removedValues: RemovedValues
    /// Without the store's version.
    let manifest: BackupManifest
  }

  /// - Parameter hasSameRows: Waits for the answer whether the clone has the rows of the store on the same pages. Then
  ///   the indexes on these pages are checked in the clone, and not here.
  /// - Throws: `corruptStore` where the store is damaged; `backupFailed`; the error of `hasSameRows`.
  func perform(hasSameRows: () throws -> Bool = { false }) throws -> Result {
    switch source {
    case .copy(let file):
      // Beside the check, which reads the copy from the kernel's cache.
      let syncing = BackgroundWork(isSmall: pageCount < PageComparison.smallestPageCount) {
        try DurableFile.synchronizeFile(file)
      }
      defer { _ = syncing.failure() }
      let result = try checkCopy(file, hasSameRows)
      try syncing.wait()
      return result
    case .store(let content):
      let hash = try FileDigest.ofFile(content.descriptor, store)
      let bytes = try FileCopy.size(of: store)
      return try content.read { try check($0, bytes, hash, hasSameRows) }
    }
  }

  private func checkCopy(_ file: String, _ hasSameRows: () throws -> Bool) throws -> Result {
    let (bytes, hash) = (try FileCopy.size(of: file), try FileDigest.ofFile(file))
    // The connection that holds the lock has read the schema already. The copy has the same bytes, so a check of the
    // store is valid for the copy too.
    if let original, try FileDigest.ofFile(original.descriptor, store) == hash {
      return try original.read { try check($0, bytes, hash, hasSameRows) }
    }
    return try GuardedConnection.use(file, access: .immutable) {
      try check($0, bytes, hash, hasSameRows)
    }
  }

  private func check(
    _ db: Database, _ bytes: Int64, _ contentHash: String, _ hasSameRows: () throws -> Bool
  ) throws -> Result {
    guard try db.integer("PRAGMA page_count").map(Int64.init) == pageCount else {
      throw InstarError(
        .backupFailed, "cannot back up the store", cause: "the backup is shorter than the store",
        next: CommandText.repetition)
    }
    let sums = try StoreCheck.requireSound(
      db, "the store", path: store, summing: references.columns(db, layout),
      checksIndexes: { try !hasSameRows() })
    if let own, try hasSameRows() {
      try StoreCheck.requireIndexes(db, "the store", path: store, of: .only(own.tables))
    }
    if policy == .full { try StoreCheck.requireIntegrity(db, "the store", path: store) }
    let files = try ExternalFiles.references(db, layout)
    let present = external.measure(files)
    let census = try StoreCensus(
      db, layout: layout, removing: path.removedEntities, losing: path.relationshipLosers,
      queries: path.queriesBefore, sums: sums)
    return Result(
      census: census,
      externalFiles: files,
      removedValues: try RemovedValues(db, layout: layout, path: path),
      manifest: BackupManifest(
        run: run, store: store, madeAt: Date().timeIntervalSince1970, bytes: bytes,
        contentHash: contentHash, externalFiles: present.count, externalBytes: present.bytes,
        format: path.first.format))
  }
}
