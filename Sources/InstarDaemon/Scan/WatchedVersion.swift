import Foundation
import InstarSchema

/// Tells whether a store or plugin must be checked again: the version of its file, with owner, mode and names of the
/// file, rights of the folders above it, and size and time of the write-ahead log beside it.
///
/// Taken with `lstat`: the daemon never opens a store.
///
/// A daemon keeps the versions of 100,000 stores: of each it keeps the `digest` only.
struct WatchedVersion: Sendable, Hashable {
  /// Who may write the file, or rename it, decides whether it is used at all.
  var owner: UInt32
  var sizeBytes: Int64
  var modifiedNanoseconds: Int64
  /// A hash of all that is compared. Two versions of a file have the same digest by a chance of 1 in 2^64. It is the
  /// same in each process, because the state folder keeps it for quarantined stores.
  var digest: Int

  /// - Returns: `nil` where the path is not a regular file; not for a symbolic link.
  init?(path: String) {
    let folder = path.parentFolder
    self.init(path, in: AT_FDCWD, hasLog: true, folders: FolderRights(above: folder))
  }

  /// - Parameters:
  ///   - descriptor: Of the folder in which the name is: the kernel need not look up the folders above it.
  ///   - hasLog: `false` where the folder's listing has no `-wal` beside the file, which saves a system call.
  ///   - folders: of the file's folder; equal for all files in it.
  init?(_ name: String, in descriptor: Int32, hasLog: Bool, folders: FolderRights) {
    guard let file = WatchedVersion.status(name, in: descriptor) else { return nil }
    let version = FileVersion(file)
    var rest = NumberDigest()
    rest.combine(version)
    rest.combine(file.st_uid)
    rest.combine(file.st_mode)
    // A store with several names is refused until the others are removed.
    rest.combine(UInt64(file.st_nlink))
    folders.combine(into: &rest)
    if hasLog, let log = WatchedVersion.status(SideFile.log.path(of: name), in: descriptor) {
      rest.combine(Int64(log.st_size))
      rest.combine(log.st_mtim.nanoseconds)
    }
    owner = file.st_uid
    sizeBytes = version.sizeBytes
    modifiedNanoseconds = version.modifiedNanoseconds
    digest = rest.value
  }

  /// For tests and for plugins, which have no log.
  init(_ file: FileVersion, owner: UInt32 = 0, mode: UInt32 = 0) {
    self.owner = owner
    sizeBytes = file.sizeBytes
    modifiedNanoseconds = file.modifiedNanoseconds
    var rest = NumberDigest()
    rest.combine(file)
    rest.combine(owner)
    rest.combine(mode)
    digest = rest.value
  }

  /// Returns the owner of a file; `nil` where the path is not a regular file.
  static func owner(of path: String) -> UInt32? { status(path, in: AT_FDCWD)?.st_uid }

  private static func status(_ name: String, in descriptor: Int32) -> stat? {
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
      status.isRegular
    else { return nil }
    return status
  }
}

/// Owner and mode of a folder and of each folder above it.
///
/// Users who can write one of these can replace the file. When an administrator takes that right away, the file has
/// another version, and is checked again.
struct FolderRights: Sendable, Hashable {
  private var rights: [UInt64] = []

  /// The rights of no folder, for files that are checked each time they are used.
  init() {}

  fileprivate func combine(into digest: inout NumberDigest) {
    for right in rights { digest.combine(right) }
  }

  init(above folder: String) {
    guard var path = RealPath.of(folder) else { return }
    while true {
      guard let status = stat(of: path) else { return }
      rights.append(UInt64(status.st_uid) << 32 | UInt64(status.st_mode))
      if path == "/" { return }
      path = path.parentFolder
    }
  }
}

/// Mixes numbers to 64 bits. Unlike `Hasher` it gives the same in each process.
private struct NumberDigest {
  private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

  var value: Int { Int(truncatingIfNeeded: state) }

  mutating func combine(_ number: some FixedWidthInteger) {
    // The halves of the product depend on all bits of both factors.
    let product = (state ^ UInt64(truncatingIfNeeded: number))
      .multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
    state = (product.high ^ product.low) &+ 0x9E37_79B9_7F4A_7C15
  }

  mutating func combine(_ file: FileVersion) {
    combine(file.identity.device)
    combine(file.identity.inode)
    combine(file.sizeBytes)
    combine(file.modifiedNanoseconds)
  }
}
