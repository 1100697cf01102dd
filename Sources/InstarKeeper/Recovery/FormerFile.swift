internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The file that left the store's path in an exchange, and is the backup now, after the death of the keeper.
///
/// An app that waited in open(2) when the keeper was killed has this file open (see `StaleFile`). Until the recovery
/// locks it, SQLite refuses the app's writes, because the path names another file. But an app that has turned its
/// journal off, or keeps it in memory, writes to the backup. And an app that finds a journal or a log of the store
/// plays it back or copies it into the backup. Nobody can bring that over, so the recovery says that it happened.
struct FormerFile {
  /// The manifest of the file as it is now.
  let manifest: BackupManifest
  /// What the operator must know; empty where no app used the file since.
  private(set) var notes: [String] = []

  /// Reads the file while nobody else can open it, unless somebody has it open.
  ///
  /// - Parameter earlier: The manifest of the file when it left.
  init(at path: String, earlier: BackupManifest) throws {
    var manifest = earlier
    if let lease = LeasedFile(opening: path) {
      defer { lease.release() }
      // By the leased descriptor: whoever opens the file, this process too, waits for the end of the lease.
      manifest.contentHash = try FileDigest.ofFile(lease.descriptor, path)
    } else {
      // The recovery has locked the file and says who has it open.
      manifest.contentHash = try FileDigest.ofFile(path)
    }
    if manifest.contentHash != earlier.contentHash {
      manifest.bytes = try FileCopy.size(of: path)
      let check = Result { () throws(InstarError) in try Self.check(path) }
      var note =
        "an app that had the store's old file open changed it after the exchange; that file is now the backup, "
        + "and the store lacks what the app wrote there"
      if case .success(BackupManifest.soundCheck) = check {
        note +=
          "; to replace the store's whole content with the backup, run: "
          + CommandText.restore(earlier.store, run: earlier.run)
      }
      notes.append(note)
      switch check {
      case .success(let text): manifest.check = text
      case .failure(let error):
        // The earlier check stays: a restore checks the file again, and refuses one that is recorded as damaged.
        notes.append(
          "SQLite could not check that file: \(error.cause); to check it, run: "
            + "instarctl backups verify \(CommandText.quoted(earlier.store))")
      }
    }
    self.manifest = manifest
  }

  /// - Throws: The error of a check that did not end, which proves no damage.
  private static func check(_ path: String) throws(InstarError) -> String {
    do {
      try GuardedConnection.use(path, access: .immutable) { db in
        try StoreCheck.requireQuickCheck(db, "the backup")
      }
      return BackupManifest.soundCheck
    } catch {
      let known = InstarError(error, what: "cannot read the backup")
      guard known.provesUnusableContent else { throw known }
      return known.cause
    }
  }
}
