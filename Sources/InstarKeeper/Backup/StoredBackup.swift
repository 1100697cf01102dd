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

  var path: String { reference.path }
  var external: ExternalFiles { ExternalFiles.ofBackup(path) }

  /// Compares the backup with its manifest, and checks it with SQLite.
  ///
  /// - Throws: `missingBackup`; `unreadableStore` where this user cannot read it; `damagedBackup` with what differs, or
  ///   with the damage that its store already had.
  func verify() throws(InstarError) {
    do throws(InstarError) {
      try check()
    } catch {
      guard error.code == .missingBackup, let copy = copyElsewhere, (try? copy.check()) != nil
      else { throw error }
      var error = error
      error.cause += "; its copy '\(copy.path)' is sound"
      throw error
    }
    if let copy = copyElsewhere { try copy.check() }
  }

  /// Checks the backup alone, which may be a copy. The bytes in a compressed one must be those of the manifest, whose
  /// check stands for them: SQLite cannot read them there.
  ///
  /// - Parameter unfinished: A file that is to become the backup.
  func check(_ unfinished: String? = nil) throws(InstarError) {
    let file = unfinished ?? path
    guard isCompressed else {
      try verify(file)
      return
    }
    _ = try requireRegularFile(file)
    let manifest = try requireManifest()
    try requireFiles(manifest)
    let content: (digest: String, bytes: Int64)
    do throws(InstarError) {
      content = try PackedFile.digest(of: file, limit: manifest.bytes)
    } catch {
      throw error.code == .damagedBackup
        ? damaged(error.cause) : error.about(what, store: reference.store)
    }
    try require(manifest, bytes: content.bytes, hash: content.digest)
    try requireSound()
  }

  var isCompressed: Bool { path.hasSuffix(BackupManifest.compressedSuffix) }

  /// Replaces the contents of `target`, an existing file, by those of the backup, decompressed.
  func write(to target: String) throws {
    if isCompressed {
      try PackedFile.unpack(path, to: target, limit: try requireManifest().bytes)
    } else {
      try FileCopy.copy(path, to: target)
    }
  }

  /// The copy in another folder, as a backup of its own; `nil` without one.
  private var copyElsewhere: StoredBackup? {
    reference.copy.map(stored(at:))
  }

  /// The same backup in another place.
  func stored(at path: String) -> StoredBackup {
    var reference = reference
    reference.path = path
    reference.copy = nil
    return StoredBackup(reference: reference)
  }

  /// Returns the backup, or its copy where the backup is missing or damaged and the copy is sound.
  func usable() -> StoredBackup {
    guard let copy = copyElsewhere, (try? check()) == nil, (try? copy.check()) != nil else {
      return self
    }
    return copy
  }

  /// Checks a file that must have the backup's content: the backup itself, or a copy of it.
  ///
  /// - Returns: What the file contains.
  @discardableResult
  func verify(_ file: String) throws(InstarError) -> Contents {
    let bytes = try requireRegularFile(file)
    if let manifest = reference.manifest {
      try require(manifest, bytes: bytes)
      try require(manifest, bytes: bytes, hash: try FileDigest.ofFile(file))
      try requireFiles(manifest)
    }
    let contents: Contents
    do {
      contents = try GuardedConnection.use(file, access: .immutable) { db in
        try StoreCheck.requireQuickCheck(db, "the backup")
        return try Contents(db, source: reference.manifest?.versionSource, external: external)
      }
    } catch {
      throw unreadable(error)
    }
    try requireSound()
    return contents
  }

  /// - Returns: The size of the file.
  private func requireRegularFile(_ file: String) throws(InstarError) -> Int64 {
    var status = stat()
    guard lstat(file, &status) == 0 else { throw unusable(file, errno) }
    guard status.isRegular else {
      throw failure(.damagedBackup, "'\(file)' is not a regular file")
    }
    guard access(file, R_OK) == 0 else { throw unusable(file, errno) }
    return Int64(status.st_size)
  }

  private func require(
    _ manifest: BackupManifest, bytes: Int64, hash: String? = nil
  ) throws(InstarError) {
    guard bytes == manifest.bytes else {
      throw damaged("the backup has \(bytes) bytes; its manifest records \(manifest.bytes)")
    }
    guard let hash, hash != manifest.contentHash else { return }
    throw damaged(
      "the backup has the hash \(hash); its manifest records \(manifest.contentHash)")
  }

  private func requireFiles(_ manifest: BackupManifest) throws(InstarError) {
    let count = external.count(upTo: manifest.externalFiles)?.count ?? 0
    guard count >= manifest.externalFiles else {
      throw damaged(
        "the backup has \(count) files of large values; its manifest records "
          + "\(manifest.externalFiles)")
    }
  }

  private func requireSound() throws(InstarError) {
    guard let manifest = reference.manifest, !manifest.isSound else { return }
    throw damaged("the store was damaged when the backup was made: \(manifest.check)")
  }

  /// A copy is compressed only where there is a manifest to compare it with.
  func requireManifest() throws(InstarError) -> BackupManifest {
    guard let manifest = reference.manifest else {
      throw failure(.damagedBackup, "'\(path)': there is no manifest to compare it with")
    }
    return manifest
  }

  /// Copies the backup and the files of its external values to a path that does not exist. The copies have the mode of
  /// the store, so that an app of the store's group can use them; where the store is gone, only their owner can.
  ///
  /// - Throws: What `verify` throws; `outputFailed` where the path exists, has a log or journal beside it, or cannot be
  ///   written. Nothing is left at the path then.
  func copy(to target: String) throws(InstarError) {
    let what = "cannot copy the backup to '\(target)'"
    try requireFree(target, what)
    try check()
    let partial = "\(target).\(reference.run).part"
    do {
      let lock = try lockWaiting(what)
      defer { lock?.release() }
      defer { unlink(partial) }
      // A keeper that was killed left it: the name has the run in it, and this keeper has the backup's lock.
      unlink(partial)
      try RunFiles.makeFile(partial)
      try write(to: partial)
      let contents = try verify(partial)
      let mode = modeOfStore
      guard chmod(partial, mode) == 0 else {
        throw RunFiles.failure("cannot set the mode of '\(partial)'", errno)
      }
      try DurableFile.synchronizeFile(partial)
      let values = try external.copy(
        contents.externalFiles, besideFile: target, ofRun: reference.run, mode: mode)
      guard instar_rename_no_replace(AT_FDCWD, partial, AT_FDCWD, target) == 0 else {
        let code = errno
        values.remove()
        if code == EEXIST { throw taken(target, what) }
        throw RunFiles.failure(what, code)
      }
      try DurableFile.synchronizeFolder(target.parentFolder)
    } catch {
      var known = InstarError(error, what: what)
      known.what = what
      if known.code == .unreadableStore { known.code = .outputFailed }
      if known.code == .noSpace { known.next = Self.adviceOnSpace(for: target) }
      known.next = known.next ?? "choose a file in a folder that you can write, with enough space"
      throw known
    }
  }

  private var modeOfStore: mode_t {
    var status = stat()
    guard lstat(reference.store, &status) == 0, status.isRegular else {
      return 0o600
    }
    return status.st_mode & 0o666 | 0o600
  }

  /// Removes the backup with its copy, its manifest and the files of its external values. Does nothing where it is
  /// gone. A copy that is not there may be on a disk that is not mounted: the state folder lists it again when it is.
  ///
  /// - Throws: Why it cannot be removed. A backup that another process copies right now stays: nobody would remove that
  ///   copy.
  func remove() throws(InstarError) {
    let lock = access(path, F_OK) == 0 ? try lockUncopied() : nil
    defer { lock?.release() }
    try copyElsewhere?.remove()
    // A backup that cannot be removed keeps its manifest and its values.
    guard unlink(path) == 0 || errno == ENOENT else {
      throw RunFiles.failure("cannot remove the backup '\(path)'", errno)
    }
    removeFilesBeside()
  }

  /// Removes the manifest and the files of external values of a backup whose file is missing, and those of its copy if
  /// that is missing. Does nothing to one that exists, or may: its disk may have been mounted since somebody looked.
  func removeRemains() {
    copyElsewhere?.removeRemains()
    var status = stat()
    guard lstat(path, &status) != 0, [ENOENT, ENOTDIR].contains(errno) else { return }
    removeFilesBeside()
  }

  private func removeFilesBeside() {
    BackupFiles.removeFiles(beside: path)
    let folder = path.parentFolder
    // Succeeds only where nothing else is in it.
    if folder.lastName == InstarFolder.name { rmdir(folder) }
  }

  private func lockUncopied() throws(InstarError) -> FolderLock {
    if let lock = try FolderLock.tryLock(path) { return lock }
    throw inUse(.unreadableStore, "cannot remove the backup '\(path)'")
  }

  /// Another process has the backup locked.
  func inUse(_ code: InstarError.Code, _ what: String) -> InstarError {
    var error = InstarError(
      code, what, store: reference.store,
      cause: "another process is copying the backup to another folder",
      next: "wait until it has ended, then \(CommandText.repetition)")
    error.nameHolders(of: path, as: "the backup")
    return error
  }

  /// Checks that a copy can be made at a path, and that SQLite will read nothing but the copy there.
  private func requireFree(_ target: String, _ what: String) throws(InstarError) {
    var status = stat()
    guard lstat(target, &status) != 0 else { throw taken(target, what) }
    try Self.requireFolder(target.parentFolder, what, toName: "a path in ")
    // The log or journal of an app that was killed: SQLite would replay it onto the copy.
    let sideFiles = SideFile.paths(of: target).filter { lstat($0, &status) == 0 }
    guard !sideFiles.isEmpty else { return }
    let names = sideFiles.map { "'\($0)'" }.joined(separator: " and ")
    let moves = sideFiles.map { "mv \(CommandText.quoted($0)) \(CommandText.quoted($0 + ".old"))" }
    throw InstarError(
      .outputFailed, what,
      cause: "SQLite would treat \(names) of an earlier file as part of the copy, and damage it",
      next: "stop the app, then run: \(moves.joined(separator: " && ")); "
        + "then \(CommandText.repetition)")
  }

  /// - Parameter file: What the user names in the folder, in words before it; empty if that is the folder itself.
  static func requireFolder(
    _ folder: String, _ what: String, toName file: String = ""
  ) throws(InstarError) {
    var status = stat()
    if stat(folder, &status) != 0 {
      guard errno == ENOENT else {
        throw InstarError(
          .outputFailed, what, cause: "'\(folder)': \(String(cString: strerror(errno)))",
          next: "name \(file)another folder")
      }
      throw InstarError(
        .outputFailed, what, cause: "the folder '\(folder)' does not exist",
        next: "run: mkdir -p \(CommandText.quoted(folder)), then \(CommandText.repetition)")
    }
    guard status.isFolder else {
      throw InstarError(
        .outputFailed, what, cause: "'\(folder)' is not a folder",
        next: "name \(file)a folder instead")
    }
  }

  /// What to do where the disk of a copy is full, which need not be the store's.
  static func adviceOnSpace(for target: String) -> String {
    InstarError.adviceOnWriting(in: target.parentFolder, ENOSPC)
  }

  private func taken(_ target: String, _ what: String) -> InstarError {
    var status = stat()
    var ofStore = stat()
    if stat(target, &status) == 0, status.isFolder {
      return InstarError(
        .outputFailed, what, cause: "the path is a folder", next: "name a new file in that folder")
    }
    // Nobody is told to remove a file, which may be a live store.
    if stat(target, &status) == 0, stat(reference.store, &ofStore) == 0,
      status.st_dev == ofStore.st_dev, status.st_ino == ofStore.st_ino
    {
      return InstarError(
        .outputFailed, what, store: reference.store, cause: "the file is the store itself",
        next: "run: \(CommandText.restore(reference.store, run: reference.run))")
    }
    return InstarError(
      .outputFailed, what, cause: "the file exists", next: "choose a path that does not exist")
  }

  private var what: String { "cannot use the backup of run \(reference.run)" }

  private func unusable(_ file: String, _ code: Int32) -> InstarError {
    guard code == ENOENT || code == ENOTDIR else {
      return .unreadable(file, what, store: reference.store, code: code)
    }
    return failure(.missingBackup, "'\(file)': \(String(cString: strerror(code)))")
  }

  /// The error of a check of the backup's content that did not pass, or did not end.
  func unreadable(_ error: any Error) -> InstarError {
    var known = InstarError(error, what: what, store: path)
    guard !known.provesUnusableContent else { return damaged(known.cause) }
    known.store = reference.store
    return known
  }

  private func damaged(_ cause: String) -> InstarError {
    failure(.damagedBackup, "'\(path)': \(cause)")
  }

  private func failure(_ code: InstarError.Code, _ cause: String) -> InstarError {
    InstarError(
      code, what, store: reference.store, cause: cause,
      next: CommandText.findingBackup(of: reference.store))
  }
}
