internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// The files of a run, which it removes at its end.
///
/// - Where the clone is a file: the folder `.instar/run-RUN/`. The keeper locks it for its lifetime. It creates the
///   clone, whose name tells whose run it is, only after that. So a run folder that has a clone and can be locked
///   belongs to a dead run.
/// - Where it is the store itself, in a transaction: the copy of the store that becomes the backup,
///   `.instar/NAME.RUN.copy`. The keeper locks this file, also after it has the name of a backup. So a copy that can be
///   locked belongs to a dead run.
final class RunFiles {
  let paths: StorePaths
  let run: String
  let clone: Clone
  /// The copy of the store that becomes the backup.
  let backup: String
  private let lock: FolderLock

  var path: String { paths.runFolder(run) }
  var cloneFolder: String { path + "/clone" }
  /// The path of a clone that is a file.
  var cloneFile: String { paths.clone(run) }

  /// Makes the files, all empty, after removing those of dead runs of the same store. No backup is made beside a clone
  /// that is a file: a store that is exchanged has none.
  ///
  /// - Parameter transaction: The transaction of a run without a clone.
  init(
    _ paths: StorePaths, run: String, transaction: StoreTransaction? = nil,
    names: RunFileNames = RunFileNames()
  ) throws {
    self.paths = paths
    self.run = run
    try Self.makeInstarFolder(paths)
    Self.sweep(paths, names)
    if let transaction {
      backup = paths.copy(run)
      clone = .transaction(transaction)
      lock = try Self.makeBackup(backup, in: paths)
    } else {
      backup = paths.runFolder(run) + "/backup"
      clone = .file(paths.clone(run))
      lock = try Self.makeFolder(paths, run: run)
    }
  }

  private static func makeFolder(_ paths: StorePaths, run: String) throws -> FolderLock {
    let path = paths.runFolder(run)
    try make(path, in: paths) { mkdir(path, 0o700) == 0 }
    // Nobody else removes a folder without a clone.
    do {
      return try fill(path, with: paths.name)
    } catch {
      FolderRemoval.remove(path)
      rmdir(paths.instarFolder)
      throw error
    }
  }

  private static func makeBackup(_ path: String, in paths: StorePaths) throws -> FolderLock {
    try make(path, in: paths) {
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
      if descriptor >= 0 { close(descriptor) }
      return descriptor >= 0
    }
    do {
      // A rehearsal of the store may have removed the file before it was locked.
      guard let lock = try FolderLock.tryLock(path), lock.isStillAt(path) else {
        throw lockedByOtherKeeper(path)
      }
      return lock
    } catch {
      unlink(path)
      rmdir(paths.instarFolder)
      throw error
    }
  }

  /// A run of a store beside this one removes `.instar/` when it is empty, at any instant before this run has a folder
  /// or file there: then both are made again.
  ///
  /// - Parameter attempt: Makes the folder or file; sets `errno` where it returns `false`.
  private static func make(_ path: String, in paths: StorePaths, _ attempt: () -> Bool) throws {
    var code: Int32 = 0
    for _ in 1...makingAttempts {
      if attempt() { return }
      code = errno
      guard code == ENOENT else { break }
      try makeInstarFolder(paths)
    }
    rmdir(paths.instarFolder)
    throw failure("cannot create '\(path)'", code)
  }

  /// Far more than enough: an attempt fails only if another run ends in that instant.
  private static let makingAttempts = 1000

  private static func fill(_ path: String, with name: String) throws -> FolderLock {
    guard let lock = try FolderLock.tryLock(path) else { throw lockedByOtherKeeper(path) }
    guard mkdir(path + "/clone", 0o700) == 0 else {
      throw failure("cannot create '\(path)/clone'", errno)
    }
    try makeFile(path + "/clone/" + name)
    return lock
  }

  private static func lockedByOtherKeeper(_ path: String) -> InstarError {
    InstarError(
      .busyStore, "cannot start a run", cause: "another keeper has locked '\(path)'",
      next: "wait until the other run has ended, then \(CommandText.repetition)")
  }

  /// Removes the files, and `.instar/` where that is empty then. If the store's folder was renamed meanwhile, both are
  /// in it. A backup that has its final name stays.
  func remove() {
    let made: String
    switch clone {
    case .file: made = path
    case .transaction: made = backup
    }
    let name = made.lastName
    let present =
      lock.presentPath.flatMap { $0.hasSuffix("/\(InstarFolder.name)/\(name)") ? $0 : nil } ?? made
    switch clone {
    case .file: FolderRemoval.remove(present)
    case .transaction: unlink(present)
    }
    lock.release()
    rmdir(present.parentFolder)
  }

  /// Makes an empty file that only this user can read. Fails where the file exists.
  static func makeFile(_ path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("cannot create '\(path)'", errno) }
    close(descriptor)
  }

  private static func makeInstarFolder(_ paths: StorePaths) throws {
    let path = paths.instarFolder
    guard mkdir(path, 0o700) != 0 else { return }
    let code = errno
    guard code == EEXIST else { throw failure("cannot create '\(path)'", code) }
    var status = stat()
    guard lstat(path, &status) == 0 else {
      // Removed since by another run: `make` makes it again.
      if errno == ENOENT { return }
      throw failure("cannot use '\(path)'", errno)
    }
    guard status.isFolder else {
      let other = CommandText.quoted(path + ".other")
      throw InstarError(
        .unsafePath, "cannot use '\(path)'", cause: "'\(path)' is not a folder",
        next: "run: mv -n \(CommandText.quoted(path)) \(other)")
    }
    guard status.st_uid == geteuid(),
      status.st_mode & 0o077 == 0
    else {
      let mode = String(status.st_mode & 0o7777, radix: 8)
      throw InstarError(
        .unsafePath, "cannot use '\(path)'",
        cause: "the folder '\(path)' has mode \(mode) and belongs to user "
          + "\(ProcessIdentity.label(of: status.st_uid)); only user "
          + "\(ProcessIdentity.label(of: geteuid())) may be able to enter it",
        next: "as root, run: chown \(geteuid()) \(CommandText.quoted(path)) && chmod 700 "
          + CommandText.quoted(path))
    }
    // If a folder can be created but not removed, each run would leave files. A folder that another run has removed
    // since is created again.
    let inode = status.st_ino
    if let finding = WriteFinding(
      path, W_OK | X_OK, "the folder '\(path)'",
      fix: "run: chmod 700 \(CommandText.quoted(path))"),
      lstat(path, &status) == 0, status.st_ino == inode
    {
      throw InstarError(
        .unreadableStore, "cannot use '\(path)'", cause: finding.message, next: finding.fix)
    }
  }

  /// Best effort: the next run removes what stays.
  private static func sweep(_ paths: StorePaths, _ names: RunFileNames) {
    for name in names.all(in: paths.instarFolder) {
      let path = paths.instarFolder + "/" + name
      let isCopy = name.hasPrefix(paths.name + ".") && name.hasSuffix(StorePaths.copySuffix)
      guard isCopy || access("\(path)/clone/\(paths.name)", F_OK) == 0,
        let lock = try? FolderLock.tryLock(path)
      else { continue }
      if isCopy { unlink(path) } else { FolderRemoval.remove(path) }
      lock.release()
    }
  }

  static func failure(_ what: String, _ code: Int32) -> InstarError {
    let isFull = InstarError.isFull(code)
    return InstarError(
      isFull ? .noSpace : .unreadableStore, what, cause: String(cString: strerror(code)),
      next: isFull
        ? InstarError.adviceOnSpace(after: code) : code == EIO ? InstarError.adviceOnDisk : nil)
  }
}
