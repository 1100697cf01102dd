internal import GRDB
internal import InstarStore

/// The file that becomes the backup of a run. Nobody writes it from the time the clone is made until the cutover.
enum BackupSource: Sendable {
  /// A private copy of the store, which is made durable.
  case copy(String)
  /// The store itself, which is locked: an exchange makes its file the backup.
  case store(StoreLock.LockedContent)

  /// Opens what becomes the backup, and calls `body`.
  func read(_ body: (Database) throws -> Void) throws {
    switch self {
    case .copy(let file): try GuardedConnection.use(file, access: .immutable, body)
    case .store(let content): try content.read(body)
    }
  }
}
