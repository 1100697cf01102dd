package import InstarSchema

extension InstarError {
  /// Whether a whole file that was read has unusable content. It decides what manifests record: `restore` refuses a
  /// backup with a damaged content for ever.
  ///
  /// Any other error says that the file was not read to its end: a disk, a limit, a lock or another process ended that.
  /// SQLite may read the same file well the next time.
  package var provesUnusableContent: Bool {
    switch code {
    case .corruptStore, .notAStore, .encryptedStore, .sqlFailed, .unsupported: true
    // GRDB could not decode a value that SQLite has read.
    case .internalError: true
    default: false
    }
  }
}
