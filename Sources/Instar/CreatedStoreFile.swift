import InstarSchema
internal import InstarStore

/// The file of a store that a migration created for its stages, and can remove again.
///
/// Only SQLite opens the file: closing another descriptor would release the locks that this process has on it.
struct CreatedStoreFile {
  private let path: String
  private let state: State

  private struct State: Equatable {
    let identity: FileIdentity
    let size: Int64
    let modified: [Int]

    /// `nil` where there is no such file.
    init?(_ path: String) {
      guard let status = stat(of: path) else { return nil }
      identity = FileIdentity(status)
      size = Int64(status.st_size)
      modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    }
  }

  /// Whether anything exists at a path, even a broken link.
  static func isTaken(_ path: String) -> Bool { State(path) != nil }

  /// - Parameter path: The path of the store, which is closed. `nil` if the file is gone.
  init?(path: String) {
    guard let state = State(path) else { return nil }
    self.path = path
    self.state = state
  }

  /// Removes the store with its side files, unless another process has written to it or is writing: whoever opens it
  /// finds an empty store of an earlier version, and migrates it.
  func remove() {
    guard State(path) == state,
      let connection = try? StoreConnection(path: path, durability: .durable)
    else { return }
    // What cannot be removed stays as an empty store.
    try? connection.perform { session in
      // From here on nobody writes to it; who looks for the store afterwards finds none.
      try session.transaction {
        guard State(path) == state, State(path + "-wal").map({ $0.size == 0 }) ?? true else {
          return
        }
        unlink(path)
        for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
      }
    }
    try? connection.close()
  }
}
