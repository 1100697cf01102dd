internal import CInstar
internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The backup of an earlier run, which is checked before anything is done with it.
struct StoredBackup {
  let reference: BackupReference

  /// What a checked backup contains.
  struct Contents {
    var format: StoreFormat
    var structure: StoreStructure
    /// The version that the backup declares.
    var version: Schema.Version?
    var versionSource: VersionSource
    var pageCount: Int64
    var pageSize: Int64
    /// The external values that its rows reference.
    var externalFiles: Set<String>

    var bytes: Int64 { pageCount * pageSize }

    /// - Parameter source: Where a plain store declares its version.
    init(_ db: Database, source: VersionSource?, external: ExternalFiles) throws {
      format = try StoreFormat(of: db)
      structure = try StoreStructure.read(db, format: format)
      versionSource = source ?? .userVersion
      version = try format.declaration(db, at: versionSource, in: structure).version
      pageCount = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      pageSize = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0
      externalFiles = try external.references(db, in: structure)
    }
  }

  private var path: String { reference.path }
  var external: ExternalFiles { ExternalFiles.ofBackup(path) }

  /// Compares the backup with its manifest, and checks it with SQLite.
  ///
  /// - Throws: `missingBackup`; `damagedBackup` with what differs.
  func verify() throws(InstarError) {
    try verify(path)
  }

  /// Checks a file that must have the backup's content: the backup itself, or a copy of it.
  ///
  /// - Returns: What the file contains.
  @discardableResult
  func verify(_ file: String) throws(InstarError) -> Contents {
    var status = stat()
    guard lstat(file, &status) == 0 else { throw missing(errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw damaged("'\(file)' is not a file") }
    if let manifest = reference.manifest {
      guard Int64(status.st_size) == manifest.bytes else {
        throw damaged("it has \(status.st_size) bytes; its manifest says \(manifest.bytes)")
      }
      let hash = try FileDigest.ofFile(file)
      guard hash == manifest.contentHash else {
        throw damaged("its content is \(hash); its manifest says \(manifest.contentHash)")
      }
      let count = external.count()?.count ?? 0
      guard count >= manifest.externalFiles else {
        throw damaged(
          "\(count) files with external values are beside it; its manifest says "
            + "\(manifest.externalFiles)")
      }
    }
    do {
      let connection = try GuardedConnection.open(file, access: .immutable)
      defer { try? connection.close() }
      return try connection.inDatabase { db in
        // A store that was damaged before the run has a damaged backup, which the manifest says.
        if reference.manifest?.isSound != false {
          try StoreCheck.requireQuickCheck(db, "the backup")
        }
        return try Contents(db, source: reference.manifest?.versionSource, external: external)
      }
    } catch {
      throw damaged(InstarError(error, what: "cannot read the backup").cause)
    }
  }

  /// Copies the backup and the files of its external values to a path that does not exist.
  ///
  /// - Throws: `missingBackup`, `damagedBackup`; `outputFailed` where the path exists or cannot be written. Nothing is
  ///   left at the path then.
  func copy(to target: String) throws(InstarError) {
    let contents = try verify(path)
    let what = "cannot copy the backup to '\(target)'"
    var status = stat()
    guard lstat(target, &status) != 0 else { throw Self.taken(target, what) }
    let partial = "\(target).\(reference.run).part"
    do {
      defer { unlink(partial) }
      try RunFolder.makeFile(partial)
      try FileCopy.copy(path, to: partial)
      try verify(partial)
      try DurableFile.synchronizeFile(partial)
      try external.copy(contents.externalFiles, besideFile: target)
      guard instar_rename_no_replace(AT_FDCWD, partial, AT_FDCWD, target) == 0 else {
        if errno == EEXIST { throw Self.taken(target, what) }
        throw RunFolder.failure(what, errno)
      }
      try DurableFile.synchronizeFolder((target as NSString).deletingLastPathComponent)
    } catch {
      var known = InstarError(error, what: what)
      known.what = what
      if known.code == .unreadableStore { known.code = .outputFailed }
      throw known
    }
  }

  /// Removes the backup with the files of its external values. Does nothing where it is gone.
  func remove() throws(InstarError) {
    guard unlink(path) == 0 || errno == ENOENT else {
      throw RunFolder.failure("cannot remove the backup '\(path)'", errno)
    }
    ExternalFiles.removeBackup(besideFile: path)
    let folder = (path as NSString).deletingLastPathComponent
    // Succeeds only where nothing else is in it.
    if folder.hasSuffix("/.instar") { rmdir(folder) }
  }

  private static func taken(_ target: String, _ what: String) -> InstarError {
    InstarError(
      .outputFailed, what, cause: "the file exists",
      next: "choose a path that does not exist, or remove the file")
  }

  private var what: String { "cannot use the backup of run \(reference.run)" }

  private func missing(_ code: Int32) -> InstarError {
    InstarError(
      .missingBackup, what, store: reference.store,
      cause: "'\(path)': \(String(cString: strerror(code)))",
      next: "choose another backup with --run; run: instarctl backups list '\(reference.store)'")
  }

  private func damaged(_ cause: String) -> InstarError {
    InstarError(
      .damagedBackup, what, store: reference.store, cause: "'\(path)': \(cause)",
      next: "choose another backup with --run; run: instarctl backups list '\(reference.store)'")
  }
}
