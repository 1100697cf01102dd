import Glibc
import InstarSchema
import InstarStore

/// The clone as it was before a stage, which `old` of a bridge reads. Removed when the stage ends.
struct StageCopy {
  let connection: StoreConnection
  /// `nil` for a store in memory.
  private let path: String?

  /// Copies a clone that is in no transaction. Its file has all pages then, because it has no log. The file is private,
  /// so nobody minds that SQLite's locks end where the file is closed.
  ///
  /// - Throws: `sqlFailed`, `noSpace`. No copy is then left.
  init(of clone: StoreConnection) throws {
    guard let file = try clone.perform({ try $0.mainFile }) else {
      connection = try StoreConnection(inMemory: nil)
      path = nil
      try clone.copy(to: connection)
      return
    }
    let path = Self.freePath(besides: file)
    do {
      try FileContents.copy(file, toNew: path)
      connection = try StoreConnection(
        path: path, isReadOnly: true, durability: .clone,
        externalFolder: clone.externalValues.otherFolders.first)
    } catch {
      unlink(path)
      throw error
    }
    self.path = path
  }

  /// Closes and removes the copy.
  ///
  /// - Throws: `stageFailed` if it cannot be removed: it may be as large as the store.
  func remove() throws {
    try connection.close()
    guard let path, unlink(path) != 0 else { return }
    throw InstarError(
      .stageFailed, "cannot remove the copy '\(path)'", cause: String(cString: strerror(errno)),
      next: "make sure that no other process changes the folder '.instar' beside the store")
  }

  /// Closes and removes the copy after an error, which is the one to report. The folder of the clone is removed, too.
  func discard() {
    try? connection.close()
    if let path { unlink(path) }
  }

  /// The files of large values are found by the name of the store without its extension, which therefore stays.
  private static func freePath(besides file: String) -> String {
    let slash = file.lastIndex(of: "/") ?? file.startIndex
    let end = file[slash...].lastIndex(of: ".") ?? file.endIndex
    var path = file[..<end] + ".before"
    while access(String(path), F_OK) == 0 { path += "-1" }
    return String(path)
  }
}
