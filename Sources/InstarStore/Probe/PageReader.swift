internal import CDatabase
internal import Foundation
internal import GRDBSQLite
internal import InstarSchema

/// A store that nobody writes, read without SQLite: opening a connection and preparing statements take many times as
/// long as reading the few pages that a probe needs.
///
/// Invariants:
/// - Rows that are returned are those that SQLite would return, in the same order: the C code accepts only pages on
///   which SQLite finds no fault, and leaves all others to SQLite.
/// - In rollback mode the file is locked as a connection that reads locks it, and no journal has content. With a
///   write-ahead log there is no lock; then the rows count only if `areCurrent` finds the same state as before.
/// - No file is created, changed or removed.
final class PageReader {
  private let file: StoreFile
  private let opened: ReadableFile
  private let pages: instar_pages
  private let roots: [UInt32]
  /// As of `SchemaKey`.
  let schemaKey: SchemaKey

  /// What `PRAGMA user_version` returns.
  var userVersion: Int32 { pages.user_version }

  /// - Returns: `nil` where only SQLite can read the store.
  init?(_ file: StoreFile) {
    guard !file.hasJournal, !file.logHasContent, file.usesWriteAheadLog || file.log == nil,
      let opened = ReadableFile(path: file.path),
      FileIdentity(opened.status) == file.state.identity,
      file.usesWriteAheadLog || Self.lock(opened, file)
    else { return nil }
    var pages = instar_pages()
    // Under the lock: the size that was read before may be an older one.
    guard let status = opened.currentStatus(),
      instar_pages_open(&pages, opened.descriptor, Int64(status.st_size)) == SQLITE_OK,
      (pages.uses_log != 0) == file.usesWriteAheadLog
    else { return nil }
    var list = instar_row_list()
    list.limit = SchemaKey.limitBytes
    var roots: UnsafeMutablePointer<UInt32>?
    var count = 0
    let code = instar_pages_read_schema(&pages, &list, &roots, &count)
    defer {
      free(list.bytes)
      free(roots)
    }
    guard code == SQLITE_DONE else { return nil }
    schemaKey = SchemaKey(
      SchemaKey.start(fileFormat: Self.fileFormat)
        + UnsafeBufferPointer(start: list.bytes, count: list.count))
    self.roots = Array(UnsafeBufferPointer(start: roots, count: count))
    self.file = file
    self.opened = opened
    self.pages = pages
  }

  /// Files of other formats are left to SQLite.
  private static let fileFormat: Int32 = 4

  /// Locks a file in rollback mode as SQLite does, and looks for side files as SQLite does then.
  private static func lock(_ opened: ReadableFile, _ file: StoreFile) -> Bool {
    opened.lockForReading() && StoreFile.state(of: SideFile.log.path(of: file.path)) == nil
      && hasNoTransaction(SideFile.journal.path(of: file.path))
  }

  /// Whether there is no journal, or one that SQLite kept after a transaction.
  private static func hasNoTransaction(_ journal: String) -> Bool {
    var status = stat()
    guard lstat(journal, &status) == 0 else { return errno == ENOENT }
    // One that SQLite could not read either may have content.
    guard let opened = ReadableFile(path: journal) else { return false }
    return (opened.bytes(at: 0, count: 1).first ?? 0) == 0
  }

  /// Whether nobody wrote the store since it was probed. In rollback mode the lock made sure of that.
  func areCurrent() -> Bool {
    guard file.usesWriteAheadLog else { return true }
    guard let now = file.currentState() else { return false }
    return now.file == file.state && now.log == file.log
  }

  struct Row {
    let rowID: Int64
    let values: [Value]
  }

  enum Value {
    case null
    case integer(Int64)
    case text([UInt8])
    case blob([UInt8])

    /// Returns a text that reads the same whoever decodes it.
    ///
    /// - Returns: `nil` for another value, and for a text that is longer, is not UTF-8 or has a NUL.
    func text(limitBytes: Int) -> String? {
      guard case .text(let bytes) = self, bytes.count <= limitBytes, !bytes.contains(0) else {
        return nil
      }
      return String(validating: bytes, as: UTF8.self)
    }
  }

  private static let rowsLimitBytes = 5 << 20
  private static let rowLimit = 20_000

  /// Returns the rows of a table, with the first columns of each.
  ///
  /// - Returns: `nil` where only SQLite can read them.
  func rows(of table: String, _ tables: StoreTables, columns: Int) -> [Row]? {
    guard let tree = tables.trees[table], roots.indices.contains(tree.place) else { return nil }
    var list = instar_row_list()
    list.limit = Self.rowsLimitBytes
    var pages = pages
    let code = instar_pages_read(&pages, roots[tree.place], Int32(columns), &list)
    defer { free(list.bytes) }
    guard code == SQLITE_DONE else { return nil }
    var values = ValueReader(UnsafeRawBufferPointer(start: list.bytes, count: list.count))
    var rows: [Row] = []
    while case .integer(let rowID)? = values.next() {
      guard rows.count < Self.rowLimit else { return nil }
      rows.append(Row(rowID: rowID, values: (0..<columns).map { _ in values.next() ?? .null }))
    }
    return rows
  }
}

/// Reads the values of an `instar_row_list`.
private struct ValueReader {
  private var bytes: Slice<UnsafeRawBufferPointer>

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes[...] }

  /// Returns the next value; `nil` at the end.
  mutating func next() -> PageReader.Value? {
    guard let kind = bytes.popFirst() else { return nil }
    switch kind {
    case 1: return number().map { .integer($0) }
    case 3: return content().map { .text($0) }
    case 4: return content().map { .blob($0) }
    default: return .null
    }
  }

  private mutating func number() -> Int64? {
    let size = MemoryLayout<Int64>.size
    guard bytes.count >= size else { return nil }
    let number = UnsafeRawBufferPointer(rebasing: bytes.prefix(size)).loadUnaligned(as: Int64.self)
    bytes = bytes.dropFirst(size)
    return number
  }

  private mutating func content() -> [UInt8]? {
    guard let size = number(), size >= 0, size <= bytes.count else { return nil }
    defer { bytes = bytes.dropFirst(Int(size)) }
    return Array(bytes.prefix(Int(size)))
  }
}
