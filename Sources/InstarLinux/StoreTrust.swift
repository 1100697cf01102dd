import CInstar
import Glibc
public import InstarSchema

/// Which stores are worked on for their owner: those that nobody else could have put there.
///
/// A store found in a watched folder is opened with its owner's rights, and with what lies beside
/// it: a journal that somebody else has put there would be rolled back into it. So the store must be
/// a regular file that only its owner can write, and every folder above it must belong to its owner
/// or to root and be written by nobody else. Folders above the store's own may be sticky; symbolic
/// links on the way must be root's. A store of root so is one that only root could have put there.
public struct StoreTrust: Sendable {
  public let owner: UInt32

  public init(owner: UInt32) {
    self.owner = owner
  }

  /// Whose the store is, without a word on whether that can be trusted. Where the store itself is
  /// gone: whose its folder for clones is, or its folder.
  ///
  /// - Throws: `missingStore` where there is nothing to be asked; `unsafePath` for a symbolic link;
  ///   `unreadableStore`.
  public static func owner(of store: String) throws(InstarError) -> UInt32 {
    let folder = store.lastIndex(of: "/").map { String(store[..<$0]) } ?? "."
    var reason: Int32 = ENOENT
    for path in [store, folder + "/.instar", folder.isEmpty ? "/" : folder] {
      var status = stat()
      if lstat(path, &status) == 0 {
        guard status.st_mode & S_IFMT != S_IFLNK || path != store else {
          throw fault(.unsafe(cause: "it is a symbolic link", remedy: nil), store)
        }
        return status.st_uid
      }
      reason = errno
      guard reason == ENOENT else { break }
    }
    throw fault(.unavailable(path: store, reason), store)
  }

  /// Looks at the store and the way to it.
  ///
  /// - Returns: The file at the end of the way.
  /// - Throws: `unsafePath` with what is at fault; `missingStore`, `notAStore`, `unreadableStore`.
  ///   The store was not opened.
  @discardableResult
  package func require(_ store: String) throws(InstarError) -> FileIdentity {
    try target(of: store).identity
  }

  /// As `require`, for the process that opens the store: the file is met once more by a way on which
  /// the kernel follows no symbolic link, and must be the same.
  ///
  /// - Throws: as `require`, and `storeChanged`.
  package func confirm(_ store: String) throws(InstarError) -> FileIdentity {
    let (path, identity) = try target(of: store)
    var (device, inode): (UInt64, UInt64) = (0, 0)
    guard instar_status_without_links(path, &device, &inode) == 0 else {
      throw Self.fault(.unavailable(path: path, errno), store)
    }
    guard FileIdentity(device: device, inode: inode) == identity else {
      throw InstarError(
        .storeChanged, "cannot open '\(store)'", store: store,
        cause: "another file has taken its name meanwhile", state: "unchanged", next: "try again")
    }
    return identity
  }

  private func target(
    of store: String
  ) throws(InstarError) -> (path: String, identity: FileIdentity) {
    let trust = PathTrust(
      owners: [0, owner], acceptsStickyFolder: false, followsLinkAtEnd: false)
    do throws(PathTrust.Fault) {
      let target = try trust.target(of: store)
      guard target.status.st_mode & S_IFMT == S_IFREG else {
        throw .unsafe(cause: "it is no regular file", remedy: nil)
      }
      // Whose it is was asked by its name; it may be another file by now.
      guard target.status.st_uid == owner else {
        throw .foreign(path: target.path, owner: target.status.st_uid)
      }
      try trust.requireUnwritable(target.path, target.status)
      return (target.path, FileIdentity(target.status))
    } catch {
      throw Self.fault(error, store, owner: owner)
    }
  }

  /// - Parameter owner: of the store, where he is known.
  private static func fault(
    _ fault: PathTrust.Fault, _ store: String, owner: UInt32? = nil
  ) -> InstarError {
    let what = "cannot open '\(store)'"
    switch fault {
    case .unsafe(let cause, let remedy):
      return InstarError(
        .unsafePath, what, store: store, cause: cause, state: "unchanged",
        next: remedy.map { "make sure that it is its owner's store, then: \($0)" })
    case .foreign(let path, let foreigner):
      return InstarError(
        .unsafePath, what, store: store,
        cause:
          "user \(ProcessIdentity.label(of: foreigner)) could have put it there, who is not its "
          + "owner\(owner.map { " \(ProcessIdentity.label(of: $0))" } ?? "") and has '\(path)'",
        state: "unchanged",
        next: "let the store and every folder above it belong to its owner or to root")
    case .unavailable(let path, let number):
      switch number {
      case ENOENT, ENOTDIR:
        return InstarError(.missingStore, what, store: store, cause: "there is no such file")
      case ELOOP:
        return InstarError(
          .unsafePath, what, store: store, cause: "there is a symbolic link on the way to it",
          state: "unchanged")
      default:
        return InstarError(
          .unreadableStore, what, store: store,
          cause: "'\(path)': \(String(cString: strerror(number)))", state: "unchanged",
          next: "let the store's owner enter the folder")
      }
    }
  }
}
