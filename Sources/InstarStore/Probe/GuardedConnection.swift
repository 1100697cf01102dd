internal import CDatabase
public import Foundation
public import GRDB
internal import GRDBSQLite

/// Opens SQLite connections to stores, which are input: they may be damaged or made to do harm.
///
/// Every connection distrusts the schema (`trusted_schema=OFF`), is in defensive mode, checks cell
/// sizes, cannot load extensions, and never makes a file.
public enum GuardedConnection {
  /// What a connection may do, and how it stands to other processes.
  public enum Access: Sendable, Hashable {
    /// Reads and writes under SQLite's locks.
    case readWrite
    /// Reads under SQLite's locks.
    case readOnly
    /// Reads without locks and without looking at side files; nobody may write meanwhile.
    case immutable
    /// Reads a write-ahead log without shared memory and without locks; nobody may write meanwhile.
    case withoutSharedMemory
  }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: An absolute path. Whether it is a symbolic link has to be known before.
  ///   - busyTimeout: Seconds to wait for a lock of another process.
  ///   - firesTriggers: Whether statements of this connection fire the store's triggers.
  public static func open(
    _ path: String, access: Access, busyTimeout: TimeInterval = 0, firesTriggers: Bool = true
  ) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = access != .readWrite
    configuration.foreignKeysEnabled = false
    configuration.allowsUnsafeTransactions = true
    configuration.busyMode =
      busyTimeout > 0 ? .callback { Self.waitForLock(attempt: $0, busyTimeout) } : .immediateError
    configuration.prepareDatabase { db in
      try set(SQLITE_DBCONFIG_DEFENSIVE, to: true, on: db)
      try set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, to: false, on: db)
      try set(SQLITE_DBCONFIG_ENABLE_TRIGGER, to: firesTriggers, on: db)
      try db.execute(sql: "PRAGMA cell_size_check = ON")
      if access == .withoutSharedMemory {
        // In this mode the index of the log is kept in memory. Said before the first read: later is
        // too late.
        try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
        // The log stays where it is when the connection is closed.
        try set(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, to: true, on: db)
      }
    }
    return try DatabaseQueue(
      path: uniformResourceIdentifier(of: path, access: access), configuration: configuration)
  }

  /// Sleeps a moment before a lock is tried again. `false` when the time is over.
  ///
  /// SQLite's own busy timeout tries ten times a second in the end, and may never get hold of a
  /// store whose writer lets go of it for a moment only.
  private static func waitForLock(attempt: Int, _ busyTimeout: TimeInterval) -> Bool {
    let intervalMicroseconds = 3000
    guard Double(attempt * intervalMicroseconds) < busyTimeout * 1_000_000 else { return false }
    usleep(useconds_t(intervalMicroseconds))
    return true
  }

  /// The path as SQLite wants it where it comes with parameters (Debian's SQLite reads these in
  /// every file name that begins with `file:`; so a path is never given bare).
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
