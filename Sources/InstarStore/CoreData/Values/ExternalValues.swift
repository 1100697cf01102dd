package import Foundation
internal import GRDB
internal import Glibc
package import InstarSchema
internal import Synchronization

/// The large values of a store in files beside it (Core Data layout, section 7).
///
/// In a column that allows it, a stored value begins with a byte: 1, then the value itself; or 2, then the name of a
/// file in `.NAME_SUPPORT/_EXTERNAL_DATA/`, the 36 characters of a UUID. Any other form is treated as the value itself,
/// as in Instar's first stores.
///
/// Files are never overwritten: a changed value is a new file. A file of a statement is removed when its transaction is
/// rolled back. A file without a reference stays until somebody with exclusive access to the store removes it.
package final class ExternalValues: Sendable {
  /// Larger values are in files. Core Data's own limit is not documented; observed were 100 kB and 1 MB.
  package static let inlineLimitBytes = 100 * 1024

  /// Reads a value from its stored form.
  package static let readFunction = "instar_external_read"
  /// Converts a value to its stored form; creates a file for a large one.
  package static let writeFunction = "instar_external_write"

  /// The folder for new files; `nil` for an in-memory store, which keeps all values inside.
  private let folder: String?
  /// Further folders with files of the store.
  package let otherFolders: [String]
  private let isDurable: Bool
  private let made = Mutex<[String]>([])

  /// - Parameters:
  ///   - folder: The folder of the store's own files, `ExternalValues.folder(ofStore:)`.
  ///   - otherFolders: Further folders, which are only read.
  ///   - isDurable: Whether new files are synchronized to disk.
  package init(folder: String?, otherFolders: [String] = [], isDurable: Bool = false) {
    self.folder = folder
    self.otherFolders = otherFolders
    self.isDurable = isDurable
  }

  /// Returns the folder with the files of a store.
  package static func folder(ofStore path: String) -> String {
    supportFolder(ofStore: path) + "/_EXTERNAL_DATA"
  }

  /// Returns the folder of Core Data's files for a store.
  package static func supportFolder(ofStore path: String) -> String {
    let name = path.lastName
    let base = name.lastIndex(of: ".").map { name[..<$0] } ?? name[...]
    return path.sibling(".\(base)_SUPPORT")
  }

  /// The stored form of a value.
  package enum Form: Sendable, Hashable {
    case inline([UInt8])
    /// The name of the file.
    case file(String)
    /// Bytes without a mark.
    case bare([UInt8])

    package init(stored: some Collection<UInt8>) {
      let rest = stored.dropFirst()
      switch stored.first {
      case 1: self = .inline(Array(rest))
      case 2:
        if let name = Self.fileName(rest) { self = .file(name) } else { fallthrough }
      default: self = .bare(Array(stored))
      }
    }

    /// A UUID in upper or lower case, optionally followed by zeros.
    private static func fileName(_ bytes: some Collection<UInt8>) -> String? {
      let name = bytes.prefix(36)
      guard bytes.count <= 40, bytes.dropFirst(36).allSatisfy({ $0 == 0 }),
        let text = String(validating: name, as: UTF8.self), UUID(uuidString: text) != nil
      else { return nil }
      return text
    }

    package var stored: [UInt8] {
      switch self {
      case .inline(let bytes): [1] + bytes
      // With the NUL of a C string, as Apple's frameworks write it.
      case .file(let name): [2] + Array(name.utf8) + [0]
      case .bare(let bytes): bytes
      }
    }
  }

  /// Returns a value that is not in a file as a column has it that allows files.
  package static func inline(_ value: AttributeValue) -> AttributeValue {
    switch value {
    case .blob(let bytes): .blob(Form.inline(bytes).stored)
    case .text(let text): .blob(Form.inline(Array(text.utf8)).stored)
    // No mark, like `write`: these are numbers, not bytes.
    case .integer, .real: value
    }
  }

  /// Returns the path of a file of the store; `nil` where there is none of that name.
  package func path(ofFile name: String) -> String? {
    ([folder].compactMap(\.self) + otherFolders).map { "\($0)/\(name)" }.first { path in
      stat(of: path)?.isRegular == true
    }
  }

  /// - Throws: `brokenReferences` where a file is missing, `unreadableStore` where it cannot be read.
  package func read(_ stored: some Collection<UInt8>) throws(InstarError) -> Data {
    switch Form(stored: stored) {
    case .inline(let bytes), .bare(let bytes): return Data(bytes)
    case .file(let name):
      guard let path = path(ofFile: name) else {
        throw InstarError(
          .brokenReferences, "cannot read a value",
          cause: "the file '\(name)' of a large value is missing from '\(folder ?? "")'",
          next: CommandText.restoring(nil))
      }
      do {
        return try Data(contentsOf: URL(fileURLWithPath: path))
      } catch {
        throw InstarError(
          .unreadableStore, "cannot read a value", cause: "\(path): \(error.localizedDescription)",
          next: "run: ls -l \(CommandText.quoted(path))")
      }
    }
  }

  /// Returns the stored form of a value. A large one gets a new file.
  ///
  /// - Throws: `noSpace` or `unreadableStore` where the file cannot be created.
  package func write(_ value: Data) throws(InstarError) -> Form {
    guard let folder, value.count > Self.inlineLimitBytes else { return .inline(Array(value)) }
    let name = UUID().uuidString
    let path = "\(folder)/\(name)"
    for path in [String(folder.dropLast("/_EXTERNAL_DATA".count)), folder] {
      if mkdir(path, 0o777) == 0 {
        try synchronizeFolder(of: path, value)
      } else if errno != EEXIST {
        throw Self.failure(value, path, errno)
      }
    }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw Self.failure(value, path, errno) }
    defer { close(descriptor) }
    made.withLock { $0.append(path) }
    do throws(InstarError) {
      try write(value, to: descriptor, path)
      try synchronizeFolder(of: path, value)
    } catch {
      unlink(path)
      throw error
    }
    return .file(name)
  }

  private func write(
    _ value: Data, to descriptor: Int32, _ path: String
  ) throws(InstarError) {
    var written = 0
    while written < value.count {
      let count = value.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, value.count - written)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw Self.failure(value, path, errno) }
      written += count
    }
    if isDurable, fsync(descriptor) != 0 { throw Self.failure(value, path, errno) }
  }

  /// After a power failure, committed rows must find their files, so the folder is synchronized too.
  private func synchronizeFolder(of path: String, _ value: Data) throws(InstarError) {
    guard isDurable else { return }
    let folder = path.parentFolder
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure(value, path, errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw Self.failure(value, path, errno) }
  }

  private static func failure(_ value: Data, _ path: String, _ code: Int32) -> InstarError {
    InstarError(
      InstarError.isFull(code) ? .noSpace : .unreadableStore,
      "cannot write a value of \(value.count) bytes to a file",
      cause: "\(path): \(String(cString: strerror(code)))")
  }

  /// Removes files without references from the store's own folder.
  package func remove(_ names: Set<String>) {
    guard let folder else { return }
    for name in names { unlink("\(folder)/\(name)") }
  }

  /// Keeps the files that were created since the last call.
  package func keepMade() {
    made.withLock { $0.removeAll() }
  }

  /// The number of files that were created since they were last kept.
  package var madeCount: Int { made.withLock(\.count) }

  /// Removes the files that were created since they were last kept, except the first ones.
  package func removeMade(after count: Int = 0) {
    let paths = made.withLock { paths in
      defer { paths.removeSubrange(min(count, paths.count)...) }
      return paths.dropFirst(count)
    }
    for path in paths { unlink(path) }
  }

  /// Registers the functions that statements of the SDK call.
  func register(_ db: Database) {
    db.add(
      function: DatabaseFunction(Self.readFunction, argumentCount: 1) { [self] arguments in
        guard let stored = Data.fromDatabaseValue(arguments[0]) else { return arguments[0] }
        return try Self.describing { () throws(InstarError) in try read(stored) }
      })
    db.add(
      function: DatabaseFunction(Self.writeFunction, argumentCount: 1) { [self] arguments in
        guard let value = Data.fromDatabaseValue(arguments[0]) else { return arguments[0] }
        return try Self.describing { () throws(InstarError) in Data(try write(value).stored) }
      })
  }

  /// SQLite reports only the text of an error.
  private static func describing(
    _ body: () throws(InstarError) -> Data
  ) throws -> Data {
    do throws(InstarError) {
      return try body()
    } catch {
      throw DatabaseError(
        resultCode: error.code == .noSpace ? .SQLITE_FULL : .SQLITE_ERROR,
        message: "\(error.what): \(error.cause)")
    }
  }
}

extension Schema.Attribute {
  /// Whether large values of the attribute may be in files beside the store.
  package var mayBeExternal: Bool {
    options.contains(.externalStorage) && !isEphemeral && !name.contains(".")
      && [.data, .codable].contains(type)
  }
}
