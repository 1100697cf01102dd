import InstarSchema
internal import InstarStore

/// The file of a store that a migration created for its stages, and can remove again.
///
/// Only SQLite opens the file: closing another descriptor would release the locks that this process has on it.
struct CreatedStoreFile {
  private let path: String
  private let version: FileVersion

  /// Whether anything exists at a path, even a broken link.
  static func isTaken(_ path: String) -> Bool { stat(of: path) != nil }

  /// - Parameter path: The path of the store, which is closed. `nil` if the file is gone.
  init?(path: String) {
    guard let version = Self.version(of: path) else { return nil }
    self.path = path
    self.version = version
  }

  /// Removes the store with its side files, unless another process has written to it or is writing: whoever opens it
  /// finds an empty store of an earlier version, and migrates it.
  func remove() {
    guard Self.version(of: path) == version,
      let connection = try? StoreConnection(path: path, durability: .durable)
    else { return }
    // What cannot be removed stays as an empty store.
    try? connection.perform { session in
      // From here on nobody writes to it; who looks for the store afterwards finds none.
      try session.transaction {
        guard Self.version(of: path) == version,
          stat(of: SideFile.log.path(of: path))?.st_size ?? 0 == 0
        else { return }
        unlink(path)
        for file in [SideFile.log, .index] { unlink(file.path(of: path)) }
      }
    }
    try? connection.close()
  }

  private static func version(of path: String) -> FileVersion? {
    stat(of: path).map(FileVersion.init)
  }
}
