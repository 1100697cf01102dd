internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

// The file of the locked store: whether its path still names it, and the descriptors that SQLite has of it.

extension StoreLock {
  /// Whether the path still names the locked file.
  var hasPath: Bool { isFile(at: path) }

  var inode: UInt64 { file.state.identity.inode }

  /// Whether a path names the locked file.
  func isFile(at path: String) -> Bool {
    stat(of: path).map(FileIdentity.init) == file.state.identity
  }

  /// - Parameter time: When the path still named the file, in words.
  /// - Throws: `missingStore` or `storeChanged` where the path no longer names the locked file.
  func requirePath(_ what: String, since time: String) throws(InstarError) {
    if hasPath { return }
    var status = stat()
    if lstat(path, &status) != 0, errno == ENOENT {
      throw InstarError(
        .missingStore, what, cause: "another process removed or renamed the file \(time)",
        state: "missing", next: "stop the process that removes '\(path)'")
    }
    throw InstarError(
      .storeChanged, what, cause: "another process replaced the file \(time)",
      next: "stop the process that replaces '\(path)', then \(CommandText.repetition)")
  }

  /// The path must still name the locked file, and no other path may.
  func requireSamePath() throws {
    try requirePath("cannot write the store", since: "after it was copied")
    try StoreTrust.requireSingleLink(path)
  }

  /// Checks that SQLite opened the inspected file: SQLite opens by name, and the file may have been replaced after the
  /// inspection. Reads the status of this process's descriptors, and opens nothing.
  ///
  /// - Returns: The descriptor.
  static func requireOpen(_ file: StoreFile) throws -> Int32 {
    if let descriptor = try descriptor(of: file.state.identity) { return descriptor }
    throw InstarError(
      .storeChanged, "cannot lock the store",
      cause: "the file was replaced after it was inspected", next: CommandText.repetition)
  }

  /// SQLite's descriptor of the store; `nil` where this process does not have it open. It must not be closed.
  ///
  /// Tries the descriptor that was found first, because listing all descriptors takes long.
  func descriptor() throws -> Int32? {
    if Self.isDescriptor(firstDescriptor, of: file.state.identity) { return firstDescriptor }
    return try Self.descriptor(of: file.state.identity)
  }

  /// Returns SQLite's descriptor of a file; `nil` where this process does not have it open. It must not be closed.
  static func descriptor(of file: FileIdentity) throws -> Int32? {
    try descriptors(of: file).first
  }

  /// This process's descriptors of a file.
  static func descriptors(of file: FileIdentity) throws -> [Int32] {
    try FolderNames.all(in: "/proc/self/fd").compactMap(Int32.init)
      .filter { isDescriptor($0, of: file) }
  }

  private static func isDescriptor(_ descriptor: Int32, of file: FileIdentity) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && FileIdentity(status) == file
  }
}
