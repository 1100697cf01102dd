import Foundation
import InstarSchema

/// Tells whether a file has changed: identity, size, time, owner, mode and names of the file, rights of the folders
/// above it, and size and time of the write-ahead log beside it.
///
/// Taken with `lstat`: the daemon never opens a store.
public struct FileVersion: Sendable, Hashable {
  var identity: FileIdentity
  var sizeBytes: Int64
  var modifiedNanoseconds: Int64
  /// Who may write the file, or rename it, decides whether it is used at all.
  var owner: UInt32
  var mode: UInt32
  /// A store with several names is refused until the others are removed.
  var linkCount: UInt64
  var folders: FolderRights
  /// -1 where there is no log.
  var walSizeBytes: Int64
  var walModifiedNanoseconds: Int64

  /// - Returns: `nil` where the path is not a regular file; not for a symbolic link.
  public init?(path: String) {
    let folder = (path as NSString).deletingLastPathComponent
    self.init(path: path, hasLog: true, folders: FolderRights(above: folder))
  }

  /// - Parameters:
  ///   - hasLog: `false` where the folder's listing has no `-wal` beside the file, which saves a system call.
  ///   - folders: of the file's folder; equal for all files in it.
  init?(path: String, hasLog: Bool, folders: FolderRights) {
    guard let file = FileVersion.status(path) else { return nil }
    identity = FileIdentity(file)
    sizeBytes = Int64(file.st_size)
    modifiedNanoseconds = FileVersion.nanoseconds(file.st_mtim)
    owner = file.st_uid
    mode = file.st_mode
    linkCount = UInt64(file.st_nlink)
    self.folders = folders
    walSizeBytes = -1
    walModifiedNanoseconds = 0
    if hasLog, let log = FileVersion.status(path + "-wal") {
      walSizeBytes = Int64(log.st_size)
      walModifiedNanoseconds = FileVersion.nanoseconds(log.st_mtim)
    }
  }

  /// For tests and for plugins, which have no log.
  init(
    identity: FileIdentity, sizeBytes: Int64, modifiedNanoseconds: Int64, owner: UInt32 = 0,
    mode: UInt32 = 0
  ) {
    self.owner = owner
    self.mode = mode
    linkCount = 1
    folders = FolderRights()
    self.identity = identity
    self.sizeBytes = sizeBytes
    self.modifiedNanoseconds = modifiedNanoseconds
    walSizeBytes = -1
    walModifiedNanoseconds = 0
  }

  private static func status(_ path: String) -> stat? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return status
  }

  static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

/// Owner and mode of a folder and of each folder above it.
///
/// Users who can write one of these can replace the file. When an administrator takes that right away, the file has
/// another version, and is checked again.
struct FolderRights: Sendable, Hashable {
  private var rights: [UInt64] = []

  /// Of no folder: for files that are checked each time.
  init() {}

  init(above folder: String) {
    guard let resolved = realpath(folder, nil) else { return }
    defer { free(resolved) }
    var path = String(cString: resolved)
    while true {
      var status = stat()
      guard lstat(path, &status) == 0 else { return }
      rights.append(UInt64(status.st_uid) << 32 | UInt64(status.st_mode))
      if path == "/" { return }
      path = (path as NSString).deletingLastPathComponent
    }
  }
}
