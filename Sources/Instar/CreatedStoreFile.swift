import InstarSchema
internal import InstarStore

/// The file of a store that a migration made for its stages, which can be taken away again.
///
/// Its file is not opened but by SQLite: to close another descriptor would end the locks that this process has on it.
struct CreatedStoreFile {
  private let path: String
  private let state: State

  private struct State: Equatable {
    let identity: FileIdentity
    let size: Int64
    let modified: [Int]

    /// `nil` where there is no such file.
    init?(_ path: String) {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      identity = FileIdentity(status)
      size = Int64(status.st_size)
      modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    }
  }

  /// Whether there is anything at a path, be it a link that leads nowhere.
  static func isTaken(_ path: String) -> Bool { State(path) != nil }

  /// - Parameter path: of the store, which is closed. `nil` where it is gone.
  init?(path: String) {
    guard let state = State(path) else { return nil }
    self.path = path
    self.state = state
  }

  /// Removes the store with its side files. It stays where somebody has written to it meanwhile, or is writing: others
  /// that open it find an empty store of an earlier version, which they migrate.
  func remove() {
    guard State(path) == state,
      let connection = try? StoreConnection(path: path, durability: .durable)
    else { return }
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
