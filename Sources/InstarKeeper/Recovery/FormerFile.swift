internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The file that left the store's path in an exchange, and is the backup now, after the death of the keeper.
///
/// An app that waited in open(2) when the keeper was killed has this file open. SQLite refuses its writes, because the
/// path names another file, unless the app has turned its journal off or keeps it in memory. Then its writes are in the
/// backup, and not in the store. Nobody can bring them over, so the recovery says where they are.
struct FormerFile {
  /// What the file is now.
  let manifest: BackupManifest
  /// What the operator must know; empty where no app used the file since.
  private(set) var notes: [String] = []

  /// Reads the file while nobody else can open it, unless somebody has it open.
  ///
  /// - Parameter earlier: What the file was when it left.
  init(at path: String, earlier: BackupManifest) throws {
    var manifest = earlier
    if let lease = LeasedFile(opening: path) {
      defer { lease.release() }
      // By the leased descriptor: whoever opens the file, this process too, waits for the end of the lease.
      manifest.contentHash = try FileDigest.ofFile(lease.descriptor, path)
    } else {
      manifest.contentHash = try FileDigest.ofFile(path)
      notes.append(
        "a process still has the former file of the store open, which is the backup now: restart the apps "
          + "that use the store, because what they write to '\(path)' is not in the store")
    }
    if manifest.contentHash != earlier.contentHash {
      manifest.bytes = try FileCopy.size(of: path)
      manifest.check = Self.check(path)
      notes.append(
        "an app wrote to the former file of the store after the exchange, because its journal is off or in memory; "
          + "that file is the backup now, and the store lacks these writes; to use the content with them, "
          + "run: " + CommandText.restore(earlier.store, run: earlier.run))
    }
    self.manifest = manifest
  }

  private static func check(_ path: String) -> String {
    do {
      try GuardedConnection.use(path, access: .immutable) { db in
        try StoreCheck.requireQuickCheck(db, "the backup")
      }
      return BackupManifest.soundCheck
    } catch {
      return InstarError(error, what: "cannot read the backup").cause
    }
  }
}
