package import InstarSchema
package import InstarStore

/// The SQL that turns a store of one layout into one of another, and nothing else: no row that both versions have is
/// lost, and no statement depends on what is in the rows.
///
/// The cheapest statement wins: `ADD COLUMN` and `RENAME COLUMN` do not depend on the number of rows. A table whose
/// columns would so end in another order than in a new store is made anew where that matters (see `TableStyle`): Core Data
/// does the same to its own (Core Data layout, section 10). Each table is rebuilt once, by one `INSERT … SELECT`.
///
/// Order, and why:
/// 1. indexes that will not stay are dropped: SQLite refuses to drop a column that an index uses;
/// 2. tables that are made anew are moved aside, those without a successor are dropped, which frees their names;
/// 3. tables, then columns, take their new names: dropped columns first, which frees theirs; a name that is still taken
///    by another one on its way is reached through a name of our own;
/// 4. columns and tables that are new are added, and required values filled in; tables made anew get their rows, with
///    the numbers of step 5 already;
/// 5. entity numbers are rewritten everywhere a row carries one (Core Data layout, section 5), and written where a
///    destination got its first sub-entity;
/// 6. links of to-one relationships that lead to many now get their new place: they were set aside before step 2;
/// 7. indexes that are new are made, last, over the final values.
package struct CoreDataChange {
  package let statements: [String]

  /// How a table with other columns comes about.
  package enum TableStyle: Sendable {
    /// By the cheapest statements; columns that are added stand last.
    case altered
    /// In the order and under the text of a new store.
    case fresh
  }

  /// - Parameter statementsOfStore: those that made the objects of the store, by their names; an index that only the store
  ///   knows how to make is made as it was.
  package init(
    from old: CoreDataLayout, to new: CoreDataLayout, _ difference: SchemaDifference,
    style: TableStyle = .altered, statementsOfStore: [String: String] = [:]
  ) {
    var planner = CoreDataChangePlanner(
      old: old, new: new, difference: difference, style: style,
      statementsOfStore: statementsOfStore)
    planner.plan()
    statements = planner.statements
  }
}

struct CoreDataChangePlanner {
  let old: CoreDataLayout
  let new: CoreDataLayout
  let difference: SchemaDifference
  let style: CoreDataChange.TableStyle
  let statementsOfStore: [String: String]
  var statements: [String] = []

  /// The column of the old layout that becomes a column of the new one, by the new one's role.
  private(set) var sourceRoles: [CoreDataLayout.Column.Role: CoreDataLayout.Column.Role] = [:]
  var temporaryNames = 0

  /// A table of the new layout, and the one of the old layout that its rows come from.
  struct TablePair {
    var before: CoreDataLayout.Table
    var after: CoreDataLayout.Table
    /// The numbers of the entities whose rows come along: what they were, what they become.
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
    style: CoreDataChange.TableStyle, statementsOfStore: [String: String]
  ) {
    self.old = old
    self.new = new
    self.difference = difference
    self.style = style
    self.statementsOfStore = statementsOfStore
    for mapping in difference.entities {
      let sources = difference.originNames(of: mapping.new)
      for attribute in mapping.attributes {
        // A value that has to be converted does not come along: its column is made anew, empty.
        guard let before = attribute.old, before.type.isStoredLike(attribute.new.type) else {
          continue
        }
        sourceRoles[.attribute(entity: mapping.new.name, name: attribute.new.name)] =
          Self.role(in: old, at: sources) { .attribute(entity: $0, name: before.name) }
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
    guard let before = relationship.old, difference.leadToSameEntity(before, relationship.new),
      before.isToOneRelationship == relationship.new.isToOneRelationship
    else { return }
    let name = relationship.new.name
    sourceRoles[.toOne(entity: entity, name: name)] =
      Self.role(in: old, at: sources) { .toOne(entity: $0, name: before.name) }
    sourceRoles[.toOneEntityNumber(entity: entity, name: name)] =
      Self.role(in: old, at: sources) { .toOneEntityNumber(entity: $0, name: before.name) }
    sourceRoles[.toOneOrder(entity: entity, name: name)] =
      Self.role(in: old, at: sources) { .toOneOrder(entity: $0, name: before.name) }
    sourceRoles[.ownerKey(entity: entity, name: name)] =
      Self.role(in: old, at: sources) { .ownerKey(entity: $0, name: before.name) }
    if let inverse = difference.inverseThatCame(for: relationship),
      let role = Self.role(
        in: new, at: [relationship.new.destination],
        { .toOne(entity: $0, name: inverse.name) })
    {
      sourceRoles[role] =
        Self.role(in: old, at: sources) { .ownerKey(entity: $0, name: before.name) }
    }
    if let inverse = difference.inverseThatWent(for: relationship) {
      sourceRoles[.ownerKey(entity: entity, name: name)] =
        Self.role(in: old, at: [before.destination]) { .toOne(entity: $0, name: inverse.name) }
    }
  }

  /// The role of a property's column: it may be declared by the first of the entities itself, by one above it or by one
  /// below; else by the next.
  static func role(
    in layout: CoreDataLayout, at entities: [String],
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
    let changedTables = Set(
      tables.filter(\.isRebuilt).map(\.before.name) + joins.filter(\.isRebuilt).map(\.before.name))
    let dropped = droppedTables(tables, joins)
    for index in old.indexes
    where !kept.contains(index.name) && !changedTables.contains(index.table)
      && !dropped.contains(index.table)
    {
      statements.append("DROP INDEX \(index.name)")
    }
    let links = setLinksAside()
    let aside = moveAside(changedTables)
    for name in dropped { statements.append("DROP TABLE \(name)") }
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
    for name in aside.values.sorted() { statements.append("DROP TABLE \(name)") }
    renumber(tables)
    for pair in tables { fillEntityNumbers(pair) }
    putBack(links)
    for index in new.indexes where !kept.contains(index.name) {
      statements.append(
        index.isPartial && old.indexes.contains(index)
          ? statementsOfStore[index.name] ?? index.createStatement : index.createStatement)
    }
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
        // Rows of two hierarchies have keys of their own: only those of one can come along.
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
    // Constraints of a table can only be changed with it; places in an order have to be given.
    if before.uniqueColumns != after.uniqueColumns { return true }
    for (column, source) in zip(after.columns, sources) where source == nil {
      if case .toOneOrder = column.role { return true }
    }
    return style == .fresh
      && (before.createStatement != after.createStatement
        || sources != after.columns.map { Optional($0.name) })
  }

  /// A join table is known by either of its two relationships: one may have been renamed without saying so.
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
    return before.name == oldRelationship && difference.leadToSameEntity(before, mapping.new)
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

  /// - Returns: The names aside, by the names they had.
  private mutating func moveAside(_ names: Set<String>) -> [String: String] {
    var aside: [String: String] = [:]
    for name in names.sorted() {
      let free = temporaryName()
      aside[name] = free
      statements.append("ALTER TABLE \(name) RENAME TO \(free)")
    }
    return aside
  }

  private mutating func renameTables(_ tables: [TablePair], _ joins: [JoinPair]) {
    let moves =
      tables.filter { !$0.isRebuilt }.map { ($0.before.name, $0.after.name) }
      + joins.filter { !$0.isRebuilt }.map { ($0.before.name, $0.after.name) }
    for (from, to) in inOrder(moves) { statements.append("ALTER TABLE \(from) RENAME TO \(to)") }
  }

  /// In the order of a new store.
  private mutating func createTables(_ tables: [TablePair], _ joins: [JoinPair]) {
    let existing = Set(
      tables.filter { !$0.isRebuilt }.map(\.after.name)
        + joins.filter { !$0.isRebuilt }.map(\.after.name))
    for table in new.tables {
      if !existing.contains(table.name) { statements.append(table.createStatement) }
      for join in new.joinTables where new.entity(named: join.entity)?.table == table.name {
        if !existing.contains(join.name) { statements.append(join.createStatement) }
      }
    }
  }

  mutating func temporaryName() -> String {
    temporaryNames += 1
    return "Z_INSTAR_\(temporaryNames)"
  }

  /// Orders renames so that none takes a name that is still in use; a name in a circle is first moved aside.
  mutating func inOrder(_ moves: [(String, String)]) -> [(String, String)] {
    var waiting = moves.filter { $0.0 != $0.1 }
    var ordered: [(String, String)] = []
    while !waiting.isEmpty {
      let taken = Set(waiting.map(\.0))
      if let free = waiting.firstIndex(where: { !taken.contains($0.1) }) {
        ordered.append(waiting.remove(at: free))
      } else {
        let aside = temporaryName()
        ordered.append((waiting[0].0, aside))
        waiting[0].0 = aside
      }
    }
    return ordered
  }
}
