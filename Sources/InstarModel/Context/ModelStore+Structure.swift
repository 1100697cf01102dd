import InstarSchema
import InstarStore
import Synchronization

extension ModelStore {
  /// Checks that nobody has migrated the store since it was opened. Rows of the old version would be wrong in the new
  /// one even if SQLite accepts them, because its entities have other numbers.
  ///
  /// Call it inside the transaction that writes. It costs nothing until others commit, then one statement, because
  /// SQLite counts changes of the structure.
  ///
  /// - Throws: `storeChanged`.
  func requireSameStructure(_ session: SQLSession) throws {
    let commits = connection.commitCountOfOthers
    if !session.hasMetCommitsOfOthers, knownStructure.withLock({ $0.commits == commits }) { return }
    let statement = try session.statement("PRAGMA schema_version")
    let version = try statement.step() ? statement.integer(at: 0) : 0
    statement.reset()
    if knownStructure.withLock({ $0.version != version }) {
      guard try matchesModels(session) else {
        throw InstarError(
          .storeChanged, "cannot save with the models of \(schema.version)",
          cause: "the store was migrated to another version after its container was opened",
          state: "unchanged", next: "open a container with the models of the new version")
      }
      knownConflictFail.withLock { $0 = nil }
    }
    knownStructure.withLock { $0 = (commits, version) }
  }

  /// Whether a table has ON CONFLICT FAIL, or a trigger OR FAIL or RAISE(FAIL). Then SQLite keeps what triggers have
  /// done for a row that it refuses.
  func hasConflictFail(_ session: SQLSession) throws -> Bool {
    if let known = knownConflictFail.withLock(\.self) { return known }
    let sql = try session.text(
      "SELECT group_concat(sql, ' ') FROM sqlite_schema WHERE sql LIKE '%fail%'")
    let words = (sql ?? "").lowercased().split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    let found = zip(words, words.dropFirst()).contains {
      $1 == "fail" && ["conflict", "or", "raise"].contains($0)
    }
    knownConflictFail.withLock { $0 = found }
    return found
  }

  /// Whether the store's structure matches the models. An adopted store may have more.
  private func matchesModels(_ session: SQLSession) throws -> Bool {
    layout.fits(try StoreStructure.read(session.database, format: layout.format))
  }

  /// The tables of the entities and their join tables.
  private var tables: Set<String> {
    let entities = layout.entityLayouts
    var tables = Set(entities.map(\.table))
    for relationship in entities.flatMap(\.relationships) {
      if case .joinTable(let name, _, _) = relationship.location { tables.insert(name) }
    }
    return tables
  }

  /// The names of the files with large values that rows reference.
  private func externalFiles(_ session: SQLSession) throws -> Set<String> {
    var columns: [String: Set<String>] = [:]
    for entity in layout.entityLayouts {
      let names = entity.attributes.map(\.column).filter(\.mayBeExternal).map(\.name)
      if !names.isEmpty { columns[entity.table, default: []].formUnion(names) }
    }
    var files: Set<String> = []
    for (table, names) in columns {
      for name in names {
        // SQLite need not read larger values, which are not names of files.
        let statement = try session.statement(
          "SELECT \(name) FROM \(table) WHERE length(\(name)) <= 41")
        defer { statement.reset() }
        while try statement.step() {
          guard case .blob(let stored) = statement.slot(at: 0),
            case .file(let file) = ExternalValues.Form(stored: stored)
          else { continue }
          files.insert(file)
        }
      }
    }
    return files
  }

  /// Deletes all rows and makes SQLite overwrite their content. Then deletes the files of large values: a crash between
  /// leaves files without rows, never rows without their files.
  ///
  /// - Parameter others: Erases the other stores before this transaction ends.
  func erase(with others: () throws -> Void) throws {
    try connection.perform { session in
      let before = try session.integer("PRAGMA secure_delete") ?? 0
      try session.run("PRAGMA secure_delete = ON")
      // SQLite returns 0, 1, or 2 for "fast". If resetting it fails, later deletions are only slower.
      defer { try? session.run("PRAGMA secure_delete = \(before == 2 ? "FAST" : "\(before)")") }
      var files: Set<String> = []
      try session.transaction {
        try requireSameStructure(session)
        files = try externalFiles(session)
        // The order of tables does not matter, because all are empty at the commit.
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
      // Before another thread can use the connection: its save must see this.
      connection.saves.note(nil, by: nil)
      connection.externalValues.remove(files)
      try session.run("PRAGMA incremental_vacuum")
    }
  }
}

extension ModelStores {
  /// Deletes all rows of all stores, or of none if it fails before the first commit.
  func erase() throws {
    if let store = all.first(where: { !$0.allowsSave }) {
      throw InstarError(
        .unreadableStore, "cannot delete all models of \(store.place)",
        cause: "the store's configuration does not allow saving", state: "unchanged",
        next: "open the store with allowsSave: true")
    }
    try erase(all[...])
  }

  private func erase(_ stores: ArraySlice<ModelStore>) throws {
    try stores.first?.erase { try erase(stores.dropFirst()) }
  }
}
