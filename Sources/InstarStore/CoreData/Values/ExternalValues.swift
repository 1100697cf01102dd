package import Foundation
internal import GRDB
internal import Glibc
package import InstarSchema
internal import Synchronization

/// Large values of a store that lie in files beside it (Core Data layout, section 7).
///
/// In a column that allows it, a stored value is a byte that tells what follows: 1, then the value itself; or 2, then the
/// name of a file in `.NAME_SUPPORT/_EXTERNAL_DATA/`, 36 characters of a UUID. A value of any other form is taken for the
/// value itself, as Instar's first stores have it.
///
/// Files are never written over: a changed value is a new file. One that a statement has made is removed when the
/// transaction is undone; one that no row refers to any more stays until whoever has the store to himself removes it.
package final class ExternalValues: Sendable {
  /// Values with more bytes than this are kept in files. Core Data's own limit is not documented; it was seen at 100 kB
  /// and at 1 MB.
  package static let inlineLimitBytes = 100 * 1024

  /// Gives a value of its stored form.
  package static let readFunction = "instar_external_read"
  /// Gives the stored form of a value; makes a file for a large one.
  package static let writeFunction = "instar_external_write"

  /// Where files are made; `nil` for a store in memory, which keeps all values inside.
  private let folder: String?
  /// Where else files of the store are.
  private let otherFolders: [String]
  private let isDurable: Bool
  private let made = Mutex<[String]>([])

  /// - Parameters:
  ///   - folder: The folder of the store's own files, `ExternalValues.folder(ofStore:)`.
  ///   - otherFolders: Folders with more files, which are only read.
  ///   - isDurable: Whether a file is brought to disk when it is made.
  package init(folder: String?, otherFolders: [String] = [], isDurable: Bool = false) {
    self.folder = folder
    self.otherFolders = otherFolders
    self.isDurable = isDurable
  }

  /// The folder with the files of a store.
  package static func folder(ofStore path: String) -> String {
    supportFolder(ofStore: path) + "/_EXTERNAL_DATA"
  }

  /// The folder in which Core Data keeps what belongs to a store.
  package static func supportFolder(ofStore path: String) -> String {
    let slash = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    let name = path[slash...]
    let base = name.lastIndex(of: ".").map { name[..<$0] } ?? name
    return "\(path[..<slash]).\(base)_SUPPORT"
  }

  /// What a stored value is.
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

    /// A UUID, whatever the case of its letters; zeros may follow.
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
      // With the zero that ends a string in C, as Apple's frameworks write it.
      case .file(let name): [2] + Array(name.utf8) + [0]
      case .bare(let bytes): bytes
      }
    }
  }

  /// The path of a file of the store; `nil` where there is none of that name.
  package func path(ofFile name: String) -> String? {
    ([folder].compactMap(\.self) + otherFolders).map { "\($0)/\(name)" }.first { path in
      var status = stat()
      return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
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
          cause: "the file '\(name)' that holds it is missing from '\(folder ?? "")'")
      }
      do {
        return try Data(contentsOf: URL(fileURLWithPath: path))
      } catch {
        throw InstarError(
          .unreadableStore, "cannot read a value", cause: "\(path): \(error.localizedDescription)")
      }
    }
  }

  /// The stored form of a value; that of a large one is a new file.
  ///
  /// - Throws: `noSpace` or `unreadableStore` where the file cannot be made.
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

  /// A row that is committed names the file: after a power failure the folder has to know it, too.
  private func synchronizeFolder(of path: String, _ value: Data) throws(InstarError) {
    guard isDurable else { return }
    let folder = (path as NSString).deletingLastPathComponent
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure(value, path, errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw Self.failure(value, path, errno) }
  }

  private static func failure(_ value: Data, _ path: String, _ code: Int32) -> InstarError {
    InstarError(
      code == ENOSPC || code == EDQUOT ? .noSpace : .unreadableStore,
      "cannot keep a value of \(value.count) bytes",
      cause: "\(path): \(String(cString: strerror(code)))")
  }

  /// Removes files that no row refers to any more from the store's own folder.
  package func remove(_ names: Set<String>) {
    guard let folder else { return }
    for name in names { unlink("\(folder)/\(name)") }
  }

  /// The files that were made since this was last called stay.
  package func keepMade() {
    made.withLock { $0.removeAll() }
  }

  /// Removes the files that were made since they were last kept.
  package func removeMade() {
    let paths = made.withLock { paths in
      defer { paths.removeAll() }
      return paths
    }
    for path in paths { unlink(path) }
  }

  /// Makes the functions that statements of the SDK call.
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

  /// SQLite passes on the text of an error only.
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
  /// Whether large values of it may lie in files beside the store.
  package var mayBeExternal: Bool {
    options.contains(.externalStorage) && !isEphemeral && !name.contains(".")
      && [.data, .codable].contains(type)
  }
}
