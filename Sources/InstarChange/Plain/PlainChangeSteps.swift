import InstarSchema
import InstarStore

/// Executes and collects the steps of a `PlainSchemaChange`.
struct PlainChangeSteps {
  let change: PlainSchemaChange
  let session: SQLSession
  let searchIndexes: SearchIndexRebuild
  var steps: [ChangeStep] = []
  private var asideCount = 0

  init(
    change: PlainSchemaChange, session: SQLSession, searchIndexes: SearchIndexRebuild
  ) {
    self.change = change
    self.session = session
    self.searchIndexes = searchIndexes
  }

  private mutating func execute(_ step: ChangeStep) throws {
    try searchIndexes.prepare(for: step)
    try session.run(step.sql, on: step.table)
    steps.append(step)
  }

  /// Executes a statement for a column of a table.
  private mutating func execute(
    _ sql: String, _ comment: String, _ kind: ChangeKind, rowChange: RowChange,
    _ table: PlainLayout.Table, _ column: PlainLayout.Column, property: String? = nil
  ) throws {
    try execute(
      ChangeStep(
        sql, comment, kind, rowChange: rowChange, table: table.name, column: column.name,
        entity: table.entity, property: property ?? column.role.property))
  }

  mutating func run() throws {
    let pairs = tablePairs()
    let kept = Set(pairs.map(\.old.name))
    for table in change.old.tables where !kept.contains(table.name) {
      try execute(
        ChangeStep(
          "DROP TABLE \(SQLIdentifier.sql(table.name))", "drops table \(table.name)", .destructive,
          rowChange: .writes, table: table.name,
          entity: table.subject.entity.map(change.difference.newName),
          property: table.subject.property))
    }
    try renameTables(pairs)
    for pair in pairs { try renameColumns(pair) }
    try dropIndexes(pairs)
    for pair in pairs { try changeTable(pair) }
    let existing = Set(pairs.map(\.new.name))
    for table in change.new.tables where !existing.contains(table.name) {
      try execute(
        ChangeStep(
          table.createStatement, "creates table \(table.name)", .additive, rowChange: .keepsValues,
          table: table.name,
          entity: table.subject.entity, property: table.subject.property))
    }
    try createIndexes()
    try restoreIndexes()
  }

  // MARK: Which table becomes which

  private func tablePairs() -> [PlainSchemaChange.TablePair] {
    change.new.tables.compactMap { table in
      if let entity = table.entity {
        guard let mapping = change.difference.entities.first(where: { $0.new.name == entity }),
          let before = mapping.old.flatMap({ change.old.table(of: $0.name) })
        else { return nil }
        return PlainSchemaChange.TablePair(
          old: before, new: table,
          sources: table.columns.map { source(of: $0, in: before, mapping) },
          converted: Set(
            table.columns.filter { convertedSource(of: $0, in: before, mapping) != nil }
              .map(\.name)))
      }
      return linkTable(before: table).map { before, isTurned in
        PlainSchemaChange.TablePair(
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
      // The key stays where only the property for it was removed.
      return table.columns.first { $0.role == .hiddenKey }
        ?? table.columns.first { table.primaryKey == [$0.name] && $0.name == column.name }
    case .attribute(let name):
      if let hidden = table.columns.first(where: { $0.role == .hiddenKey && $0.name == column.name }
      ) {
        return hidden
      }
      if let kept = mapping.keptColumns.first(where: { $0.value == name })?.key {
        return table.columns.first { $0.role == .reference(relationship: kept, index: 0) }
      }
      if let converted = convertedSource(of: column, in: table, mapping) { return converted }
      guard let attribute = mapping.attributes.first(where: { $0.new.name == name }),
        let before = attribute.old, before.type.isStoredLike(attribute.new.type)
      else { return nil }
      return table.columns.first { $0.role == .attribute(before.name) }
    case .reference(let name, let index):
      if let kept = mapping.keptColumns.first(where: { $0.value == name })?.key {
        return table.columns.first { $0.role == .attribute(kept) }
      }
      guard let relationship = mapping.relationships.first(where: { $0.new.name == name }),
        let before = relationship.old, before.isToOneRelationship,
        change.difference.haveSameDestination(before, relationship.new)
      else { return nil }
      return table.columns.first {
        $0.role == .reference(relationship: before.name, index: index)
      }
    case .link: return nil
    }
  }

  /// The column of an attribute that changes its type. SQLite computes generated columns: nothing is converted.
  private func convertedSource(
    of column: PlainLayout.Column, in table: PlainLayout.Table,
    _ mapping: SchemaDifference.EntityMapping
  ) -> PlainLayout.Column? {
    guard case .attribute(let name) = column.role, !column.isGenerated,
      let attribute = mapping.attributes.first(where: { $0.new.name == name }),
      let before = attribute.old, !before.type.isStoredLike(attribute.new.type),
      let source = table.columns.first(where: { $0.role == .attribute(before.name) })
    else { return nil }
    return source.isGenerated ? nil : source
  }

  /// The old table with the links of one of a table's relationships, and whether the old version described it from
  /// the other side.
  private func linkTable(before table: PlainLayout.Table) -> (PlainLayout.Table, Bool)? {
    for (position, name) in table.relationships.enumerated() {
      guard let earlier = earlierName(of: name) else { continue }
      for before in change.old.tables where before.entity == nil {
        if let earlierPosition = before.relationships.firstIndex(of: earlier) {
          return (before, earlierPosition != position)
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
        guard let source = entity.old, let before = relationship.old,
          change.difference.haveSameDestination(before, relationship.new)
        else { return nil }
        return "\(source.name).\(before.name)"
      }
    }
    return nil
  }

  // MARK: Names

  private mutating func renameTables(_ pairs: [PlainSchemaChange.TablePair]) throws {
    for (from, to) in try inOrder(pairs.map { ($0.old.name, $0.new.name) }) {
      try execute(
        ChangeStep(
          "ALTER TABLE \(SQLIdentifier.sql(from)) RENAME TO \(SQLIdentifier.sql(to))",
          renaming("table", from, to), .rename, rowChange: .none, table: to,
          entity: pairs.first { $0.new.name == to }?.new.entity))
    }
  }

  private mutating func renameColumns(_ pair: PlainSchemaChange.TablePair) throws {
    let moves = pair.kept.map { ($0.old.name, $0.new.name) }
    let wanted = Set(pair.new.columns.map { $0.name.lowercased() })
    var aside: [(String, String)] = []
    for column in pair.removed where wanted.contains(column.name.lowercased()) {
      aside.append((column.name, try asideName(for: column.name)))
    }
    movedAside[pair.new.name] = Dictionary(firstOf: aside)
    for (from, to) in try aside + inOrder(moves) {
      let column =
        pair.new.columns.first { $0.name == to } ?? pair.old.columns.first { $0.name == from }
      try execute(
        ChangeStep(
          "ALTER TABLE \(SQLIdentifier.sql(pair.new.name)) "
            + "RENAME COLUMN \(SQLIdentifier.sql(from)) TO \(SQLIdentifier.sql(to))",
          renaming("column", from, to), .rename, rowChange: .none, table: pair.new.name, column: to,
          entity: pair.new.entity, property: column?.role.property))
    }
  }

  /// The temporary names of columns that will be dropped, by table.
  private var movedAside: [String: [String: String]] = [:]

  private func removedNames(_ pair: PlainSchemaChange.TablePair) -> [String] {
    pair.removed.map { movedAside[pair.new.name]?[$0.name] ?? $0.name }
  }

  /// Says what becomes of a table or column, by the names that people know.
  private func renaming(_ kind: String, _ from: String, _ to: String) -> String {
    asideNames[to] == nil
      ? "renames \(kind) \(asideNames[from] ?? from) to \(to)"
      : "moves \(kind) \(from) aside, because another one gets its name"
  }

  /// The name that each temporary name stands for.
  private(set) var asideNames: [String: String] = [:]

  /// A name that no table and no column of the store has.
  private mutating func asideName(for original: String) throws -> String {
    while true {
      asideCount += 1
      let name = "instar_aside_\(asideCount)"
      // Every object of that name has it in its own SQL or in that of its table.
      let uses = try session.integer(
        "SELECT 1 FROM sqlite_schema WHERE instr(lower(sql), '\(name)') LIMIT 1")
      if uses == nil {
        asideNames[name] = asideNames[original] ?? original
        return name
      }
    }
  }

  private mutating func inOrder(_ moves: [(String, String)]) throws -> [(String, String)] {
    try RenameOrder.of(moves, key: { $0.lowercased() }, temporaryName: { try asideName(for: $0) })
  }

  // MARK: Indexes

  /// The indexes of a table, with their statements; `nil` for the index of a constraint.
  private func storedIndexes(
    of table: String
  ) throws -> [(index: StoreStructure.Index, sql: String?)] {
    let sql = Dictionary(
      firstOf: try session.objects(of: table).filter { $0.type == "index" }.map {
        ($0.name, $0.sql)
      })
    return try storedIndexes().filter { $0.table.lowercased() == table.lowercased() }
      .map { ($0, sql[$0.name] ?? nil) }
  }

  private func storedIndexes() throws -> [StoreStructure.Index] {
    try StoreStructure.read(session.database, format: .plain).indexes
  }

  /// The indexes that the old version describes and the new one does not, with the names of the new tables.
  private func removedIndexes(_ pair: PlainSchemaChange.TablePair) -> [StoreStructure.Index] {
    let names = Dictionary(firstOf: pair.kept.map { ($0.old.name, $0.new.name) })
    let wanted = change.new.structure.indexes.filter { $0.table == pair.new.name }
    return change.old.structure.indexes.filter { $0.table == pair.old.name }.compactMap { index in
      let moved = StoreStructure.Index(
        name: index.name, table: pair.new.name, isUnique: index.isUnique,
        columns: index.columns.map { names[$0] ?? $0 })
      return wanted.contains { moved.serves(as: $0) } ? nil : moved
    }
  }

  /// Indexes that were dropped with a column whose name another column gets, with the statements that create them
  /// over that column.
  private var indexesToRestore: [(index: StoreStructure.Index, sql: String)] = []

  private mutating func dropIndexes(_ pairs: [PlainSchemaChange.TablePair]) throws {
    for pair in pairs {
      let removedIndexes = removedIndexes(pair)
      let removed = Set(removedNames(pair).map { $0.lowercased() })
      if removedIndexes.isEmpty, removed.isEmpty { continue }
      let earlierNames = Dictionary(
        firstOf: (movedAside[pair.new.name] ?? [:]).map { ($0.value, $0.key) })
      for (index, sql) in try storedIndexes(of: pair.new.name) {
        guard let sql else { continue }
        let isRemoved = removedIndexes.contains { index.serves(as: $0) }
        // Behind the names of index and table, which may be those of a column, too.
        let terms = SQLToken.tokens(of: sql).drop { $0.kind != .open }.map(\.text).joined()
        let names = SQLToken.names(in: terms).subtracting(["asc", "collate", "desc", "where"])
        guard isRemoved || !removed.isDisjoint(with: names) else { continue }
        try execute(
          ChangeStep(
            "DROP INDEX \(SQLIdentifier.sql(index.name))", "drops index \(index.name)", .index,
            rowChange: .keepsValues, table: pair.new.name, entity: pair.new.entity,
            reason: "changes the indexes of \(pair.new.name)"))
        guard !isRemoved, removed.intersection(names).isSubset(of: earlierNames.keys) else {
          continue
        }
        var restored = index
        restored.columns = index.columns.map { Self.replacing(earlierNames, in: $0) }
        if removedIndexes.contains(where: { restored.serves(as: $0) }) { continue }
        let sqlNames = earlierNames.mapValues { SQLIdentifier.sql($0) }
        indexesToRestore.append((restored, Self.replacing(sqlNames, in: sql)))
      }
    }
  }

  /// A text with other names in it, given in lower case.
  private static func replacing(_ names: [String: String], in text: String) -> String {
    SQLToken.tokens(of: text).map { names[$0.name.lowercased()] ?? $0.text }.joined()
  }

  /// Leaves out an index where the new version describes an equal one.
  private mutating func restoreIndexes() throws {
    let described = orderedIndexes()
    for (index, sql) in indexesToRestore {
      // SQLite does not report the expressions of an index, so two such indexes cannot be compared.
      let isOverColumns = !index.columns.contains { $0.contains("(expression)") }
      let isMade = described.contains { other in
        other.serves(as: index)
          && (isOverColumns || other.name.lowercased() == index.name.lowercased())
      }
      if isMade { continue }
      do {
        try execute(
          ChangeStep(
            sql, "restores index \(index.name)", .index, rowChange: .keepsValues,
            table: index.table,
            reason: "changes the indexes of \(index.table)"))
      } catch let error as InstarError {
        throw InstarError(
          error.code, "cannot restore index \(index.name), which no model describes",
          cause: error.cause,
          next: "let the app drop the index before the migration, and create it again afterwards")
      }
    }
  }

  private mutating func createIndexes() throws {
    var stored = try storedIndexes()
    for (index, described) in zip(change.new.indexes, orderedIndexes()) {
      if stored.contains(where: { $0.serves(as: described) }) { continue }
      do {
        try execute(
          ChangeStep(
            index.createStatement, "creates index \(index.name)", .index, rowChange: .keepsValues,
            table: index.table,
            entity: change.new.tables.first { $0.name == index.table }?.entity,
            reason: "changes the indexes of \(index.table)"))
      } catch let error as InstarError {
        // SQLite finds duplicates by itself, but does not name their rows: the search for them reads the whole table.
        // After another error, such as a full disk, the search may fail too, and its error would hide the first one.
        if error.isUniqueViolation { try requireDistinct(index) }
        throw error
      }
      stored.append(described)
    }
  }

  /// The new indexes as a structure describes them, in the layout's order.
  private func orderedIndexes() -> [StoreStructure.Index] {
    let byName = change.new.structure.indexes.keyed(by: \.name)
    return change.new.indexes.compactMap { byName[$0.name] }
  }

  private func requireDistinct(_ index: PlainLayout.Index) throws {
    let terms = index.terms.joined(separator: ", ")
    // GROUP BY allows no term with a sort order. SQLite then refuses duplicates itself.
    guard !terms.uppercased().contains(" DESC"), !terms.uppercased().contains(" ASC"),
      let rows = try session.affectedRows({
        try rows(of: index.table, where: index.condition.map { ["(\($0))"] } ?? [])
          .repeated($0, index.terms)
      })
    else { return }
    throw InstarError(
      .duplicateUniqueValues, "cannot create a unique index on \(index.table) (\(terms))",
      cause: rows.sentence(of: index.table, have: "equal values of \(terms), which becomes unique"),
      next: "remove the duplicates in willMigrate", rows: rows)
  }

  // MARK: Tables

  /// The rows of a table, with the key of its entity where it has one.
  ///
  /// - Parameter missing: Columns of the new version that the table does not have yet.
  private func rows(
    of table: String, without missing: [PlainLayout.Column] = [], where conditions: [String] = []
  ) -> KeyedRows {
    let name = SQLIdentifier.sql(table)
    let keys = change.new.entityLayouts.first { $0.table == name }?.key.columns ?? []
    let isThere = !missing.contains { keys.contains(SQLIdentifier.sql($0.name)) }
    return KeyedRows(table: name, conditions: conditions, keys: isThere ? keys : [])
  }

  private mutating func changeTable(_ pair: PlainSchemaChange.TablePair) throws {
    let name = pair.new.name
    guard
      let sql = try session.objects(of: name).first(where: { $0.type == "table" })?.sql,
      let text = CreateTableText(sql)
    else {
      throw InstarError(
        .unexpectedStructure, "cannot change table \(name)",
        cause: "'\(name)' is not an ordinary table, or its CREATE TABLE statement cannot be parsed",
        next: "let the app itself migrate this store, or leave the table out of the models")
    }
    let removedIndexes = removedIndexes(pair)
    let stored = removedIndexes.isEmpty ? [] : try storedIndexes(of: name)
    let constraints = removedIndexes.filter { removed in
      stored.contains { $0.sql == nil && $0.index.serves(as: removed) }
    }
    let rebuild = TableRebuild(
      pair: pair, old: change.old, new: change.new, difference: change.difference,
      carriedValues: change.carriedValues, text: text, removed: removedNames(pair),
      uniqueColumns: constraints.map(\.columns))
    try rebuild.requireFreeColumns()
    try rebuild.requireConvertibleColumns()
    try requireValues(pair, rebuild)
    if rebuild.isNeeded {
      for step in try rebuild.steps(session) {
        do {
          try execute(step)
        } catch let error as InstarError {
          throw rebuild.explained(error)
        }
      }
    } else {
      try alterColumns(pair, rebuild)
    }
    try fillRequiredComposites(pair)
  }

  private mutating func alterColumns(
    _ pair: PlainSchemaChange.TablePair, _ rebuild: TableRebuild
  ) throws {
    let name = pair.new.name
    for (column, removed) in zip(pair.removed, removedNames(pair)) {
      try execute(
        "ALTER TABLE \(SQLIdentifier.sql(name)) DROP COLUMN \(SQLIdentifier.sql(removed))",
        "drops column \(column.name)", .destructive, rowChange: .dropsColumn, pair.new, column,
        property: newName(of: column, in: pair))
    }
    for column in pair.added {
      try execute(
        "ALTER TABLE \(SQLIdentifier.sql(name)) ADD COLUMN \(column.definition)",
        "adds column \(column.name)", .additive, rowChange: .none, pair.new, column)
    }
    for column in pair.added {
      guard column.defaultValue == nil, let value = rebuild.compositeFill(column) else { continue }
      try execute(
        "UPDATE \(SQLIdentifier.sql(name)) SET \(SQLIdentifier.sql(column.name)) = \(value)",
        "fills empty values of column \(column.name)", .additive, rowChange: .writes, pair.new,
        column)
    }
  }

  private mutating func fillRequiredComposites(_ pair: PlainSchemaChange.TablePair) throws {
    guard
      let mapping = change.difference.entities.first(where: { $0.new.name == pair.new.entity }),
      let entity = change.new.entityLayouts.first(where: { $0.name == pair.new.entity })
    else { return }
    let fills = change.difference.requiredCompositeFills(mapping, entity, table: pair.new.name)
    for step in fills { try execute(step) }
  }

  /// What the new version calls the property of an old column; the old name where it does not have the property.
  private func newName(
    of column: PlainLayout.Column, in pair: PlainSchemaChange.TablePair
  ) -> String? {
    let mapping = change.difference.entities.first { $0.new.name == pair.new.entity }
    return column.role.property.map { mapping?.newName(of: $0) ?? $0 }
  }

  /// Refuses rows without a value for a column that is required in the new version and has no default.
  private func requireValues(_ pair: PlainSchemaChange.TablePair, _ rebuild: TableRebuild) throws {
    for (source, column) in zip(pair.sources, pair.new.columns) where column.isRequired {
      // A function of a transform whose property is required returns a value for each row.
      if rebuild.computedValue(column) != nil { continue }
      if pair.converted.contains(column.name) {
        try requireConverted(column, pair, rebuild)
        continue
      }
      guard rebuild.fill(column) == nil, source?.isRequired != true else { continue }
      let condition = source == nil ? [] : ["\(SQLIdentifier.sql(column.name)) IS NULL"]
      if let rows = try session.affectedRows({
        try rows(of: pair.new.name, without: pair.added).affected($0, where: condition)
      }) {
        throw missingValues(rows, of: column, in: pair, isNew: source == nil)
      }
    }
  }

  /// Refuses rows whose value does not convert to the type of a required column, where nothing else can be their value.
  private func requireConverted(
    _ column: PlainLayout.Column, _ pair: PlainSchemaChange.TablePair, _ rebuild: TableRebuild
  ) throws {
    let isUnique = change.new.schema.entity(named: pair.new.entity ?? "")?.uniquenessConstraints
      .contains([column.role.property ?? ""])
    let fill = rebuild.fill(column)
    guard fill == nil || isUnique == true else { return }
    let condition = rebuild.carriedValue(column).map { ["(\($0)) IS NULL"] } ?? []
    guard
      let rows = try session.affectedRows({
        try rows(of: pair.new.name, without: pair.added).affected($0, where: condition)
      }), rows.count > (fill == nil ? 0 : 1)
    else { return }
    func cause(_ column: String) -> String {
      rows.sentence(
        of: pair.new.name, have: "no value that converts to the new type of the \(column)")
    }
    let next =
      "let willMigrate write values that convert; or set the property in a Transform of a transform stage; or add an "
      + "optional property in one version, write it in didMigrate, and require it in the next version"
    guard let fill else {
      throw InstarError(
        .missingRequiredValues, "cannot change table \(pair.new.name)",
        cause: cause("required column '\(column.name)', and didMigrate runs too late"),
        next: next, rows: rows)
    }
    throw InstarError(
      .duplicateUniqueValues, "cannot change table \(pair.new.name)",
      cause: cause("unique column '\(column.name)', and would all get its initial value \(fill)"),
      next: next, rows: rows)
  }

  /// SQLite has no NOT NULL column that is empty for a while, so `didMigrate` comes too late for a new one. SwiftData
  /// refuses such a property too ("missing attribute values on mandatory destination attribute").
  private func missingValues(
    _ rows: AffectedRows, of column: PlainLayout.Column, in pair: PlainSchemaChange.TablePair,
    isNew: Bool
  ) -> InstarError {
    let path = "\(pair.new.entity ?? pair.new.name).\(column.role.property ?? column.name)"
    var isAttribute = false
    if case .attribute = column.role { isAttribute = true }
    return InstarError(
      .missingRequiredValues, "cannot change table \(pair.new.name)",
      cause: rows.sentence(
        of: pair.new.name,
        have: "no value for the required column '\(column.name)'"
          + (isNew ? ", which is new and must have one before didMigrate runs" : "")),
      next: isNew
        ? SchemaDifference.cureOfEmptyColumn(path, isAttribute: isAttribute)
        : "give the property an initial value, or set it in willMigrate while it is optional",
      rows: rows)
  }
}

extension PlainLayout.Table {
  /// The entity, or for a table of links the entity and relationship that it belongs to.
  fileprivate var subject: (entity: String?, property: String?) {
    if let entity { return (entity, nil) }
    let path = relationships.first?.split(separator: ".", maxSplits: 1).map(String.init) ?? []
    return (path.first, path.dropFirst().first)
  }
}
