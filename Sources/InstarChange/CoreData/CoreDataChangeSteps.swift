import InstarSchema
import InstarStore

/// Collects the steps of a `CoreDataSchemaChange`.
struct CoreDataChangeSteps {
  let old: CoreDataLayout
  let new: CoreDataLayout
  let difference: SchemaDifference
  let style: CoreDataSchemaChange.TableStyle
  let statementsOfStore: [String: String]
  var steps: [ChangeStep] = []
  private(set) var rebuiltTables: Set<String> = []

  /// The column of the old layout that becomes a column of the new one, by the new one's role.
  private(set) var sourceRoles: [CoreDataLayout.Column.Role: CoreDataLayout.Column.Role] = [:]
  var temporaryNames = 0

  /// A table of the new layout, and the one of the old layout that its rows come from.
  struct TablePair {
    var before: CoreDataLayout.Table
    var after: CoreDataLayout.Table
    /// The old and new numbers of the entities whose rows are kept.
    var numbers: [(before: Int, after: Int)]
    var isRebuilt = false
  }

  /// A join table of the new layout and the old one, described from the same side.
  struct JoinPair {
    var before: CoreDataLayout.JoinTable
    var after: CoreDataLayout.JoinTable
    var isRebuilt = false
  }

  init(
    old: CoreDataLayout, new: CoreDataLayout, difference: SchemaDifference,
    style: CoreDataSchemaChange.TableStyle, statementsOfStore: [String: String]
  ) {
    self.old = old
    self.new = new
    self.difference = difference
    self.style = style
    self.statementsOfStore = statementsOfStore
    for mapping in difference.entities {
      let sources = difference.originNames(of: mapping.new)
      for attribute in mapping.attributes {
        guard let name = attribute.old?.name else { continue }
        // A value that would have to be converted is not copied: its column is created again, empty.
        sourceRoles[.attribute(entity: mapping.new.name, name: attribute.new.name)] =
          Self.role(in: old, at: sources, ifAlike: attribute.new.type) {
            .attribute(entity: $0, name: name)
          }
      }
      for relationship in mapping.relationships {
        addSources(of: relationship, entity: mapping.new.name, sources)
      }
    }
  }

  private mutating func addSources(
    of relationship: SchemaDifference.PropertyMapping<Schema.Relationship>,
    entity: String, _ sources: [String]
  ) {
    guard let before = relationship.old, difference.haveSameDestination(before, relationship.new),
      before.isToOneRelationship == relationship.new.isToOneRelationship
    else { return }
    let name = relationship.new.name
    typealias Role = CoreDataLayout.Column.Role
    for role in [Role.toOne, Role.toOneEntityNumber, Role.toOneOrder, Role.ownerKey] {
      sourceRoles[role(entity, name)] =
        Self.role(in: old, at: sources) { role($0, before.name) }
    }
    if let inverse = difference.addedInverse(of: relationship),
      let role = Self.role(
        in: new, at: [relationship.new.destination],
        { .toOne(entity: $0, name: inverse.name) })
    {
      sourceRoles[role] =
        Self.role(in: old, at: sources) { .ownerKey(entity: $0, name: before.name) }
    }
    if let inverse = difference.removedInverse(of: relationship) {
      sourceRoles[.ownerKey(entity: entity, name: name)] =
        Self.role(in: old, at: [before.destination]) { .toOne(entity: $0, name: inverse.name) }
    }
  }

  /// The role of a property's column: it may be declared by the first of the entities itself, by one above it or by one
  /// below; else by the next.
  ///
  /// - Parameter type: Entities that declare the attribute with values of another kind are left out.
  static func role(
    in layout: CoreDataLayout, at entities: [String], ifAlike type: Schema.AttributeType? = nil,
    _ role: (String) -> CoreDataLayout.Column.Role
  ) -> CoreDataLayout.Column.Role? {
    for own in entities.compactMap({ layout.entity(named: $0) }) {
      let above = layout.entities.filter {
        $0.numbers.contains(own.number) && $0.number != own.number
      }
      let below = layout.entities.filter {
        own.numbers.contains($0.number) && $0.number != own.number
      }
      for candidate in [own] + above.reversed() + below {
        let role = role(candidate.name)
        if let type, !candidate.has(role, like: type) { continue }
        let exists = layout.tables.contains { table in table.columns.contains { $0.role == role } }
        if exists { return role }
      }
    }
    return nil
  }

  mutating func plan() {
    let tables = tablePairs()
    let joins = joinPairs()
    let kept = keptIndexes(tables, joins)
    rebuiltTables = Set(
      tables.filter(\.isRebuilt).map(\.before.name) + joins.filter(\.isRebuilt).map(\.before.name))
    let dropped = droppedTables(tables, joins)
    endLinksToRemovedRows(tables, joins)
    dropIndexes(besides: kept, ofTablesOtherThan: rebuiltTables.union(dropped))
    let links = copyLinks()
    let aside = moveAside(rebuiltTables)
    for name in dropped { dropTable(name) }
    renameTables(tables, joins)
    for pair in tables where !pair.isRebuilt { changeColumns(pair) }
    for pair in joins where !pair.isRebuilt {
      rename(
        [
          (pair.before.column, pair.after.column),
          (pair.before.otherColumn, pair.after.otherColumn),
        ], in: pair.after.name)
    }
    createTables(tables, joins)
    for pair in tables where pair.isRebuilt {
      fillTable(pair, from: aside[pair.before.name] ?? pair.before.name)
    }
    for pair in joins where pair.isRebuilt {
      fillJoinTable(pair, from: aside[pair.before.name] ?? pair.before.name)
    }
    dropTablesAside(aside)
    renumber(tables)
    for pair in tables { fillEntityNumbers(pair) }
    for mapping in difference.entities {
      guard let entity = new.entity(named: mapping.new.name) else { continue }
      steps += difference.requiredCompositeFills(mapping, entity, table: entity.table)
    }
    endMovedLinks(joins)
    storeLinks(links)
    createIndexes(besides: kept)
  }

  // MARK: Steps

  mutating func add(
    _ sql: String, _ comment: String, _ kind: ChangeKind, rowChange: RowChange, table: String,
    column: String? = nil, entity: String? = nil, property: String? = nil, reason: String? = nil
  ) {
    steps.append(
      ChangeStep(
        sql, comment, kind, rowChange: rowChange, table: table, column: column, entity: entity,
        property: property, reason: reason))
  }

  /// Adds a statement for a column of the new version.
  mutating func add(
    _ sql: String, _ comment: String, _ kind: ChangeKind, rowChange: RowChange, table: String,
    column: CoreDataLayout.Column
  ) {
    let property = column.role.property
    add(
      sql, comment, kind, rowChange: rowChange, table: table, column: column.name,
      entity: property?.entity, property: property?.name)
  }

  private mutating func dropIndexes(
    besides kept: Set<String>, ofTablesOtherThan gone: Set<String>
  ) {
    for index in old.indexes where !kept.contains(index.name) && !gone.contains(index.table) {
      add(
        "DROP INDEX \(index.name)", "drops index \(index.name)", .index, rowChange: .keepsValues,
        table: index.table,
        entity: old.tables.first { $0.name == index.table }.map {
          difference.newName(of: $0.rootEntity)
        },
        reason: Self.indexReason(index.table))
    }
  }

  private mutating func createIndexes(besides kept: Set<String>) {
    for index in new.indexes where !kept.contains(index.name) {
      add(
        index.isPartial && old.indexes.contains(index)
          ? statementsOfStore[index.name] ?? index.createStatement : index.createStatement,
        "creates index \(index.name)", .index, rowChange: .keepsValues, table: index.table,
        entity: new.tables.first { $0.name == index.table }?.rootEntity,
        reason: Self.indexReason(index.table))
    }
  }

  /// Drops rebuilt tables under the names that they were moved to, given by their own.
  private mutating func dropTablesAside(_ aside: [String: String]) {
    for (name, copy) in aside.sorted(by: { $0.value < $1.value }) {
      add(
        "DROP TABLE \(copy)", "drops the old \(name)", .rebuild, rowChange: .writes, table: name,
        reason: rebuildReason(name))
    }
  }

  private static func indexReason(_ table: String) -> String { "changes the indexes of \(table)" }

  func rebuildReason(_ table: String) -> String {
    style == .fresh
      ? "rebuilds table \(table) with the column order of a new store"
      : "rebuilds table \(table), which ALTER TABLE cannot change"
  }

  // MARK: Which table becomes which

  private func tablePairs() -> [TablePair] {
    var pairs: [TablePair] = []
    for table in new.tables {
      var numbers: [String: [(before: Int, after: Int)]] = [:]
      var first: String?
      for entity in new.entities where entity.table == table.name {
        guard let name = difference.sourceName(of: entity.name),
          let source = old.entity(named: name)
        else { continue }
        // Rows of two hierarchies may have the same keys, so only those of one are kept.
        first = first ?? source.table
        numbers[source.table, default: []].append((source.number, entity.number))
      }
      guard let name = first, let before = old.tables.first(where: { $0.name == name }) else {
        continue
      }
      pairs.append(TablePair(before: before, after: table, numbers: numbers[name] ?? []))
    }
    var uses: [String: Int] = [:]
    for pair in pairs { uses[pair.before.name, default: 0] += 1 }
    for index in pairs.indices {
      pairs[index].isRebuilt =
        uses[pairs[index].before.name] != 1 || needsRebuild(pairs[index].before, pairs[index].after)
    }
    return pairs
  }

  private func needsRebuild(
    _ before: CoreDataLayout.Table, _ after: CoreDataLayout.Table
  ) -> Bool {
    let sources = after.columns.map { source(of: $0, in: before)?.name }
    // A property that moved to several entities below has its values copied to several columns.
    let used = sources.compactMap(\.self)
    if Set(used).count != used.count { return true }
    // Constraints of a table can only be changed with it; places in an order have to be given.
    if before.uniqueColumns != after.uniqueColumns { return true }
    for (column, source) in zip(after.columns, sources) where source == nil {
      if case .toOneOrder = column.role { return true }
    }
    return style == .fresh
      && (before.createStatement != after.createStatement
        || sources != after.columns.map { Optional($0.name) })
  }

  /// Either of its two relationships identifies a join table, because one may have been renamed without `originalName`.
  private func joinPairs() -> [JoinPair] {
    new.joinTables.compactMap { after in
      for before in old.joinTables {
        // With other entity numbers the table may be named after the other side.
        for before in [before, before.turned] {
          let comesAlong =
            comes(after.entity, after.relationship, from: before.entity, before.relationship)
            || comes(
              after.otherEntity, after.otherRelationship, from: before.otherEntity,
              before.otherRelationship)
          guard comesAlong else { continue }
          let isChanged = before.createStatement != after.createStatement
          let hasOtherOrder =
            (before.orderColumn == nil) != (after.orderColumn == nil)
            || (before.otherOrderColumn == nil) != (after.otherOrderColumn == nil)
          return JoinPair(
            before: before, after: after,
            isRebuilt: hasOtherOrder || (style == .fresh && isChanged)
              || (isChanged && before.orderColumn ?? before.otherOrderColumn != nil))
        }
      }
      return nil
    }
  }

  private func comes(
    _ entity: String, _ relationship: String, from oldEntity: String, _ oldRelationship: String
  ) -> Bool {
    guard difference.sourceName(of: entity) == oldEntity,
      let mapping = difference.entities.first(where: { $0.new.name == entity })?.relationships
        .first(where: { $0.new.name == relationship }),
      let before = mapping.old
    else { return false }
    return before.name == oldRelationship && difference.haveSameDestination(before, mapping.new)
  }

  func source(
    of column: CoreDataLayout.Column, in table: CoreDataLayout.Table
  ) -> CoreDataLayout.Column? {
    switch column.role {
    case .primaryKey, .entityNumber, .optimisticLock:
      table.columns.first { $0.role == column.role }
    case .attribute, .toOne, .toOneEntityNumber, .toOneOrder, .ownerKey:
      sourceRoles[column.role].flatMap { role in table.columns.first { $0.role == role } }
    }
  }

  /// An index stays if it keeps its definition and its columns keep their identity, not only their names.
  private func keptIndexes(_ tables: [TablePair], _ joins: [JoinPair]) -> Set<String> {
    var kept: Set<String> = []
    for index in new.indexes where old.indexes.contains(index) {
      if let pair = tables.first(where: { $0.after.name == index.table }) {
        let staysPut = index.columns.allSatisfy { name in
          pair.after.columns.first { $0.name == name }
            .flatMap { source(of: $0, in: pair.before) }?.name == name
        }
        if staysPut, !pair.isRebuilt, pair.before.name == pair.after.name {
          kept.insert(index.name)
        }
      } else if joins.contains(where: { $0.before == $0.after && $0.after.name == index.table }) {
        kept.insert(index.name)
      }
    }
    return kept
  }

  // MARK: Tables

  private func droppedTables(_ tables: [TablePair], _ joins: [JoinPair]) -> [String] {
    let kept = Set(tables.map(\.before.name) + joins.map(\.before.name))
    return (old.tables.map(\.name) + old.joinTables.map(\.name)).filter { !kept.contains($0) }
  }

  private mutating func dropTable(_ name: String) {
    let joins = old.joinTables.first { $0.name == name }
    let entity = old.tables.first { $0.name == name }?.rootEntity ?? joins?.entity
    add(
      "DROP TABLE \(name)", "drops table \(name)", .destructive, rowChange: .writes, table: name,
      entity: entity.map(difference.newName), property: joins?.relationship)
  }

  /// - Returns: The temporary names, by the names that the tables had.
  private mutating func moveAside(_ names: Set<String>) -> [String: String] {
    var aside: [String: String] = [:]
    for name in names.sorted() {
      let free = temporaryName()
      aside[name] = free
      add(
        "ALTER TABLE \(name) RENAME TO \(free)", "moves the old \(name) aside", .rebuild,
        rowChange: .none, table: name, reason: rebuildReason(name))
    }
    return aside
  }

  private mutating func renameTables(_ tables: [TablePair], _ joins: [JoinPair]) {
    let moves =
      tables.filter { !$0.isRebuilt }.map { ($0.before.name, $0.after.name) }
      + joins.filter { !$0.isRebuilt }.map { ($0.before.name, $0.after.name) }
    for (from, to) in RenameOrder.of(moves, temporaryName: { _ in temporaryName() }) {
      add(
        "ALTER TABLE \(from) RENAME TO \(to)", "renames table \(from) to \(to)", .rename,
        rowChange: .none, table: to,
        entity: tables.first { $0.after.name == to }?.after.rootEntity)
    }
  }

  /// In the order of a new store.
  private mutating func createTables(_ tables: [TablePair], _ joins: [JoinPair]) {
    let existing = Set(
      tables.filter { !$0.isRebuilt }.map(\.after.name)
        + joins.filter { !$0.isRebuilt }.map(\.after.name))
    for table in new.tables {
      if !existing.contains(table.name) {
        create(
          table.createStatement, table.name, entity: table.rootEntity,
          rebuilt: tables.first { $0.isRebuilt && $0.after.name == table.name }?.before.name)
      }
      for join in new.joinTables where new.entity(named: join.entity)?.table == table.name {
        if !existing.contains(join.name) {
          create(
            join.createStatement, join.name, entity: join.entity, property: join.relationship,
            rebuilt: joins.first { $0.isRebuilt && $0.after.name == join.name }?.before.name)
        }
      }
    }
  }

  /// - Parameter rebuilt: The old table, where the new one replaces it.
  private mutating func create(
    _ sql: String, _ table: String, entity: String, property: String? = nil, rebuilt: String?
  ) {
    if let rebuilt {
      add(
        sql, "creates the new \(table)", .rebuild, rowChange: .keepsValues, table: table,
        reason: rebuildReason(rebuilt))
    } else {
      add(
        sql, "creates table \(table)", .additive, rowChange: .keepsValues, table: table,
        entity: entity, property: property)
    }
  }

  mutating func temporaryName() -> String {
    temporaryNames += 1
    return "Z_INSTAR_\(temporaryNames)"
  }
}

extension EntityLayout {
  /// Whether the values of an attribute need no conversion to a type.
  fileprivate func has(
    _ role: CoreDataLayout.Column.Role, like type: Schema.AttributeType
  ) -> Bool {
    guard let name = role.property?.name else { return false }
    return attributes.contains {
      $0.attribute.name == name && $0.attribute.type.isStoredLike(type)
    }
  }
}

extension CoreDataLayout.Column.Role {
  /// The property that the column is of; `nil` for the columns of every table.
  var property: (entity: String, name: String)? {
    switch self {
    case .primaryKey, .entityNumber, .optimisticLock: nil
    case .attribute(let entity, let name), .toOne(let entity, let name),
      .toOneEntityNumber(let entity, let name), .toOneOrder(let entity, let name),
      .ownerKey(let entity, let name):
      (entity, name)
    }
  }

  /// Whether a column has another part of the link whose key a column of the role has.
  func isPart(of role: CoreDataLayout.Column.Role) -> Bool {
    guard case .toOne(let entity, let name) = role else { return false }
    return self == .toOneEntityNumber(entity: entity, name: name)
      || self == .toOneOrder(entity: entity, name: name)
  }
}
