internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Makes the backup of a run durable, checks it, and reads from it what the store was.
///
/// The backup is a private file that nobody writes. So a run does this on a second processor while its stages work on
/// the clone. A damaged store is refused, whatever the stages made of its clone.
struct BackupCheck: Sendable {
  let file: String
  let run: String
  let store: String
  /// The pages of the store, which the backup must have too.
  let pageCount: Int64
  let layout: any StoreLayout
  let path: MigrationPath
  /// Whether the census needs broken links.
  let findsBroken: Bool
  let external: ExternalFiles

  /// What the store was.
  struct Result: Sendable {
    let census: StoreCensus
    /// The external values that its rows reference.
    let externalFiles: Set<String>
    let removedValues: RemovedValues
    let convertedValues: ConvertedValues
    /// Without what is known of the store's version.
    let manifest: BackupManifest
  }

  /// - Throws: `corruptStore` where the store is damaged; `backupFailed`.
  func perform() throws -> Result {
    try DurableFile.synchronizeFile(file)
    return try GuardedConnection.use(file, access: .immutable) { db in
      guard try Int64.fetchOne(db, sql: "PRAGMA page_count") == pageCount else {
        throw InstarError(
          .backupFailed, "cannot back up the store", cause: "the backup is shorter than the store",
          next: "run the same command again")
      }
      try StoreCheck.requireSound(db, "the store", path: store)
      let files = try ExternalFiles.references(db, layout)
      return Result(
        census: try StoreCensus(db, layout: layout, findsBroken: findsBroken),
        externalFiles: files,
        removedValues: try RemovedValues(db, layout: layout, path: path),
        convertedValues: try ConvertedValues(db, layout: layout, path: path),
        manifest: try BackupManifest(
          ofFile: file, run: run, store: store, format: path.first.format,
          externalFiles: files.filter(external.has).count))
    }
  }
}
