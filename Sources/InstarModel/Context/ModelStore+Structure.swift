import InstarSchema
import InstarStore
import Synchronization

extension ModelStore {
  /// The store may have been migrated since it was opened. Rows written in the shape of the old version would be wrong in
  /// the new one, even where SQLite takes them: entities have other numbers there.
  ///
  /// Only others can have changed it, and SQLite counts changes of a database's structure, so that this costs nothing as
  /// long as nobody else commits, and one statement then.
  ///
  /// - Throws: `storeChanged`. To be called inside the transaction that writes.
  func requireSameStructure(_ session: SQLSession) throws {
    let commits = connection.commitCountOfOthers
    if !session.hasMetCommitsOfOthers, knownStructure.withLock({ $0.commits == commits }) { return }
    let statement = try session.statement("PRAGMA schema_version")
    let version = try statement.step() ? statement.integer(at: 0) : 0
    statement.reset()
    if knownStructure.withLock({ $0.version != version }) {
      guard try isBuiltAsExpected(session) else {
        throw InstarError(
          .storeChanged, "cannot save with the models of \(schema.version)",
          cause: "the store was migrated to another version since its container was opened",
          state: "unchanged", next: "open a container with the models of that version")
      }
    }
    knownStructure.withLock { $0 = (commits, version) }
  }

  /// Whether the store has what the models speak of, and no other form of it.
  private func isBuiltAsExpected(_ session: SQLSession) throws -> Bool {
    layout.fits(try StoreStructure.read(session.database, format: layout.format))
  }

  /// The tables of the entities and of their links, each once.
  private var tables: Set<String> {
    let entities = layout.entityLayouts
    var tables = Set(entities.map(\.table))
    for relationship in entities.flatMap(\.relationships) {
      if case .joinTable(let name, _, _) = relationship.place { tables.insert(name) }
    }
    return tables
  }

  /// Deletes all rows, and has SQLite overwrite what they held.
  ///
  /// - Parameter others: erases the other stores, before the transaction of this one ends.
  func erase(with others: () throws -> Void) throws {
    try connection.perform { session in
      let before = try session.integer("PRAGMA secure_delete") ?? 0
      try session.run("PRAGMA secure_delete = ON")
      // By SQLite's number for it: 0, 1, or 2 for "fast". Where it stays on, only later deletions are slower.
      defer { try? session.run("PRAGMA secure_delete = \(before == 2 ? "FAST" : "\(before)")") }
      try session.transaction {
        try requireSameStructure(session)
        // Which table refers to which does not matter where all are empty in the end.
        if layout.enforcesForeignKeys { try session.run("PRAGMA defer_foreign_keys = ON") }
        for table in tables {
          try session.run("DELETE FROM \(table)")
        }
        for table in layout.historyTables {
          let found = try session.integer(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '\(table)'")
          if found != nil { try session.run("DELETE FROM \(table)") }
        }
        try others()
      }
      try session.run("PRAGMA incremental_vacuum")
    }
    connection.saves.note(nil, by: nil)
  }
}

extension ModelStores {
  /// Deletes all rows of all stores: of all of them or of none, as far as it does not fail in the commits themselves.
  func erase() throws {
    if let store = all.first(where: { !$0.allowsSave }) {
      throw InstarError(
        .unreadableStore, "cannot delete all models of \(store.place)",
        cause: "its configuration does not allow to save", state: "unchanged")
    }
    try erase(all[...])
  }

  private func erase(_ stores: ArraySlice<ModelStore>) throws {
    try stores.first?.erase { try erase(stores.dropFirst()) }
  }
}
