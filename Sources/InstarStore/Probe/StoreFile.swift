internal import Foundation
public import InstarSchema

/// A store's file and its side files, read without SQLite: the kind of file, whether it is a complete SQLite database,
/// and the state of its log or journal.
///
/// - Important: Probing opens and closes descriptors of the files, which drops every POSIX lock of this process on
///   them. Never probe a file that a connection of this process has open.
public struct StoreFile: Sendable, Hashable {
  /// Absolute, without symbolic links in its folders.
  public var path: String
  /// What identifies the file and its content.
  public var state: State
  /// The bytes on disk; less than the size where the file has holes.
  public var allocatedBytes: Int64
  /// The page size that the header names: 512 to 65536.
  public var pageSizeBytes: Int
  /// Whether the header says write-ahead-log mode.
  public var usesWriteAheadLog: Bool
  /// The write-ahead log; `nil` where there is none.
  public var log: State?
  /// Whether another process has the store open in write-ahead-log mode.
  public var logIsInUse: Bool
  /// The size of the rollback journal; `nil` where there is none with content.
  public var journalSizeBytes: Int64?

  /// The most bytes of a path that SQLite opens: its limit of 512, less what it adds for a journal (pager.c,
  /// `sqlite3PagerOpen`).
  package static let longestPath = 504

  /// Whether there is a rollback journal with content: a transaction is running, or was interrupted.
  public var hasJournal: Bool { journalSizeBytes != nil }

  /// Frames follow a header of 32 bytes.
  public var logHasContent: Bool { (log?.size ?? 0) > 32 }

  /// Identifies a file and its content, to detect that either changed.
  public struct State: Sendable, Hashable {
    package var version: FileVersion
    /// SQLite increments these four bytes of the header with every transaction in rollback mode.
    public var changeCounter: UInt32

    package var identity: FileIdentity { version.identity }
    /// In bytes.
    public var size: Int64 { version.sizeBytes }
  }

  /// Probes a file.
  ///
  /// - Throws: `missingStore`; `unreadableStore`, also where a side file is not a regular file, or the path is longer
  ///   than SQLite opens; `unsafePath` for a symbolic link; `notAStore` for a folder, a FIFO, an empty file, text or
  ///   anything else; `encryptedStore` for what seem to be random bytes in whole sectors; `corruptStore` for an invalid
  ///   header or a truncated database, with the number of missing bytes. The file is unchanged.
  public static func probe(_ path: String) throws(InstarError) -> StoreFile {
    let what = "cannot open '\(path)'"
    let resolved = try resolve(path, what: what)
    let opened = try openFile(resolved, what: what)
    let start = try firstBytes(of: opened, path: path, what: what)
    try requireDatabase(start, size: opened.size, path: path, what: what)
    try requireShortPath(resolved, path: path, what: what)
    let pageSize = try pageSize(in: start, path: path, what: what)
    try requireRegularSideFiles(resolved, path: path, what: what)
    var file = StoreFile(
      path: resolved,
      state: State(opened.status, changeCounter: start.integer(at: 24)),
      allocatedBytes: Int64(opened.status.st_blocks) * 512,
      pageSizeBytes: pageSize, usesWriteAheadLog: start[18] == 2 || start[19] == 2,
      log: state(of: SideFile.log.path(of: resolved)), logIsInUse: false,
      journalSizeBytes: journalSize(SideFile.journal.path(of: resolved)))
    file.logIsInUse = sharedMemoryIsLocked(SideFile.index.path(of: resolved))
    try file.requireOwnJournal(path: path, what: what)
    try file.requireAllPages(ofHeader: start, path: path, what: what)
    return file
  }

  /// Probes a file without opening it, for one that this process may have open.
  ///
  /// Page size, journal mode and side files are left out; the connection knows them.
  ///
  /// - Throws: `missingStore`, `unreadableStore`; `unsafePath` for a symbolic link; `notAStore` for anything but a
  ///   regular file.
  public static func probeWithoutOpening(_ path: String) throws(InstarError) -> StoreFile {
    let what = "cannot open '\(path)'"
    let resolved = try resolve(path, what: what)
    let state = State(
      try regularFile(resolved, what: what), changeCounter: 0)
    return StoreFile(
      path: resolved, state: state, allocatedBytes: state.size, pageSizeBytes: 0,
      usesWriteAheadLog: false, log: nil, logIsInUse: false)
  }

  /// The file of an in-memory store.
  package static let inMemory = StoreFile(
    path: "",
    state: State(stat(), changeCounter: 0),
    allocatedBytes: 0, pageSizeBytes: 0, usesWriteAheadLog: false, log: nil, logIsInUse: false)

  /// Returns the current state of the file and its log; `nil` where the file is gone.
  func currentState() -> (file: State, log: State?)? {
    guard var state = StoreFile.state(of: path) else { return nil }
    let start = ReadableFile(path: path)?.bytes(at: 0, count: 100) ?? []
    if start.count == 100 { state.changeCounter = start.integer(at: 24) }
    return (state, StoreFile.state(of: SideFile.log.path(of: path)))
  }

  /// Returns whether neither the file nor its log has changed since the probe.
  func isUnchanged() -> Bool {
    guard let now = currentState() else { return false }
    return now.file == state && now.log == log
  }
}

// MARK: - Steps

extension StoreFile {
  /// Resolves the folder, not the file, because a store that is a symbolic link is refused.
  private static func resolve(_ path: String, what: String) throws(InstarError) -> String {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw InstarError(
        .unsafePath, what, store: path, cause: "the path is empty or contains a NUL character",
        next: "pass the path of a file")
    }
    let name = path.lastName
    guard !name.isEmpty, name != ".", name != ".." else {
      throw InstarError(
        .notAStore, what, store: path, cause: "a folder, not a file", next: adviceOnFolder(path))
    }
    guard let resolved = RealPath.of(path.parentFolder) else {
      throw systemError(what, path, errno)
    }
    return resolved == "/" ? "/\(name)" : "\(resolved)/\(name)"
  }

  private static func openFile(_ path: String, what: String) throws(InstarError) -> ReadableFile {
    _ = try regularFile(path, what: what)
    errno = 0
    if let file = ReadableFile(path: path) { return file }
    if errno != 0 { throw systemError(what, path, errno) }
    throw InstarError(
      .notAStore, what, store: path, cause: "no longer a regular file",
      next: CommandText.checking(path))
  }

  private static func firstBytes(
    of file: ReadableFile, path: String, what: String
  ) throws(InstarError) -> [UInt8] {
    let count = 4096
    errno = 0
    let bytes = file.bytes(at: 0, count: count)
    let reason = errno
    // No error: the file was cut short in the meantime.
    if bytes.count < min(Int64(count), file.size), reason != 0 {
      throw systemError(what, path, reason)
    }
    return bytes
  }

  private static func regularFile(_ path: String, what: String) throws(InstarError) -> stat {
    guard let status = stat(of: path) else { throw systemError(what, path, errno) }
    guard let kind = status.irregularKind else { return status }
    if status.isLink {
      throw InstarError(.unsafePath, what, store: path, cause: kind, next: adviceOnLink(path))
    }
    throw InstarError(
      .notAStore, what, store: path, cause: "\(kind), not a regular file",
      next: status.isFolder ? adviceOnFolder(path) : CommandText.checking(path))
  }

  private static func requireShortPath(
    _ resolved: String, path: String, what: String
  ) throws(InstarError) {
    guard resolved.utf8.count > longestPath else { return }
    throw InstarError(
      .unreadableStore, what, store: path,
      cause: "the path has \(resolved.utf8.count) bytes; SQLite opens paths of at most "
        + "\(longestPath) bytes",
      next: "move the store to a folder with a shorter path")
  }

  /// Returns the page size that a file's header names, in bytes.
  private static func pageSize(
    in header: [UInt8], path: String, what: String
  ) throws(InstarError) -> Int {
    let written = Int(header[16]) << 8 | Int(header[17])
    let size = written == 1 ? 65536 : written
    guard size >= 512, size <= 65536, size & (size - 1) == 0 else {
      throw InstarError(
        .corruptStore, what, store: path,
        cause: "the file header names a page size of \(size) bytes; SQLite has 512 to 65536",
        next: CommandText.replacing(path)
      ).provingDamage()
    }
    return size
  }

  /// SQLite refuses such a side file with errors that do not name it, some of them only when it writes.
  private static func requireRegularSideFiles(
    _ resolved: String, path: String, what: String
  ) throws(InstarError) {
    for file in SideFile.paths(of: resolved) {
      guard let kind = stat(of: file)?.irregularKind else { continue }
      let (name, aside) = (CommandText.quoted(file), CommandText.quoted(file + ".aside"))
      throw InstarError(
        .unreadableStore, what, store: path,
        cause: "'\(file)' beside the store is \(kind), not a regular file",
        next: "find out what made it, then run: mv --backup=numbered -T \(name) \(aside)")
    }
  }

  /// Refuses a store whose journal belongs to a transaction over several databases.
  private func requireOwnJournal(path: String, what: String) throws(InstarError) {
    guard hasJournal, let name = Self.superJournal(SideFile.journal.path(of: self.path)) else {
      return
    }
    // Rolling it back, SQLite would read the file of that name and remove it in the end.
    throw InstarError(
      .busyStore, what, store: path,
      cause: "a transaction over several databases was interrupted; its journal names '\(name)'",
      next: "open the store once with its app, which rolls the transaction back")
  }

  /// Refuses a file that is shorter than its header says.
  ///
  /// The page count in the header is valid only if the last transaction wrote it, and complete only without a log or
  /// journal.
  private func requireAllPages(
    ofHeader header: [UInt8], path: String, what: String
  ) throws(InstarError) {
    guard header.integer(at: 24) == header.integer(at: 92), !logHasContent, !hasJournal else {
      return
    }
    let bytes = Int64(header.integer(at: 28)) * Int64(pageSizeBytes)
    let missing = bytes - state.size
    guard missing > 0 else { return }
    let error = InstarError(
      .corruptStore, what, store: path,
      cause: "the file is truncated: \(missing) of \(bytes) bytes are missing",
      next: CommandText.replacing(path))
    // An app may have shortened the file, and removed its journal, between these readings.
    throw currentState()?.file == state ? error.provingDamage() : error
  }

  static func systemError(_ what: String, _ path: String, _ code: Int32) -> InstarError {
    let text = String(cString: strerror(code))
    switch code {
    case ENOENT, ENOTDIR:
      let folder = path.parentFolder
      return InstarError(
        .missingStore, what, store: path, cause: "the file does not exist",
        next: "check the path; run: ls -la \(CommandText.quoted(folder))")
    case ENAMETOOLONG:
      return InstarError(
        .missingStore, what, store: path,
        cause: "the path, or a name in it, is longer than the file system allows",
        next: "check the path")
    case ELOOP:
      return InstarError(
        .unsafePath, what, store: path, cause: "a symbolic link", next: adviceOnLink(path))
    case EILSEQ:
      return InstarError(
        .unsafePath, what, store: path, cause: "the path of its folder is not valid UTF-8",
        next: "give the folder a name in UTF-8")
    case EIO:
      return InstarError(
        .unreadableStore, what, store: path, cause: text, next: InstarError.adviceOnDisk)
    default:
      return InstarError(
        .unreadableStore, what, store: path, cause: text,
        next: "check the permissions; run: ls -la \(CommandText.quoted(path))")
    }
  }

  private static func adviceOnFolder(_ path: String) -> String {
    "pass the stores in it; to list them, run: ls -la \(CommandText.quoted(path))"
  }

  private static func adviceOnLink(_ path: String) -> String {
    guard let target = RealPath.of(path) else {
      return "pass the path of a store; to see where the link leads, run: ls -la "
        + CommandText.quoted(path)
    }
    return "pass the path of the link's target: \(CommandText.quoted(target))"
  }

  private static func requireDatabase(
    _ start: [UInt8], size: Int64, path: String, what: String
  ) throws(InstarError) {
    if size == 0 {
      throw InstarError(
        .notAStore, what, store: path, cause: "the file is empty", next: CommandText.checking(path))
    }
    let magic = Array("SQLite format 3\0".utf8)
    if start.starts(with: magic) || (start.count < 16 && magic.starts(with: start)) {
      guard start.count >= 100 else {
        throw InstarError(
          .corruptStore, what, store: path,
          cause: "the file is truncated: \(100 - start.count) bytes of its header are missing",
          next: CommandText.replacing(path)
        ).provingDamage()
      }
      return
    }
    if size >= 512, size % 512 == 0, looksRandom(start) {
      throw InstarError(
        .encryptedStore, what, store: path,
        cause: "not a SQLite database; the file may be encrypted",
        next: "decrypt the store with its app; Instar reads unencrypted stores only")
    }
    guard start.contains(where: { $0 != 0 }) else {
      throw InstarError(
        .notAStore, what, store: path, cause: "not a SQLite database: the file begins with zeros",
        next: "if it was a store, it is damaged; \(CommandText.replacing(path))")
    }
    throw InstarError(
      .notAStore, what, store: path, cause: "not a SQLite database",
      next: CommandText.checking(path))
  }

  /// Whether the bytes have more than 7.2 bits of entropy each, as encrypted ones do. Compressed files have it too;
  /// those with a known magic number are excluded.
  private static func looksRandom(_ bytes: [UInt8]) -> Bool {
    let announced: [[UInt8]] = [
      [0x50, 0x4B], [0x1F, 0x8B], [0x89, 0x50, 0x4E, 0x47], [0xFF, 0xD8], [0xFD, 0x37, 0x7A],
      [0x28, 0xB5, 0x2F, 0xFD], [0x42, 0x5A, 0x68], [0x37, 0x7A, 0xBC], [0x25, 0x50, 0x44, 0x46],
    ]
    if announced.contains(where: { bytes.starts(with: $0) }) { return false }
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    let total = Double(bytes.count)
    let entropy = counts.reduce(0.0) { sum, count in
      guard count > 0 else { return sum }
      let share = Double(count) / total
      return sum - share * log2(share)
    }
    return entropy > 7.2
  }

  /// Returns the state of a file; `nil` where there is none.
  static func state(of path: String) -> State? {
    guard let status = stat(of: path) else { return nil }
    return State(status, changeCounter: 0)
  }

  /// Whether a rollback journal may be needed: SQLite zeroes the header of one that it keeps after the transaction, and
  /// writes that of a new one right before the first page of the database.
  package static func journalHasContent(_ path: String) -> Bool { journalSize(path) != nil }

  /// Returns the size of a rollback journal in bytes; `nil` where it has no content.
  private static func journalSize(_ path: String) -> Int64? {
    guard let file = ReadableFile(path: path), file.bytes(at: 0, count: 1).first ?? 0 != 0 else {
      return nil
    }
    return file.size
  }

  /// Returns the super-journal that a journal names at its end, whose existence decides whether the transaction is
  /// committed; `nil` where it names none.
  ///
  /// From the end: the magic number of 8 bytes, a checksum of 4, the length of the name in 4, the name (pager.c,
  /// `readSuperJournal`).
  private static func superJournal(_ path: String) -> String? {
    guard let file = ReadableFile(path: path), file.size >= 16 else { return nil }
    let end = file.bytes(at: file.size - 16, count: 16)
    let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    guard end.count == 16, Array(end[8...]) == magic else { return nil }
    let length = Int64(end.integer(at: 0))
    guard length > 0, length <= 4096, length <= file.size - 16 else { return nil }
    return String(
      decoding: file.bytes(at: file.size - 16 - length, count: Int(length)),
      as: UTF8.self)
  }

  /// Above the index of a log of 30 GB: no real writer has more.
  private static let sharedMemoryLimitBytes = 64 << 20

  /// Every connection in write-ahead-log mode holds a shared lock on one byte of the `-shm` file, which distinguishes a
  /// file in use from one that a crash left behind (os_unix.c, `UNIX_SHM_DMS`).
  private static func sharedMemoryIsLocked(_ path: String) -> Bool {
    guard let file = ReadableFile(path: path), file.size <= sharedMemoryLimitBytes else {
      return false
    }
    return file.isLocked(at: 128)
  }
}

extension StoreFile.State {
  /// Reads the state of an open file, which stays open; `nil` where it has no header.
  package init?(of descriptor: Int32) {
    var status = stat()
    var header = [UInt8](repeating: 0, count: 100)
    guard fstat(descriptor, &status) == 0, pread(descriptor, &header, 100, 0) == 100 else {
      return nil
    }
    self.init(status, changeCounter: header.integer(at: 24))
  }

  fileprivate init(_ status: stat, changeCounter: UInt32) {
    self.init(version: FileVersion(status), changeCounter: changeCounter)
  }
}
