internal import GRDB
internal import InstarSchema
internal import InstarStore

// The checks of links, of their numbers, and of the database's foreign keys.
//
// The values in some columns decide whether a link is broken. If the clone has the same values there as the store
// (`ColumnSums`), it has as many broken links, and no link is looked up. If the values changed, all links are looked up
// in the clone, and those of the store only if the clone has broken ones.

extension CloneVerification.ReferenceCheck {
  /// The columns to sum while the tables of a store are read; none where they are not compared.
  func columns(_ db: Database, _ layout: any StoreLayout) throws -> Set<ColumnList> {
    guard self == .changed else { return [] }
    var columns = Set<ColumnList>()
    for entity in layout.entityLayouts {
      for storage in entity.relationships {
        let statement = layout.linkStatement("\(entity.name).\(storage.relationship.name)")
        for reference in statement?.references ?? [] {
          columns.formUnion([reference.columns, reference.target])
        }
      }
    }
    if layout.enforcesForeignKeys { columns.formUnion(try ForeignKeyCheck(db).columns) }
    return columns
  }
}

extension CloneVerification {
  /// The clone and the store, and what was counted in them.
  struct ReferenceFacts {
    let db: Database
    /// As the clone names its tables.
    let layout: any StoreLayout
    let before: StoreCensus
    let after: StoreCensus
    let store: EarlierStore

    /// Whether as many links are broken as before, because none of the values that decide about it changed.
    func isUnchanged(_ statement: LinkStatement, since origin: String?) -> Bool {
      guard let earlier = origin.flatMap({ store.layout.linkStatement($0) }),
        earlier.references.count == statement.references.count
      else { return false }
      return zip(statement.references, earlier.references).allSatisfy { isUnchanged($0, since: $1) }
    }

    func isUnchanged(_ reference: RowReference, since earlier: RowReference) -> Bool {
      reference.isUnchanged(since: earlier, after.sums, before.sums)
    }

    /// Returns what `count` finds in the store before the stages.
    func before(_ count: (Database) throws -> Int?) throws -> Int? {
      var found: Int?
      try store.read { found = try count($0) }
      return found
    }
  }

  /// Refuses links to missing rows, numbers of links that a limit does not allow, and violations of foreign keys. Those
  /// that the store had before may stay.
  ///
  /// - Throws: `brokenReferences`, `modelCount`, or the database's error.
  func requireReferences(_ facts: ReferenceFacts) throws {
    var checked = ForeignKeyCheck.Result()
    if references != .none, facts.layout.enforcesForeignKeys {
      // A key that the stages have added is checked even if no value changed: nothing has checked its rows before.
      var earlier: Set<RowReference> = []
      try facts.store.read { earlier = try ForeignKeyCheck($0).references() }
      checked = try ForeignKeyCheck(facts.db).check(
        facts.db, except: { earlier.contains($0) && facts.isUnchanged($0, since: $0) })
    }
    // First: this error names the relationship.
    if references != .none { try requireLinks(facts, sound: checked.sound) }
    try requireCounts(facts)
    if checked.hasViolations { try requireForeignKeys(facts) }
  }

  /// - Parameter sound: The references that are known to find their rows.
  private func requireLinks(_ facts: ReferenceFacts, sound: Set<RowReference>) throws {
    // Both ends of a relationship have the same links, so each result is kept.
    var known: [LinkStatement: Int] = [:]
    for entity in path.last.entities {
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        let origin = path.origin(of: relationship, in: entity.name)
        // Links of an inherited relationship are counted with those of the superentity.
        guard facts.after.links[name] != nil, let statement = facts.layout.linkStatement(name),
          !sound.isSuperset(of: statement.references),
          !facts.isUnchanged(statement, since: origin)
        else { continue }
        let broken = try known[statement] ?? statement.brokenCount(facts.db)
        known[statement] = broken
        if broken == 0 { continue }
        let earlier = try origin.flatMap { facts.store.layout.linkStatement($0) }
          .flatMap { statement in try facts.before { try statement.brokenCount($0) } }
        guard broken > earlier ?? 0 else { continue }
        let rows = try statement.brokenRows(facts.db)
        throw InstarError(
          .brokenReferences, Self.what,
          cause: "\(broken) links of \(name) reference missing rows\(rows?.suffix ?? "")"
            + (earlier.map { "; before the run \($0) did" } ?? ""),
          next: "set these relationships to existing models, or to nil, in didMigrate",
          rows: rows)
      }
    }
  }

  /// Refuses rows with fewer or more models than a limit allows. A limit that the store's version had already may be
  /// violated as often as before.
  private func requireCounts(_ facts: ReferenceFacts) throws {
    // Without code, only the removal of entities and the move of a relationship remove links.
    let keepsLinks =
      path.isLightweight && path.removedEntities.isEmpty && path.relationshipLosers.isEmpty
    for limited in path.limitedRelationships where !(limited.isUnchanged && keepsLinks) {
      guard let rows = try limited.limit.violations(facts.db, of: limited.path, in: facts.layout)
      else { continue }
      if limited.isUnchanged, let origin = limited.origin {
        let earlier = try facts.before {
          try limited.limit.violations($0, of: origin, in: facts.store.layout)?.count
        }
        if rows.count <= earlier ?? 0 { continue }
      }
      throw InstarError(
        .modelCount, Self.what,
        cause: rows.sentence(
          of: limited.entity,
          have: limited.limit.problem(of: limited.relationship, in: path.to)),
        next:
          "add or remove links of '\(limited.relationship)' in these rows by the plan's code, or change its limit",
        rows: rows)
    }
  }

  private func requireForeignKeys(_ facts: ReferenceFacts) throws {
    let violations = try ForeignKeyCheck.violations(facts.db)
    var before = ForeignKeyCheck.Violations()
    try facts.store.read { before = try ForeignKeyCheck.violations($0) }
    // What could not be counted before cannot be compared.
    let uncounted = before.uncheckedTables
    let (now, earlier) = (violations.total(except: uncounted), before.total())
    guard now > earlier else { return }
    let rows = try ForeignKeyCheck.violatingRows(facts.db, violations, except: uncounted)
    throw InstarError(
      .brokenReferences, Self.what,
      cause: "\(now) rows violate a foreign key\(rows.suffix); before the run \(earlier) did",
      next: "correct the rows in didMigrate; PRAGMA foreign_key_check lists them", rows: rows)
  }
}
