internal import CInstar
internal import Foundation
internal import InstarSchema

/// Copies of whole files, which share their blocks where the file system can do that.
enum FileCopy {
  /// Replaces the contents of `target`, a file that exists, by those of `source`.
  static func copy(_ source: String, to target: String) throws {
    let input = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard input >= 0 else { throw RunFolder.failure("cannot read '\(source)'", errno) }
    defer { close(input) }
    let output = open(target, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC)
    guard output >= 0 else { throw RunFolder.failure("cannot write '\(target)'", errno) }
    defer { close(output) }
    if instar_clone_file(output, input) == 0 { return }
    while true {
      let count = sendfile(output, input, nil, 64 << 20)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw RunFolder.failure("cannot copy '\(source)'", errno) }
      if count == 0 { return }
    }
  }

  /// Makes a database file that nobody has open one with a rollback journal, so that it is a single
  /// file: bytes 18 and 19 of its header say which it is (SQLite file format, section 1.3.3).
  static func useRollbackJournal(_ path: String) throws {
    let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw RunFolder.failure("cannot open '\(path)'", errno) }
    defer { close(descriptor) }
    let versions: [UInt8] = [1, 1]
    guard pwrite(descriptor, versions, 2, 18) == 2 else {
      throw RunFolder.failure("cannot write '\(path)'", errno)
    }
  }

  /// - Throws: `noSpace` unless the file system of `folder` has that many bytes left for this user.
  static func requireSpace(_ bytes: Int64, in folder: String) throws {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else {
      throw RunFolder.failure("cannot ask for the free space in '\(folder)'", errno)
    }
    let available = Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    guard available >= bytes else {
      throw InstarError(
        .noSpace, "cannot make a clone and a backup",
        cause: "\(bytes >> 20) MiB are needed in '\(folder)', \(available >> 20) MiB are free",
        next: "free some space, then try again")
    }
  }
}
