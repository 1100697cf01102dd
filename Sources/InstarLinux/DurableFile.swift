public import Foundation
import Glibc
public import InstarSchema

/// Files that survive a loss of power: when a call returns, what it did is on disk.
public enum DurableFile {
  /// To whom a file that is made is given, where that is not the user of this process. Its folder must belong to that
  /// user, see `OwnedFile`.
  public struct Owner: Sendable, Hashable {
    public var uid: UInt32
    public var gid: UInt32

    public init(uid: UInt32, gid: UInt32) {
      self.uid = uid
      self.gid = gid
    }
  }

  /// Replaces the file with `data`, or makes it. At any instant, and after a crash, the path holds the old content or
  /// the new, whole.
  ///
  /// - Throws: `stateFolderFailed`; the old file is then still in place, unless the error is of the last step, the
  ///   fsync of the folder: the new one may be in place then, but may be gone after a crash.
  public static func write(
    _ data: Data, to path: String, mode: mode_t, owner: Owner? = nil
  ) throws(InstarError) {
    let what = "cannot write '\(path)'"
    // In the same folder, so that the rename is one step; with a name nobody else uses.
    let place = try OwnedFile(of: path, owner: owner)
    let temporary = "\(place.name).\(getpid()).\(UInt32.random(in: .min ... .max)).tmp"
    let descriptor = openat(
      place.folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
    guard descriptor >= 0 else { throw failure(what, path, errno) }
    var reason = writeAll(data, to: descriptor)
    // The process's umask does not decide who may read it.
    if reason == 0, fchmod(descriptor, mode) != 0 { reason = errno }
    if reason == 0, let owner, fchown(descriptor, owner.uid, owner.gid) != 0 { reason = errno }
    if reason == 0, fsync(descriptor) != 0 { reason = errno }
    close(descriptor)
    if reason == 0, renameat(place.folder, temporary, place.folder, place.name) != 0 {
      reason = errno
    }
    guard reason == 0 else {
      unlinkat(place.folder, temporary, 0)
      throw failure(what, path, reason)
    }
    try synchronizeFolder(path.parentFolder)
  }

  /// Appends one line to the file, as `append(lines:)` does.
  public static func append(
    line: Data, to path: String, mode: mode_t, owner: Owner? = nil,
    folderSyncs: GroupCommit<Void>? = nil
  ) throws(InstarError) {
    try append(lines: [line], to: path, mode: mode, owner: owner, folderSyncs: folderSyncs)
  }

  /// Appends lines to the file, or makes it. After an error none of them is there, unless the error is of the last
  /// step, the fsync of the folder: then they are there, but may be gone after a crash. Newlines are added. Where a
  /// crash had cut off the last line, that rest is ended first, so that the new lines stand alone.
  ///
  /// One process at a time may append to a file.
  ///
  /// - Parameter folderSyncs: Those of the file's folder, where several threads make files there.
  public static func append(
    lines: [Data], to path: String, mode: mode_t, owner: Owner? = nil,
    folderSyncs: GroupCommit<Void>? = nil
  ) throws(InstarError) {
    let what = "cannot write '\(path)'"
    let place = try OwnedFile(of: path, owner: owner)
    let descriptor = openat(
      place.folder, place.name,
      O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode)
    guard descriptor >= 0 else { throw failure(what, path, errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(what, path, errno) }
    guard status.isRegular else {
      throw InstarError(
        .stateFolderFailed, what, cause: "not a regular file",
        next:
          "move what is in its place: mv \(CommandText.quoted(path)) \(CommandText.quoted(path + ".other"))"
      )
    }
    let isNew = status.st_size == 0
    var text = Data()
    for line in lines {
      text += line
      if text.last != 0x0A { text.append(0x0A) }
    }
    if !isNew {
      var last: UInt8 = 0
      guard pread(descriptor, &last, 1, status.st_size - 1) == 1 else {
        throw failure(what, path, errno)
      }
      if last != 0x0A { text.insert(0x0A, at: text.startIndex) }
    }
    var reason: Int32 = 0
    // A file with another name elsewhere is not one that was made here.
    if isNew, let owner, status.st_nlink == 1, fchown(descriptor, owner.uid, owner.gid) != 0 {
      reason = errno
    }
    if reason == 0 { reason = writeAll(text, to: descriptor) }
    if reason == 0, fsync(descriptor) != 0 { reason = errno }
    guard reason == 0 else {
      // Not half a line: what was there before stays as it was.
      ftruncate(descriptor, status.st_size)
      throw failure(what, path, reason)
    }
    if isNew { try synchronizeFolder(path.parentFolder, folderSyncs) }
  }

  /// Deletes the file; nothing happens where there is none.
  ///
  /// - Parameter isDurable: Whether the removal is on disk when this returns.
  public static func remove(
    _ path: String, isDurable: Bool = true, owner: Owner? = nil
  ) throws(InstarError) {
    let place = try OwnedFile(of: path, owner: owner)
    guard unlinkat(place.folder, place.name, 0) == 0 else {
      let reason = errno
      if reason == ENOENT { return }
      throw failure("cannot remove '\(path)'", path, reason)
    }
    if isDurable { try synchronizeFolder(path.parentFolder) }
  }

  /// Removes the file's content, or the file itself where it has other names. That is not on disk when this returns.
  public static func empty(_ path: String, owner: Owner?) throws(InstarError) {
    let what = "cannot empty '\(path)'"
    let place = try OwnedFile(of: path, owner: owner)
    let descriptor = openat(
      place.folder, place.name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else {
      let reason = errno
      if reason == ENOENT { return }
      throw failure(what, path, reason)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(what, path, errno) }
    // Root must not empty a file of another folder that the owner has linked here.
    guard status.isRegular, status.st_nlink == 1 else {
      return try remove(path, isDurable: false, owner: owner)
    }
    guard ftruncate(descriptor, 0) == 0 else { throw failure(what, path, errno) }
  }

  /// Brings the folder's entries to disk: what was made, renamed or deleted in it.
  public static func synchronizeFolder(_ folder: String) throws(InstarError) {
    try synchronize(folder, flags: O_RDONLY | O_DIRECTORY)
  }

  private static func synchronizeFolder(
    _ folder: String, _ syncs: GroupCommit<Void>?
  ) throws(InstarError) {
    guard let syncs else { return try synchronizeFolder(folder) }
    try syncs.perform(()) { (_) throws(InstarError) in try synchronizeFolder(folder) }
  }

  /// Brings a file's content to disk.
  ///
  /// - Important: Opens and closes the file, which drops the POSIX locks that this process has on it: never a store
  ///   that SQLite has open.
  public static func synchronizeFile(_ path: String) throws(InstarError) {
    try synchronize(path, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  }

  private static func synchronize(_ path: String, flags: Int32) throws(InstarError) {
    let what = "cannot sync '\(path)' to disk"
    let descriptor = open(path, flags | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(what, path, errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure(what, path, errno) }
  }

  /// 0, or an `errno`.
  private static func writeAll(_ data: Data, to descriptor: Int32) -> Int32 {
    data.withUnsafeBytes { bytes -> Int32 in
      var written = 0
      while written < bytes.count {
        let count = Glibc.write(
          descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
        if count < 0 {
          if errno == EINTR { continue }
          return errno
        }
        written += count
      }
      return 0
    }
  }

  private static func failure(_ what: String, _ path: String, _ reason: Int32) -> InstarError {
    let isFull = reason == ENOSPC || reason == EDQUOT
    return .systemFailure(
      what, reason, code: isFull ? .noSpace : .stateFolderFailed,
      next: InstarError.adviceOnWriting(in: path.parentFolder, reason))
  }
}
