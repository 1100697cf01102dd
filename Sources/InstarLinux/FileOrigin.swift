internal import CInstar
internal import Glibc
public import InstarSchema

/// Identifies a file, also after it was moved. The kernel gives the inode of a deleted file to a new one; only its time
/// of creation differs.
public struct FileOrigin: Sendable, Hashable {
  package let identity: FileIdentity
  /// In nanoseconds since 1970; 0 where the file system does not say.
  public let createdNanoseconds: Int64

  public var device: UInt64 { identity.device }
  public var inode: UInt64 { identity.inode }

  public init(device: UInt64, inode: UInt64, createdNanoseconds: Int64) {
    identity = FileIdentity(device: device, inode: inode)
    self.createdNanoseconds = createdNanoseconds
  }

  /// The file that a path names; a symbolic link is a file of its own.
  ///
  /// - Throws: `missingStore` or `unreadableStore`.
  public init(of path: String) throws(InstarError) {
    var created: Int64 = 0
    guard let status = stat(of: path), instar_creation_time(path, &created) == 0 else {
      let reason = errno
      throw .systemFailure(
        "cannot find '\(path)'", reason,
        code: [ENOENT, ENOTDIR].contains(reason) ? .missingStore : .unreadableStore)
    }
    self.init(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), createdNanoseconds: created)
  }
}
