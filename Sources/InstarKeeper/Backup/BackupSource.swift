/// The file that becomes the backup of a run. Nobody writes it from the time the clone is made until the cutover.
enum BackupSource: Sendable {
  /// A private copy of the store, which is made durable.
  case copy(String)
  /// The store itself, which is locked: an exchange makes its file the backup.
  case store(StoreLock.LockedContent)
}
