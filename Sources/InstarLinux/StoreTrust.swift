import CInstar
import Glibc
public import InstarSchema

/// Checks that nobody but its owner and root could have placed a store: other stores are refused.
///
/// SQLite opens a store together with the files beside it, and a journal that another user placed there would be rolled
/// back into the store. So the store must be a regular file that only its owner can write, and every folder above it
/// must belong to the owner or root and be writable by nobody else. Folders above the store's own may be sticky.
/// Symbolic links on the path must belong to root, and the file may have one name only.
public struct StoreTrust: Sendable {
  public let owner: UInt32
  private let folders: TrustedFolders?

  /// - Parameter folders: Of the batch that the store is in; `nil` checks each folder again.
  public init(owner: UInt32, folders: TrustedFolders? = nil) {
    self.owner = owner
    self.folders = folders
  }

  /// Returns the owner of the store, without checking the path. If the store is missing: the owner of `.instar` beside
  /// it, else of its folder.
  ///
  /// - Throws: `missingStore` if the folder is missing too; `unsafePath` for a symbolic link; `unreadableStore`.
  public static func owner(of store: String) throws(InstarError) -> UInt32 {
    let folder = store.parentFolder
    var reason: Int32 = ENOENT
    for path in [store, InstarFolder.path(besideStore: store), folder + "/."] {
      if let status = stat(of: path) {
        guard !status.isLink || path != store else {
          throw fault(.unsafe(cause: "the store is a symbolic link", remedy: nil), store)
        }
        return status.st_uid
      }
      reason = errno
      guard reason == ENOENT else { break }
    }
    throw fault(.unavailable(path: store, reason), store)
  }

  /// Checks the store and its path by `lstat`, without opening anything.
  ///
  /// - Returns: The file that the path names.
  /// - Throws: `unsafePath` with the cause; `missingStore`, `unreadableStore`.
  @discardableResult
  package func require(_ store: String) throws(InstarError) -> FileIdentity {
    let (path, identity) = try target(of: store)
    try Self.requireSingleLink(path)
    return identity
  }

  /// Checks the store as `require` does, then again by a path on which the kernel follows no symbolic link: for the
  /// process that opens the store. Hard links are not counted: a recovery must finish whatever was linked since.
  ///
  /// - Throws: What `require` throws; `storeChanged` if the two checks found different files.
  package func confirm(_ store: String) throws(InstarError) -> FileIdentity {
    let (path, identity) = try target(of: store)
    var (device, inode): (UInt64, UInt64) = (0, 0)
    guard instar_status_without_links(path, &device, &inode) == 0 else {
      throw Self.fault(.unavailable(path: path, errno), store)
    }
    guard FileIdentity(device: device, inode: inode) == identity else {
      throw InstarError(
        .storeChanged, "cannot open '\(store)'", store: store,
        cause: "the file was replaced while its path was checked", state: "unchanged",
        next: "find out what replaces the file, then \(CommandText.repetition)")
    }
    return identity
  }

  /// Returns the path of the store without symbolic links. Checks the folders and symbolic links on it, but of the file
  /// only the owner; the file may be missing.
  ///
  /// - Throws: `unsafePath`, also where a symbolic link of another user is on the path; `missingStore`,
  ///   `unreadableStore`.
  package func path(of store: String) throws(InstarError) -> String {
    let trust = PathTrust(owners: [0, owner], acceptsStickyFolder: false, followsLinkAtEnd: true)
    let path: String
    do throws(PathTrust.Fault) {
      let folder = try trust.target(of: store.parentFolder + "/.").path
      let name = store.lastName
      path = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    } catch {
      throw Self.fault(error, store, owner: owner)
    }
    // The owner was read before: a folder may have been a symbolic link then.
    let found = try Self.owner(of: path)
    guard found == owner else {
      throw Self.fault(.foreign(path: path, owner: found), store, owner: owner)
    }
    return path
  }

  /// Why every store in a folder would be refused, whoever owns it; `nil` where the folder and those above it allow
  /// stores, or cannot be read by this user.
  public static func problem(ofFolder folder: String) -> InstarError? {
    guard let status = stat(following: folder) else { return nil }
    var owners: Set<UInt32> = [0, status.st_uid]
    while true {
      let trust = PathTrust(owners: owners, acceptsStickyFolder: false, followsLinkAtEnd: true)
      do throws(PathTrust.Fault) {
        _ = try trust.target(of: folder + "/.")
        return nil
      } catch {
        switch error {
        case .unavailable: return nil
        // In root's folder the stores may be this user's.
        case .foreign(_, let owner) where owners == [0]: owners.insert(owner)
        case .foreign, .unsafe, .shared: return fault(error, folder)
        }
      }
    }
  }

  private func target(
    of store: String
  ) throws(InstarError) -> (path: String, identity: FileIdentity) {
    let trust = PathTrust(
      owners: [0, owner], acceptsStickyFolder: false, followsLinkAtEnd: false)
    do throws(PathTrust.Fault) {
      let target = try trust.target(of: store, known: folders)
      guard target.status.isRegular else {
        throw .unsafe(cause: "not a regular file", remedy: nil)
      }
      // The owner was read before: another file may have the name by now.
      guard target.status.st_uid == owner else {
        throw .foreign(path: target.path, owner: target.status.st_uid)
      }
      try trust.requireUnwritable(target.path, target.status)
      return (target.path, FileIdentity(target.status))
    } catch {
      throw Self.fault(error, store, owner: owner)
    }
  }

  /// - Parameter owner: The store's owner, if known.
  private static func fault(
    _ fault: PathTrust.Fault, _ store: String, owner: UInt32? = nil
  ) -> InstarError {
    let what = "cannot open '\(store)'"
    switch fault {
    case .unsafe(let cause, let remedy):
      return InstarError(
        .unsafePath, what, store: store, cause: cause, state: "unchanged",
        next: remedy.map {
          "check that nobody else changed the store or its folder, then run: \($0)"
        } ?? "use the path of a regular file; run: readlink -f \(CommandText.quoted(store))")
    case .shared(let folder):
      return InstarError(
        .unsafePath, what, store: store, cause: "everybody can write '\(folder)'",
        state: "unchanged",
        next: "move the store to a folder that only its owner can write")
    case .foreign(let path, let foreigner):
      return InstarError(
        .unsafePath, what, store: store,
        cause:
          "'\(path)' belongs to user \(ProcessIdentity.label(of: foreigner)), not to root or the store's "
          + "owner\(owner.map { " \(ProcessIdentity.label(of: $0))" } ?? "")",
        state: "unchanged",
        next: "if you trust the store, run: chown -h \(owner ?? 0) \(CommandText.quoted(path))")
    case .unavailable(let path, let number):
      switch number {
      case ENOENT, ENOTDIR:
        return InstarError(
          .missingStore, what, store: store, cause: "the file does not exist",
          next: "check the path; run: ls -la \(CommandText.quoted(path.parentFolder))")
      case ELOOP:
        return InstarError(
          .unsafePath, what, store: store, cause: "the store's path contains a symbolic link",
          state: "unchanged",
          next:
            "pass the path without links; to see it, run: readlink -f \(CommandText.quoted(store))")
      default:
        let folder = CommandText.quoted(path.parentFolder)
        let access =
          number == EACCES
          ? "let user \(ProcessIdentity.label(of: ProcessIdentity.ownUser)) read and enter \(folder); "
          : ""
        return InstarError(
          .unreadableStore, what, store: store,
          cause: "'\(path)': \(String(cString: strerror(number)))", state: "unchanged",
          next: access + "run: ls -ld \(folder)")
      }
    }
  }
}
