internal import CInstar
internal import Foundation
internal import InstarSchema
internal import InstarWire

/// Copies whole files, sharing their blocks where the file system can.
enum FileCopy {
  /// Replaces the contents of `target`, an existing file, by those of `source`.
  static func copy(_ source: String, to target: String) throws {
    let input = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard input >= 0 else { throw RunFiles.failure("cannot read '\(source)'", errno) }
    defer { close(input) }
    let output = try openToReplace(target)
    defer { close(output) }
    var status = stat()
    guard fstat(input, &status) == 0 else {
      throw RunFiles.failure("cannot read the size of '\(source)'", errno)
    }
    try copy(input, to: output, bytes: Int64(status.st_size), target)
  }

  /// Replaces the contents of `target`, an existing file, by the first bytes of an open file, which stays open.
  static func copy(_ input: Int32, bytes: Int64, to target: String) throws {
    let output = try openToReplace(target)
    defer { close(output) }
    try copy(input, to: output, bytes: bytes, target)
  }

  /// Opens an existing file, and empties it.
  ///
  /// ext4 writes a file that was opened with `O_TRUNC` to disk when it is closed (`auto_da_alloc`), even if it was
  /// empty before. So only a file with content is truncated: whoever needs the contents on disk synchronizes them.
  private static func openToReplace(_ target: String) throws -> Int32 {
    let output = open(target, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    guard output >= 0 else { throw RunFiles.failure("cannot write '\(target)'", errno) }
    var status = stat()
    guard fstat(output, &status) == 0, status.st_size == 0 || ftruncate(output, 0) == 0 else {
      let code = errno
      close(output)
      throw RunFiles.failure("cannot write '\(target)'", code)
    }
    return output
  }

  private static func copy(
    _ input: Int32, to output: Int32, bytes: Int64, _ target: String
  ) throws {
    if instar_clone_file(output, input) == 0 {
      // A store may be followed by bytes that are not a part of it.
      guard ftruncate(output, off_t(bytes)) == 0 else {
        throw RunFiles.failure("cannot write '\(target)'", errno)
      }
      return
    }
    var offset: off_t = 0
    var usesRange = true
    while offset < bytes {
      let most = min(Int(bytes) - offset, 64 << 20)
      let count =
        usesRange
        ? instar_copy_range(output, input, &offset, most)
        : sendfile(output, input, &offset, most)
      if count < 0, errno == EINTR { continue }
      if usesRange, count == 0 || count < 0 && errno != ENOSPC && errno != EDQUOT {
        // Between two file systems, or where a file system cannot do it. Some kernels then copy nothing and report no
        // error. `sendfile` reports all other errors; it writes where `output` is, which the other call has not moved.
        usesRange = false
        guard lseek(output, offset, SEEK_SET) == offset else {
          throw RunFiles.failure("cannot write '\(target)'", errno)
        }
        continue
      }
      guard count >= 0 else { throw RunFiles.failure("cannot copy to '\(target)'", errno) }
      // A damaged store may be shorter than its header says.
      if count == 0 { return }
    }
  }

  /// Sets the journal mode of a database file that nobody has open to a rollback journal, so that it is a single file.
  ///
  /// Bytes 18 and 19 of the header hold the mode (SQLite file format, section 1.3.3).
  static func useRollbackJournal(_ path: String) throws {
    let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw RunFiles.failure("cannot open '\(path)'", errno) }
    defer { close(descriptor) }
    let versions: [UInt8] = [1, 1]
    guard pwrite(descriptor, versions, 2, 18) == 2 else {
      throw RunFiles.failure("cannot write '\(path)'", errno)
    }
  }

  /// Drops a file from the page cache, so that its next reader reads the disk. The file's content must be on disk.
  static func dropCache(of path: String) {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    // If the kernel keeps the pages, the reader reads the cache.
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
    close(descriptor)
  }

  /// Makes the kernel start to write a file to disk, so that a later sync has little left to write. May wait while the
  /// disk's queue is full, but not until the disk has written.
  static func startWriting(_ path: String) {
    // If anything here fails, the sync writes everything. The sync also reports errors of the disk.
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = instar_start_writing(descriptor)
    close(descriptor)
  }

  /// Returns the bytes of a file.
  static func size(of path: String) throws -> Int64 {
    guard let status = stat(of: path) else {
      throw RunFiles.failure("cannot read the size of '\(path)'", errno)
    }
    return Int64(status.st_size)
  }

  /// Whether the file system of a folder has too little space for what SQLite needs to open a store.
  ///
  /// SQLite reports a full disk as such only where it writes pages. Where it makes a log or its shared memory, it
  /// reports that it cannot open a file.
  static func isFull(_ folder: String) -> Bool {
    let sharedMemoryBytes: UInt64 = 64 << 10
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return false }
    return UInt64(status.f_bavail) &* UInt64(status.f_frsize) < sharedMemoryBytes
  }

  /// Space for small files beside a store: headers of journals, lists of files, folders.
  static let smallFiles: Int64 = 1 << 20

  /// - Throws: `noSpace` where the file system of `folder` has fewer bytes left for this user.
  static func requireSpace(_ bytes: Int64, in folder: String) throws {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else {
      throw RunFiles.failure("cannot read the free space in '\(folder)'", errno)
    }
    let available = Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    guard available >= bytes else {
      throw InstarError(
        .noSpace, "cannot migrate the store",
        // Rounded so that the message never shows as much free space as is needed.
        cause: "the run needs \(Quantity.bytes(bytes, rounded: .up)) in '\(folder)'; "
          + "\(Quantity.bytes(available, rounded: .down)) are free",
        next: "free \(Quantity.bytes(bytes - available, rounded: .up)), then "
          + CommandText.repetition)
    }
  }
}
