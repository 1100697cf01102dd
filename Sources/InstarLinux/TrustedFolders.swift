import Synchronization

/// The folders that `StoreTrust` found trusted, for further stores of one batch: with 100 stores in a folder, those
/// above them need not be checked 100 times.
///
/// Nobody but the store's owner and root can make such a folder unsafe. It is kept for one batch only, so that a folder
/// that its owner opened to others is refused by the next one.
public final class TrustedFolders: Sendable {
  private struct Folder: Hashable {
    let path: String
    let owners: Set<UInt32>
  }

  /// Their paths without symbolic links.
  private let resolved = Mutex<[Folder: String]>([:])

  public init() {}

  /// Returns the path of a folder without symbolic links, checked at its first use.
  ///
  /// - Parameter check: Checks the folder. Where it throws, nothing is kept.
  func path<Failure: Error>(
    of folder: String, ownedBy owners: Set<UInt32>, check: () throws(Failure) -> String
  ) throws(Failure) -> String {
    let key = Folder(path: folder, owners: owners)
    if let known = resolved.withLock({ $0[key] }) { return known }
    let path = try check()
    resolved.withLock { $0[key] = path }
    return path
  }
}
