internal import InstarSchema

extension Replicator {
  /// - Throws: `unsupported` for a store without a write-ahead log: the replicator would not see the cutover.
  func requireLog(_ usesLog: Bool, of store: String) throws(InstarError) {
    if usesLog { return }
    let path = CommandText.quoted(store)
    let removal =
      (folder.map { ["rm -r \(CommandText.quoted($0))"] } ?? [])
      + (tables.isEmpty
        ? []
        : ["sqlite3 \(path) '\(tables.map { "DROP TABLE \"\($0)\";" }.joined(separator: " "))'"])
    throw InstarError(
      .unsupported, "cannot write the store",
      cause:
        "\(name.rawValue) replicates the write-ahead log of the store (\(signs)), but the store has"
        + " a rollback journal: the replica would miss the migration",
      next:
        "to turn the log on, run: sqlite3 \(path) 'PRAGMA journal_mode = WAL'; if the store is no longer"
        + " replicated, run: \(removal.joined(separator: " && "))")
  }

  /// What a plan and a report say of a store that may be written.
  var note: String {
    "\(name.rawValue) replicates the store (\(signs)): the cutover is one commit in the write-ahead log,"
      + " which Instar neither checkpoints nor truncates"
  }
}
