internal import CDatabase
public import Foundation
public import GRDB
internal import GRDBSQLite
internal import InstarSchema

/// Opens SQLite connections to stores, which may be damaged or hostile.
///
/// Every connection distrusts the schema (`trusted_schema=OFF`), is in defensive mode, checks cell sizes, loads no
/// extensions, opens only regular files without following symbolic links, and creates no file. `WorkLimit` bounds the
/// cost of opening.
public enum GuardedConnection {
  /// What a connection may do, and which locks it takes.
  public enum Access: Sendable, Hashable {
    /// Reads and writes under SQLite's locks.
    case readWrite
    /// Reads under SQLite's locks.
    case readOnly
    /// Reads without locks and side files; nobody may write meanwhile.
    case immutable
    /// Reads a write-ahead log without shared memory and without locks; nobody may write meanwhile.
    case withoutSharedMemory
  }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: An absolute path that the caller has checked for symbolic links.
  ///   - busyTimeout: Seconds to wait for a lock of another process.
  ///   - firesTriggers: Whether statements of this connection fire the store's triggers.
  ///   - openingSeconds: The processor time limit for opening, which reads the schema.
  ///   - beginsReading: Whether the connection begins with a transaction.
  public static func open(
    _ path: String, access: Access, busyTimeout: TimeInterval = 0, firesTriggers: Bool = true,
    openingSeconds: Double = 5, beginsReading: Bool = false
  ) throws -> DatabaseQueue {
    try open(
      uniformResourceIdentifier: uniformResourceIdentifier(of: path, access: access),
      access: access, busyTimeout: busyTimeout, firesTriggers: firesTriggers,
      openingSeconds: openingSeconds, beginsReading: beginsReading)
  }

  private static func open(
    uniformResourceIdentifier: String, access: Access, busyTimeout: TimeInterval,
    firesTriggers: Bool, openingSeconds: Double, beginsReading: Bool
  ) throws -> DatabaseQueue {
    func connect(trustsSchema: Bool) throws -> DatabaseQueue {
      try self.connect(
        uniformResourceIdentifier, access: access, busyTimeout: busyTimeout,
        firesTriggers: firesTriggers,
        openingSeconds: openingSeconds, beginsReading: beginsReading, trustsSchema: trustsSchema)
    }
    do {
      return try connect(trustsSchema: false)
    } catch let error as DatabaseError
      where Self.isAboutJSON(error.message ?? "")
    {
      // SQLite 3.40 treats its own JSON functions and operators as unsafe, and refuses to read a schema that calls
      // them, as Django's `CHECK` clauses do. Trusting the schema is safe here: the connection has only SQLite's own
      // functions and loads no extension.
      return try connect(trustsSchema: true)
    }
  }

  /// Opens a store, calls `body`, and closes the connection again, also where `body` throws.
  package static func use<T>(
    _ path: String, access: Access, busyTimeout: TimeInterval = 0, firesTriggers: Bool = true,
    _ body: (Database) throws -> T
  ) throws -> T {
    let queue = try open(
      path, access: access, busyTimeout: busyTimeout, firesTriggers: firesTriggers)
    // The statements are done, and what they wrote is committed: an error of closing changes nothing.
    defer { try? queue.close() }
    return try queue.inDatabase(body)
  }

  private static func isAboutJSON(_ message: String) -> Bool {
    ["UNSAFE USE OF JSON", "UNSAFE USE OF ->"].contains(where: message.uppercased().contains)
  }

  private static func connect(
    _ uniformResourceIdentifier: String, access: Access, busyTimeout: TimeInterval,
    firesTriggers: Bool, openingSeconds: Double, beginsReading: Bool, trustsSchema: Bool
  ) throws -> DatabaseQueue {
    guard guardCode == SQLITE_OK else {
      throw DatabaseError(resultCode: ResultCode(rawValue: guardCode))
    }
    var configuration = Configuration()
    configuration.readonly = access != .readWrite
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    // As the app's SQLite does, unless it is told otherwise: its schema may have such literals.
    configuration.acceptsDoubleQuotedStringLiterals = true
    configuration.busyMode =
      busyTimeout > 0 ? .callback { Self.waitForLock(attempt: $0, busyTimeout) } : .immediateError
    configuration.prepareDatabase { db in
      // The first statement reads the schema. It is run here: where it fails, GRDB closes the connection, and the limit
      // must have ended before.
      let limit = WorkLimit(of: db.sqliteConnection, processorSeconds: openingSeconds)
      defer { limit.end() }
      db.removeAuthorizer()
      instar_budget_observe(db.sqliteConnection)
      try set(SQLITE_DBCONFIG_DEFENSIVE, to: true, on: db)
      try set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, to: trustsSchema, on: db)
      try set(SQLITE_DBCONFIG_ENABLE_TRIGGER, to: firesTriggers, on: db)
      try db.runWithoutRows("PRAGMA cell_size_check = ON")
      if access != .readWrite { try limitReading(db) }
      if access == .withoutSharedMemory {
        // The index of the log is then in memory. This must be set before the first read.
        try db.runWithoutRows("PRAGMA locking_mode = EXCLUSIVE")
        try keepLogOnClose(true, db)
      }
      // Before the first statement reads the schema: SQLite takes and releases its locks for each transaction.
      if beginsReading { try db.runWithoutRows("BEGIN") }
      try db.runWithoutRows("SELECT 1 FROM sqlite_schema LIMIT 1")
    }
    return try DatabaseQueue(path: uniformResourceIdentifier, configuration: configuration)
  }

  /// Opens a store for reading, calls `body`, and closes it again.
  ///
  /// SQLite opens only the file that was probed and its side files, and creates, changes or removes none of them (see
  /// `instar_guard_enter`).
  ///
  /// - Throws: `storeChanged` where the path now names another file; else the database's error, or the error of `body`.
  static func read<T>(
    _ file: StoreFile, access: Access, busyTimeout: TimeInterval = 0,
    body: (Database) throws -> T
  ) throws -> T {
    let queue = try guarded(file) {
      try open(
        file.path, access: access, busyTimeout: busyTimeout, firesTriggers: false,
        openingSeconds: WorkLimit.seconds(for: file), beginsReading: true)
    }
    defer { try? guarded(file) { try queue.close() } }
    return try queue.inDatabase { db in
      try guarded(file) {
        // All statements see one state of the store: the connection began with a transaction.
        defer { try? db.runWithoutRows("ROLLBACK") }
        return try body(db)
      }
    }
  }

  /// Ends a write transaction in write-ahead-log mode so that its lock stays with this process: the
  /// next connection of this process that begins to write takes it over, and no other process can
  /// come in between.
  public static func commitKeepingWriteLock(_ db: Database) throws {
    instar_keep_write_lock(1)
    defer { instar_keep_write_lock(0) }
    try db.runWithoutRows("COMMIT")
  }

  /// Sets whether closing this connection, as the last one, leaves the write-ahead log as it is. Else SQLite copies it
  /// into the store and removes it.
  package static func keepLogOnClose(_ keeps: Bool, _ db: Database) throws {
    try set(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, to: keeps, on: db)
  }

  /// Guards what SQLite opens on this thread while `body` runs.
  private static func guarded<T>(_ file: StoreFile, _ body: () throws -> T) throws -> T {
    let result = file.path.withCString { path in
      instar_guard_enter(path, file.state.identity.device, file.state.identity.inode)
      let result = Result { try body() }
      return instar_guard_leave() == 0 ? result : nil
    }
    guard let result else {
      throw InstarError(
        .storeChanged, "cannot open '\(file.path)'", store: file.path,
        cause: "the file was replaced while it was opened", state: "unchanged",
        next: CommandText.repetition)
    }
    return try result.get()
  }

  /// For the whole process, once: SQLite's system calls are the process's.
  private static let guardCode = instar_guard_install()

  /// The longest text or blob of a store that is read, and the longest that SQLite may make while
  /// it reads.
  static let valueLimitBytes: Int32 = 64 << 20

  /// What a hostile schema or query can make SQLite do. Real stores need far less.
  private static let readingLimits: [(name: Int32, value: Int32)] = [
    (SQLITE_LIMIT_LENGTH, valueLimitBytes), (SQLITE_LIMIT_SQL_LENGTH, valueLimitBytes),
    (SQLITE_LIMIT_VDBE_OP, 1_000_000), (SQLITE_LIMIT_TRIGGER_DEPTH, 10),
    (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]

  /// Runs `body` while the connection writes nothing and has the limits of one that reads, whatever it was opened for.
  ///
  /// `sqlite3_stmt_readonly` is not enough for the query of a plugin: `SELECT 1 FROM pragma_optimize` runs ANALYZE, and
  /// FTS3's function `optimize` writes its tables.
  ///
  /// - Throws: The error of `body`; else the database's, where a setting cannot be made or taken back.
  package static func onlyReading<T>(_ db: Database, _ body: () throws -> T) throws -> T {
    let connection = db.sqliteConnection
    let onlyRead = try db.integer("PRAGMA query_only") == 1
    try db.runWithoutRows("PRAGMA query_only = ON")
    let earlier = readingLimits.map { ($0.name, sqlite3_limit(connection, $0.name, $0.value)) }
    let result = Result { try body() }
    for (name, value) in earlier { sqlite3_limit(connection, name, value) }
    if !onlyRead { try db.runWithoutRows("PRAGMA query_only = OFF") }
    return try result.get()
  }

  private static func limitReading(_ db: Database) throws {
    for limit in readingLimits { sqlite3_limit(db.sqliteConnection, limit.name, limit.value) }
    // Keeps temporary data in memory instead of files.
    try db.runWithoutRows("PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0")
  }

  /// Limits SQLite's memory in this process. For processes that only work on stores.
  public static func limitProcessMemory() {
    sqlite3_hard_heap_limit64(512 << 20)
  }

  /// Sleeps briefly before a lock is retried. Returns `false` when the time is over.
  ///
  /// SQLite's own busy timeout retries only ten times a second, and may miss every moment at which a busy writer
  /// releases the lock.
  private static func waitForLock(attempt: Int, _ busyTimeout: TimeInterval) -> Bool {
    let intervalMicroseconds = 3000
    guard Double(attempt * intervalMicroseconds) < busyTimeout * 1_000_000 else { return false }
    usleep(useconds_t(intervalMicroseconds))
    return true
  }

  /// Returns the path as a URI with parameters. A path is never passed bare, because Debian's SQLite parses file names
  /// that begin with `file:` as URIs.
  static func uniformResourceIdentifier(of path: String, access: Access) -> String {
    var text = "file:"
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."),
        UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += "%" + Digest.hexadecimal([byte])
      }
    }
    switch access {
    case .readWrite: return text + "?mode=rw"
    case .readOnly: return text + "?mode=ro"
    case .immutable: return text + "?mode=ro&immutable=1"
    case .withoutSharedMemory: return text + "?mode=ro&vfs=unix-none"
    }
  }

  private static func set(_ setting: Int32, to isOn: Bool, on db: Database) throws {
    let code = instar_database_setting(db.sqliteConnection, setting, isOn ? 1 : 0)
    guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }
}
