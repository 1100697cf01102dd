package import InstarSchema
package import InstarStore

/// The SQL that turns a store of one layout into one of another, and nothing else: no row that both versions have is
/// lost, and no statement depends on what is in the rows.
///
/// The cheapest statement wins: `ADD COLUMN` and `RENAME COLUMN` do not depend on the number of rows. Order, and why:
/// 1. indexes that will not stay are dropped: SQLite refuses to drop a column that an index uses;
/// 2. tables without a successor are dropped, which frees their names;
/// 3. tables, then columns, take their new names: dropped columns first, which frees theirs; a name that is still taken
///    by another one on its way is reached through a name of our own;
/// 4. columns and tables that are new are added, and required values filled in;
/// 5. entity numbers are rewritten everywhere a row carries one (Core Data layout, section 5), and written where a
///    destination got its first sub-entity;
/// 6. indexes that are new are made, last, over the final values.
package struct LayoutChange {
  package let statements: [String]

  package init(
    from old: CoreDataLayout, to new: CoreDataLayout, _ difference: SchemaDifference
  ) {
    var planner = LayoutChangePlanner(old: old, new: new, difference: difference)
    planner.plan()
    statements = planner.statements
  }
}

private struct LayoutChangePlanner {
  let old: CoreDataLayout
  let new: CoreDataLayout
  let difference: SchemaDifference
  var statements: [String] = []

  /// The column of the old layout that becomes a column of the new one, by the new one's role.
  private var sourceRoles: [CoreDataLayout.Column.Role: CoreDataLayout.Column.Role] = [:]
  private var temporaryNames = 0

  init(old: CoreDataLayout, new: CoreDataLayout, difference: SchemaDifference) {
    self.old = old
    self.new = new
    self.difference = difference
    for mapping in difference.entities {
      guard let source = mapping.old else { continue }
      for attribute in mapping.attributes {
        // A value that has to be converted does not come along: its column is made anew, empty.
        guard let before = attribute.old, before.type.isStoredLike(attribute.new.type) else {
          continue
        }
        sourceRoles[.attribute(entity: mapping.new.name, name: attribute.new.name)] =
          .attribute(entity: source.name, name: before.name)
      }
      for relationship in mapping.relationships {
        guard let before = relationship.old, before.destination == relationship.new.destination,
          before.isToOneRelationship == relationship.new.isToOneRelationship
        else { continue }
        let (oldName, newName) = (before.name, relationship.new.name)
        sourceRoles[.toOne(entity: mapping.new.name, name: newName)] =
          .toOne(entity: source.name, name: oldName)
        sourceRoles[.toOneEntityNumber(entity: mapping.new.name, name: newName)] =
          .toOneEntityNumber(entity: source.name, name: oldName)
        sourceRoles[.ownerKey(entity: mapping.new.name, name: newName)] =
          .ownerKey(entity: source.name, name: oldName)
        if let inverse = difference.inverseThatCame(for: relationship) {
          sourceRoles[.toOne(entity: relationship.new.destination, name: inverse.name)] =
            .ownerKey(entity: source.name, name: oldName)
        }
        if let inverse = difference.inverseThatWent(for: relationship) {
          sourceRoles[.ownerKey(entity: mapping.new.name, name: newName)] =
            .toOne(entity: before.destination, name: inverse.name)
        }
      }
    }
  }

  mutating func plan() {
    let tables = tablePairs()
    let joins = joinPairs()
    let kept = keptIndexes(tables, joins)
    for index in old.indexes where !kept.contains(index.name) {
      statements.append("DROP INDEX \(index.name)")
    }
    dropTables(tables, joins)
    renameTables(joins)
    for (before, after) in tables { changeColumns(before, after) }
    for (before, after) in joins {
      rename(
        [(before.column, after.column), (before.otherColumn, after.otherColumn)], in: after.name)
    }
    createTables(tables, joins)
    renumber(tables)
    for (before, after) in tables { fillEntityNumbers(before, after) }
    for index in new.indexes where !kept.contains(index.name) {
      statements.append(index.createStatement)
    }
  }

  // MARK: Which table becomes which

  private func tablePairs() -> [(CoreDataLayout.Table, CoreDataLayout.Table)] {
    new.tables.compactMap { table in
      old.tables.first { $0.rootEntity == table.rootEntity }.map { ($0, table) }
    }
  }

  /// A join table is known by either of its two relationships: one may have been renamed without saying so.
  private func joinPairs() -> [(CoreDataLayout.JoinTable, CoreDataLayout.JoinTable)] {
    new.joinTables.compactMap { after in
      for before in old.joinTables {
        // With other entity numbers the table may be named after the other side.
        for before in [before, before.turned] {
          let comesAlong =
            comes(after.entity, after.relationship, from: before.entity, before.relationship)
            || comes(
              after.otherEntity, after.otherRelationship, from: before.otherEntity,
              before.otherRelationship)
          if comesAlong { return (before, after) }
        }
      }
      return nil
    }
  }

  private func comes(
    _ entity: String, _ relationship: String, from oldEntity: String, _ oldRelationship: String
  ) -> Bool {
    guard entity == oldEntity,
      let mapping = difference.entities.first(where: { $0.new.name == entity })?.relationships
        .first(where: { $0.new.name == relationship }),
      let before = mapping.old
    else { return false }
    return before.name == oldRelationship && before.destination == mapping.new.destination
  }

  private func source(
    of column: CoreDataLayout.Column, in table: CoreDataLayout.Table
  ) -> CoreDataLayout.Column? {
    switch column.role {
    case .primaryKey, .entityNumber, .optimisticLock:
      table.columns.first { $0.role == column.role }
    case .attribute, .toOne, .toOneEntityNumber, .ownerKey:
      sourceRoles[column.role].flatMap { role in table.columns.first { $0.role == role } }
    }
  }

  /// An index stays if it keeps its definition and its columns keep their identity, not only their names.
  private func keptIndexes(
    _ tables: [(CoreDataLayout.Table, CoreDataLayout.Table)],
    _ joins: [(CoreDataLayout.JoinTable, CoreDataLayout.JoinTable)]
  ) -> Set<String> {
    var kept: Set<String> = []
    for index in new.indexes where old.indexes.contains(index) {
      if let (before, after) = tables.first(where: { $1.name == index.table }) {
        let staysPut = index.columns.allSatisfy { name in
          after.columns.first { $0.name == name }
            .flatMap { source(of: $0, in: before) }?.name == name
        }
        if staysPut, before.name == after.name { kept.insert(index.name) }
      } else if joins.contains(where: { $0 == $1 && $1.name == index.table }) {
        kept.insert(index.name)
      }
    }
    return kept
  }

  // MARK: Tables

  private mutating func dropTables(
    _ tables: [(CoreDataLayout.Table, CoreDataLayout.Table)],
    _ joins: [(CoreDataLayout.JoinTable, CoreDataLayout.JoinTable)]
  ) {
    let kept = Set(tables.map(\.0.name) + joins.map(\.0.name))
    for name in old.tables.map(\.name) + old.joinTables.map(\.name) where !kept.contains(name) {
      statements.append("DROP TABLE \(name)")
    }
  }

  private mutating func renameTables(
    _ joins: [(CoreDataLayout.JoinTable, CoreDataLayout.JoinTable)]
  ) {
    let moves = joins.map { ($0.name, $1.name) }
    for (from, to) in inOrder(moves) { statements.append("ALTER TABLE \(from) RENAME TO \(to)") }
  }

  private mutating func createTables(
    _ tables: [(CoreDataLayout.Table, CoreDataLayout.Table)],
    _ joins: [(CoreDataLayout.JoinTable, CoreDataLayout.JoinTable)]
  ) {
    let existing = Set(tables.map(\.1.name) + joins.map(\.1.name))
    for table in new.tables where !existing.contains(table.name) {
      statements.append(table.createStatement)
    }
    for table in new.joinTables where !existing.contains(table.name) {
      statements.append(table.createStatement)
    }
  }

  // MARK: Columns

  private mutating func changeColumns(
    _ before: CoreDataLayout.Table, _ after: CoreDataLayout.Table
  ) {
    let sources = after.columns.map { source(of: $0, in: before) }
    let used = Set(sources.compactMap { $0?.name })
    for column in before.columns where !used.contains(column.name) {
      statements.append("ALTER TABLE \(after.name) DROP COLUMN \(column.name)")
    }
    rename(
      zip(sources, after.columns).compactMap { source, column in
        source.map { ($0.name, column.name) }
      }, in: after.name)
    for (source, column) in zip(sources, after.columns) where source == nil {
      statements.append(
        "ALTER TABLE \(after.name) ADD COLUMN \(column.name) \(column.declaration)")
    }
    for column in after.columns { fill(column, in: after) }
  }

  /// A required attribute that is new, was optional or had another type gets its default where rows have no value.
  private mutating func fill(
    _ column: CoreDataLayout.Column, in table: CoreDataLayout.Table
  ) {
    guard case .attribute(let entity, let name) = column.role,
      let mapping = difference.entities.first(where: { $0.new.name == entity }),
      let attribute = mapping.attributes.first(where: { $0.new.name == name }),
      !attribute.new.isOptional, let value = attribute.new.defaultValue,
      let numbers = new.entity(named: entity)?.numbers
    else { return }
    if let before = attribute.old, !before.isOptional, before.type.isStoredLike(attribute.new.type)
    {
      return
    }
    var condition = "\(column.name) IS NULL"
    if let layout = new.entity(named: entity), layout.superNumber != 0 || numbers.count > 1 {
      // The rows still carry the old numbers here.
      let oldNumbers = old.entity(named: entity)?.numbers ?? []
      condition += " AND Z_ENT IN (\(oldNumbers.map(String.init).joined(separator: ", ")))"
    }
    if attribute.old == nil, mapping.new.uniquenessConstraints.contains([name]) {
      // One default for many rows would not be unique: they wait for the plan's code.
      condition += " AND (SELECT COUNT(*) FROM \(table.name)) = 1"
    }
    statements.append(
      "UPDATE \(table.name) SET \(column.name) = \(value.literal) WHERE \(condition)")
  }

  private mutating func rename(_ moves: [(String, String)], in table: String) {
    for (from, to) in inOrder(moves) {
      statements.append("ALTER TABLE \(table) RENAME COLUMN \(from) TO \(to)")
    }
  }

  /// Orders renames so that none takes a name that is still in use; a name in a circle is first moved aside.
  private mutating func inOrder(_ moves: [(String, String)]) -> [(String, String)] {
    var waiting = moves.filter { $0.0 != $0.1 }
    var ordered: [(String, String)] = []
    while !waiting.isEmpty {
      let taken = Set(waiting.map(\.0))
      if let free = waiting.firstIndex(where: { !taken.contains($0.1) }) {
        ordered.append(waiting.remove(at: free))
      } else {
        temporaryNames += 1
        let aside = "Z_INSTAR_\(temporaryNames)"
        ordered.append((waiting[0].0, aside))
        waiting[0].0 = aside
      }
    }
    return ordered
  }

  // MARK: Entity numbers

  private mutating func renumber(
    _ tables: [(CoreDataLayout.Table, CoreDataLayout.Table)]
  ) {
    var numbers: [(Int, Int)] = []
    for entity in new.entities {
      if let before = old.entity(named: entity.name) {
        numbers.append((before.number, entity.number))
      }
    }
    let moved = numbers.filter { $0.0 != $0.1 }
    for (_, table) in tables where !moved.isEmpty {
      for column in table.columns {
        let destination: [Int]
        switch column.role {
        case .entityNumber:
          destination = new.entities.filter { $0.root == table.rootEntity }.map(\.number)
        case .toOneEntityNumber: destination = new.entities.map(\.number)
        default: continue
        }
        let relevant = moved.filter { destination.contains($0.1) }
        guard !relevant.isEmpty else { continue }
        statements.append(
          LayoutChange.renumberStatement(table: table.name, column: column.name, relevant))
      }
    }
    renumberPrimaryKeys(numbers)
  }

  /// A relationship whose destination got its first sub-entity has a new column, for the number of the row it refers to.
  private mutating func fillEntityNumbers(
    _ before: CoreDataLayout.Table, _ after: CoreDataLayout.Table
  ) {
    for column in after.columns where source(of: column, in: before) == nil {
      guard case .toOneEntityNumber(let entity, let name) = column.role,
        let key = after.columns.first(where: { $0.role == .toOne(entity: entity, name: name) }),
        source(of: key, in: before) != nil,
        let destination = new.entity(named: entity)?.relationships
          .first(where: { $0.relationship.name == name })?.destinationTable
      else { continue }
      statements.append(
        "UPDATE \(after.name) SET \(column.name) = (SELECT d.Z_ENT FROM \(destination) AS d "
          + "WHERE d.Z_PK = \(after.name).\(key.name)) WHERE \(key.name) IS NOT NULL")
    }
  }

  /// Z_ENT is the key of Z_PRIMARYKEY, so a number that another entity still has cannot be taken at once: all move to
  /// negative numbers first.
  private mutating func renumberPrimaryKeys(_ numbers: [(Int, Int)]) {
    for entity in old.entities where new.entity(named: entity.name) == nil {
      statements.append("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = \(entity.number)")
    }
    let moved = numbers.filter { $0.0 != $0.1 }
    for (before, after) in moved {
      statements.append("UPDATE Z_PRIMARYKEY SET Z_ENT = -\(after) WHERE Z_ENT = \(before)")
    }
    if !moved.isEmpty {
      statements.append("UPDATE Z_PRIMARYKEY SET Z_ENT = -Z_ENT WHERE Z_ENT < 0")
    }
    for entity in new.entities {
      if let before = old.entity(named: entity.name) {
        if before.superNumber != entity.superNumber {
          statements.append(
            "UPDATE Z_PRIMARYKEY SET Z_SUPER = \(entity.superNumber) WHERE Z_ENT = \(entity.number)"
          )
        }
      } else {
        statements.append(
          "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) "
            + "VALUES (\(entity.number), '\(entity.name)', \(entity.superNumber), 0)")
      }
    }
  }
}

extension LayoutChange {
  static func renumberStatement(
    table: String, column: String, _ numbers: [(Int, Int)]
  ) -> String {
    let cases = numbers.map { "WHEN \($0.0) THEN \($0.1)" }.joined(separator: " ")
    let affected = numbers.map { "\($0.0)" }.joined(separator: ", ")
    return
      "UPDATE \(table) SET \(column) = CASE \(column) \(cases) END WHERE \(column) IN (\(affected))"
  }
}
