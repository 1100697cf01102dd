import InstarModel
import InstarSchema
import InstarStore

/// Turns a store of one plain layout into one of another, on an open connection.
///
/// Statements depend on how the app wrote its tables: a table is altered from its own text, and what no model speaks of
/// stays. To show them beforehand they are run on an empty store that is made like the app's (`EmptyStore`).
///
/// The cheapest statement wins. `ADD`, `RENAME` and `DROP COLUMN` do not depend on the number of rows; a table is rebuilt
/// only where SQLite cannot alter it (see `TableRebuild`). Order, and why:
/// 1. tables without a successor are dropped, which frees their names;
/// 2. tables, then columns, take their new names by `ALTER TABLE`: SQLite then rewrites the triggers, views, indexes and
///    foreign keys that speak of them. Columns that will go are first moved aside where another one takes their name;
/// 3. indexes that are given up, and those over columns that go, are dropped;
/// 4. columns go, come and change, in place or by a rebuild;
/// 5. tables that are new are made, then indexes, over the final values: those that are described, and those that no model
///    speaks of and that were dropped with a column, where another column has its name now.
struct PlainChange {
  let old: PlainLayout
  let new: PlainLayout
  let difference: SchemaDifference

  /// The statements of the change of a store that is made as the old version's models describe it.
  func plannedStatements() throws(InstarError) -> [String] {
    do {
      return try StoreConnection(inMemory: nil).perform { session in
        try session.useOrdinaryTables()
        try session.run("PRAGMA foreign_keys = OFF")
        for statement in old.createStatements { try session.run(statement) }
        return try run(session)
      }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }

  /// Runs the change in the open transaction. Foreign keys must be off.
  ///
  /// - Returns: the statements that were run.
  func run(_ session: SQLSession) throws -> [String] {
    var work = PlainChangeWork(change: self, session: session)
    try work.run()
    return work.statements
  }
}

/// A table of the old version and what it becomes, with where each of its columns comes from.
struct TablePair {
  let old: PlainLayout.Table
  let new: PlainLayout.Table
  /// For each column of the new table the one of the old table whose values it takes over.
  let sources: [PlainLayout.Column?]

  var removed: [PlainLayout.Column] {
    let used = Set(sources.compactMap { $0?.name })
    return old.columns.filter { !used.contains($0.name) }
  }

  var kept: [(old: PlainLayout.Column, new: PlainLayout.Column)] {
    zip(sources, new.columns).compactMap { source, column in source.map { ($0, column) } }
  }

  var added: [PlainLayout.Column] {
    zip(sources, new.columns).filter { $0.0 == nil }.map(\.1)
  }
}

private struct PlainChangeWork {
  let change: PlainChange
  let session: SQLSession
  var statements: [String] = []
  private var asideCount = 0

  init(change: PlainChange, session: SQLSession) {
    self.change = change
    self.session = session
  }

  private mutating func execute(_ sql: String) throws {
    statements.append(sql)
    try session.run(sql)
  }

  mutating func run() throws {
    let pairs = tablePairs()
    let kept = Set(pairs.map(\.old.name))
    for table in change.old.tables where !kept.contains(table.name) {
      try execute("DROP TABLE \(SQLIdentifier.sql(table.name))")
    }
    try renameTables(pairs)
    for pair in pairs { try renameColumns(pair) }
    try dropIndexes(pairs)
    for pair in pairs { try changeTable(pair) }
    let existing = Set(pairs.map(\.new.name))
    for table in change.new.tables where !existing.contains(table.name) {
      try execute(table.createStatement)
    }
    try createIndexes()
    try restoreIndexes()
  }

  // MARK: Which table becomes which

  private func tablePairs() -> [TablePair] {
    change.new.tables.compactMap { table in
      if let entity = table.entity {
        guard let before = change.old.table(of: entity),
          let mapping = change.difference.entities.first(where: { $0.new.name == entity })
        else { return nil }
        return TablePair(
          old: before, new: table,
          sources: table.columns.map { source(of: $0, in: before, mapping) })
      }
      return linkTable(before: table).map { before, isTurned in
        TablePair(
          old: before, new: table,
          sources: table.columns.map { column in
            guard case .link(let isOwn, let index) = column.role else { return nil }
            return before.columns.first { $0.role == .link(isOwn: isOwn != isTurned, index: index) }
          })
      }
    }
  }

  private func source(
    of column: PlainLayout.Column, in table: PlainLayout.Table,
    _ mapping: SchemaDifference.EntityMapping
  ) -> PlainLayout.Column? {
    switch column.role {
    case .hiddenKey:
      // A property that showed the key is gone; the key stays.
      return table.columns.first { $0.role == .hiddenKey }
        ?? table.columns.first { table.primaryKey == [$0.name] && $0.name == column.name }
    case .attribute(let name):
      if let hidden = table.columns.first(where: { $0.role == .hiddenKey && $0.name == column.name }
      ) {
        return hidden
      }
      // A value that has to be converted does not come along: its column is made anew, empty.
      guard let attribute = mapping.attributes.first(where: { $0.new.name == name }),
        let before = attribute.old, before.type.isStoredLike(attribute.new.type)
      else { return nil }
      return table.columns.first { $0.role == .attribute(before.name) }
    case .reference(let name, let index):
      guard let relationship = mapping.relationships.first(where: { $0.new.name == name }),
        let before = relationship.old, before.isToOneRelationship,
        before.destination == relationship.new.destination
      else { return nil }
      return table.columns.first {
        $0.role == .reference(relationship: before.name, index: index)
      }
    case .link: return nil
    }
  }

  /// The table that held the links of one of a table's relationships, and whether it was described from the other side.
  private func linkTable(before table: PlainLayout.Table) -> (PlainLayout.Table, Bool)? {
    for (position, name) in table.relationships.enumerated() {
      guard let earlier = earlierName(of: name) else { continue }
      for before in change.old.tables where before.entity == nil {
        if let place = before.relationships.firstIndex(of: earlier) {
          return (before, place != position)
        }
      }
    }
    return nil
  }

  /// "Entity.relationship" in the old version.
  private func earlierName(of name: String) -> String? {
    for entity in change.difference.entities {
      for relationship in entity.relationships
      where "\(entity.new.name).\(relationship.new.name)" == name {
        guard let before = relationship.old, before.destination == relationship.new.destination
        else { return nil }
        return "\(entity.new.name).\(before.name)"
      }
    }
    return nil
  }

  // MARK: Names

  private mutating func renameTables(_ pairs: [TablePair]) throws {
    for (from, to) in try inOrder(pairs.map { ($0.old.name, $0.new.name) }) {
      try execute("ALTER TABLE \(SQLIdentifier.sql(from)) RENAME TO \(SQLIdentifier.sql(to))")
    }
  }

  private mutating func renameColumns(_ pair: TablePair) throws {
    let moves = pair.kept.map { ($0.old.name, $0.new.name) }
    let wanted = Set(pair.new.columns.map { $0.name.lowercased() })
    var aside: [(String, String)] = []
    for column in pair.removed where wanted.contains(column.name.lowercased()) {
      aside.append((column.name, try asideName()))
    }
    movedAside[pair.new.name] = Dictionary(aside, uniquingKeysWith: { first, _ in first })
    for (from, to) in try aside + inOrder(moves) {
      try execute(
        "ALTER TABLE \(SQLIdentifier.sql(pair.new.name)) "
          + "RENAME COLUMN \(SQLIdentifier.sql(from)) TO \(SQLIdentifier.sql(to))")
    }
  }

  /// What columns that will go are called meanwhile, by table.
  private var movedAside: [String: [String: String]] = [:]

  private func removedNames(_ pair: TablePair) -> [String] {
    pair.removed.map { movedAside[pair.new.name]?[$0.name] ?? $0.name }
  }

  /// A name that no table and no column of the store has.
  private mutating func asideName() throws -> String {
    while true {
      asideCount += 1
      let name = "instar_aside_\(asideCount)"
      // Whatever of that name there is stands in the text of a table.
      let uses = try session.integer(
        "SELECT 1 FROM sqlite_schema WHERE instr(lower(sql), '\(name)') LIMIT 1")
      if uses == nil { return name }
    }
  }

  /// Orders renames so that none takes a name that is still in use; a name in a circle is first moved aside.
  private mutating func inOrder(
    _ moves: [(String, String)]
  ) throws -> [(String, String)] {
    var waiting = moves.filter { $0.0 != $0.1 }
    var ordered: [(String, String)] = []
    while !waiting.isEmpty {
      let taken = Set(waiting.map { $0.0.lowercased() })
      let free = waiting.firstIndex {
        !taken.contains($0.1.lowercased()) || $0.0.lowercased() == $0.1.lowercased()
      }
      if let free {
        ordered.append(waiting.remove(at: free))
      } else {
        let aside = try asideName()
        ordered.append((waiting[0].0, aside))
        waiting[0].0 = aside
      }
    }
    return ordered
  }

  // MARK: Indexes

  /// The indexes of a table: what they are, and their statements, which those of constraints do not have.
  private func storedIndexes(
    of table: String
  ) throws -> [(index: StoreStructure.Index, sql: String?)] {
    let sql = Dictionary(
      try session.objects(of: table).filter { $0.type == "index" }.map { ($0.name, $0.sql) },
      uniquingKeysWith: { first, _ in first })
    return try StoreStructure.read(session.database, format: .plain).indexes
      .filter { $0.table.lowercased() == table.lowercased() }
      .map { ($0, sql[$0.name] ?? nil) }
  }

  /// An index that the old version describes and the new one does not, in the names of the new tables.
  private func givenUpIndexes(_ pair: TablePair) -> [StoreStructure.Index] {
    let names = Dictionary(
      pair.kept.map { ($0.old.name, $0.new.name) }, uniquingKeysWith: { first, _ in first })
    let wanted = change.new.structure.indexes.filter { $0.table == pair.new.name }
    return change.old.structure.indexes.filter { $0.table == pair.old.name }.compactMap { index in
      let moved = StoreStructure.Index(
        name: index.name, table: pair.new.name, isUnique: index.isUnique,
        columns: index.columns.map { names[$0] ?? $0 })
      return wanted.contains { moved.serves(as: $0) } ? nil : moved
    }
  }

  /// Indexes that were dropped with a column whose name another one has in the end, with what makes them over that one.
  private var indexesToRestore: [(index: StoreStructure.Index, sql: String)] = []

  private mutating func dropIndexes(_ pairs: [TablePair]) throws {
    for pair in pairs {
      let givenUp = givenUpIndexes(pair)
      let removed = Set(removedNames(pair).map { $0.lowercased() })
      let earlierNames = Dictionary(
        (movedAside[pair.new.name] ?? [:]).map { ($0.value, $0.key) },
        uniquingKeysWith: { first, _ in first })
      for (index, sql) in try storedIndexes(of: pair.new.name) {
        guard let sql else { continue }
        let isGivenUp = givenUp.contains { index.serves(as: $0) }
        // Behind the names of index and table, which may be those of a column, too.
        let terms = SQLToken.tokens(of: sql).drop { $0.kind != .open }.map(\.text).joined()
        let names = SQLToken.names(in: terms).subtracting(["asc", "collate", "desc", "where"])
        guard isGivenUp || !removed.isDisjoint(with: names) else { continue }
        try execute("DROP INDEX \(SQLIdentifier.sql(index.name))")
        guard !isGivenUp, removed.intersection(names).isSubset(of: earlierNames.keys) else {
          continue
        }
        var restored = index
        restored.columns = index.columns.map { Self.replacing(earlierNames, in: $0) }
        if givenUp.contains(where: { restored.serves(as: $0) }) { continue }
        let sqlNames = earlierNames.mapValues { SQLIdentifier.sql($0) }
        indexesToRestore.append((restored, Self.replacing(sqlNames, in: sql)))
      }
    }
  }

  /// A text with other names in it, given in lower case.
  private static func replacing(_ names: [String: String], in text: String) -> String {
    SQLToken.tokens(of: text).map { names[$0.name.lowercased()] ?? $0.text }.joined()
  }

  /// Where the new version describes such an index, that one was made.
  private mutating func restoreIndexes() throws {
    let described = orderedIndexes()
    for (index, sql) in indexesToRestore {
      // Which expressions an index is over is not known, and so not whether it is the same.
      let isOverColumns = !index.columns.contains { $0.contains("(expression)") }
      let isMade = described.contains { other in
        other.serves(as: index)
          && (isOverColumns || other.name.lowercased() == index.name.lowercased())
      }
      if isMade { continue }
      do {
        try execute(sql)
      } catch let error as InstarError {
        throw InstarError(
          error.code, "cannot make index \(index.name) again, which no model speaks of",
          cause: error.cause, next: "drop it in willMigrate, and make it again in didMigrate")
      }
    }
  }

  private mutating func createIndexes() throws {
    for (index, described) in zip(change.new.indexes, orderedIndexes()) {
      let stored = try storedIndexes(of: index.table)
      if stored.contains(where: { $0.index.serves(as: described) }) { continue }
      if index.isUnique { try requireDistinct(index) }
      try execute(index.createStatement)
    }
  }

  /// The new indexes as a structure names them, in the layout's order.
  private func orderedIndexes() -> [StoreStructure.Index] {
    let byName = Dictionary(
      change.new.structure.indexes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    return change.new.indexes.compactMap { byName[$0.name] }
  }

  private func requireDistinct(_ index: PlainLayout.Index) throws {
    let terms = index.terms.joined(separator: ", ")
    let present = index.terms.map { "(\($0)) IS NOT NULL" }
    let conditions = (present + (index.condition.map { ["(\($0))"] } ?? []))
      .joined(separator: " AND ")
    // A term may say how it is sorted or collated; then SQLite itself has the last word.
    guard !terms.uppercased().contains(" DESC"), !terms.uppercased().contains(" ASC"),
      let repeated = try session.integer(
        "SELECT COUNT(*) FROM (SELECT 1 FROM \(SQLIdentifier.sql(index.table)) WHERE \(conditions) "
          + "GROUP BY \(terms) HAVING COUNT(*) > 1)"), repeated > 0
    else { return }
    throw InstarError(
      .duplicateUniqueValues, "cannot make \(index.table) (\(terms)) unique",
      cause: "\(repeated) of its values occur more than once",
      next: "remove the duplicates in willMigrate")
  }

  // MARK: Tables

  private mutating func changeTable(_ pair: TablePair) throws {
    let name = pair.new.name
    guard
      let sql = try session.objects(of: name).first(where: { $0.type == "table" })?.sql,
      let text = CreateTableText(sql)
    else {
      throw InstarError(
        .unexpectedStructure, "cannot change table \(name)",
        cause: "it is no ordinary table, or its CREATE TABLE cannot be read")
    }
    let stored = try storedIndexes(of: name)
    let constraints = givenUpIndexes(pair).filter { givenUp in
      stored.contains { $0.sql == nil && $0.index.serves(as: givenUp) }
    }
    let rebuild = TableRebuild(
      pair: pair, old: change.old, new: change.new, difference: change.difference, text: text,
      removed: removedNames(pair), uniqueColumns: constraints.map(\.columns))
    try rebuild.requireFreeColumns()
    try requireValues(pair, rebuild)
    if rebuild.isNeeded {
      for statement in try rebuild.statements(session) { try execute(statement) }
      return
    }
    for column in removedNames(pair) {
      try execute("ALTER TABLE \(SQLIdentifier.sql(name)) DROP COLUMN \(SQLIdentifier.sql(column))")
    }
    for column in pair.added {
      try execute("ALTER TABLE \(SQLIdentifier.sql(name)) ADD COLUMN \(column.definition)")
    }
  }

  /// Rows without a value where the new version demands one, and has none to give.
  private func requireValues(_ pair: TablePair, _ rebuild: TableRebuild) throws {
    let table = SQLIdentifier.sql(pair.new.name)
    for (source, column) in zip(pair.sources, pair.new.columns)
    where column.isRequired && rebuild.fill(column) == nil {
      let count: Int64?
      if let source {
        if source.isRequired { continue }
        count = try session.integer(
          "SELECT COUNT(*) FROM \(table) WHERE \(SQLIdentifier.sql(column.name)) IS NULL")
      } else {
        count = try session.integer("SELECT COUNT(*) FROM \(table)")
      }
      guard let count, count > 0 else { continue }
      throw InstarError(
        .missingRequiredValues, "cannot change table \(pair.new.name)",
        cause:
          "\(count) rows of \(pair.new.name) have no value for required column '\(column.name)'",
        next: "give the property an initial value, or fill it in willMigrate while it is optional")
    }
  }
}

/// An object of the store's own list of what it is made of.
struct SchemaObject {
  var type: String
  var name: String
  var sql: String?
}

extension SQLSession {
  /// A table, its indexes and its triggers, in the order in which they were made.
  func objects(of table: String) throws(InstarError) -> [SchemaObject] {
    let statement = try statement(
      "SELECT type, name, sql FROM sqlite_schema WHERE lower(tbl_name) = lower(?) ORDER BY rowid")
    statement.bind(table, at: 1)
    var objects: [SchemaObject] = []
    while try statement.step() {
      objects.append(
        SchemaObject(
          type: statement.text(at: 0), name: statement.text(at: 1),
          sql: statement.storageClass(at: 2) == .null ? nil : statement.text(at: 2)))
    }
    statement.reset()
    return objects
  }

  /// The name, or one with a number behind it that nothing in the store has.
  func freeName(_ name: String) throws(InstarError) -> String {
    var candidate = name
    var number = 1
    while try integer(
      "SELECT 1 FROM sqlite_schema "
        + "WHERE lower(name) = lower(\(AttributeValue.text(candidate).literal))") != nil
    {
      number += 1
      candidate = "\(name)_\(number)"
    }
    return candidate
  }
}
