import InstarSchema
import InstarStore

// Everything that carries the number of an entity (Core Data layout, section 5) but the names of columns and tables.

extension CoreDataChangePlanner {
  /// The numbers of entities that get another one: what they were, what they become.
  var movedNumbers: [(before: Int, after: Int)] {
    mappedNumbers.filter { $0.before != $0.after }
  }

  private var mappedNumbers: [(before: Int, after: Int)] {
    new.entities.compactMap { entity in
      difference.sourceName(of: entity.name).flatMap { old.entity(named: $0) }
        .map { ($0.number, entity.number) }
    }
  }

  /// Rows of tables that were not made anew, then the list of entities.
  mutating func renumber(_ tables: [TablePair]) {
    let moved = movedNumbers
    for pair in tables where !moved.isEmpty && !pair.isRebuilt {
      for column in pair.after.columns {
        let relevant: [(before: Int, after: Int)]
        switch column.role {
        case .entityNumber: relevant = pair.numbers.filter { $0.before != $0.after }
        case .toOneEntityNumber: relevant = moved
        default: continue
        }
        guard !relevant.isEmpty else { continue }
        statements.append(
          CoreDataChange.renumberStatement(table: pair.after.name, column: column.name, relevant))
      }
    }
    renumberPrimaryKeys(tables)
  }

  /// A relationship whose destination got its first sub-entity has a new column, for the number of the row it refers to.
  mutating func fillEntityNumbers(_ pair: TablePair) {
    let (before, after) = (pair.before, pair.after)
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
  private mutating func renumberPrimaryKeys(_ tables: [TablePair]) {
    let numbers = mappedNumbers
    keepHighestKeys(tables)
    for entity in difference.removedEntities {
      guard let number = old.entity(named: entity.name)?.number else { continue }
      statements.append("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = \(number)")
    }
    let moved = movedNumbers
    for (before, after) in moved {
      statements.append("UPDATE Z_PRIMARYKEY SET Z_ENT = -\(after) WHERE Z_ENT = \(before)")
    }
    if !moved.isEmpty {
      statements.append("UPDATE Z_PRIMARYKEY SET Z_ENT = -Z_ENT WHERE Z_ENT < 0")
    }
    for entity in new.entities {
      if let source = numbers.first(where: { $0.after == entity.number }) {
        let before = old.entities.first { $0.number == source.before }
        if before?.superNumber != entity.superNumber {
          statements.append(
            "UPDATE Z_PRIMARYKEY SET Z_SUPER = \(entity.superNumber) WHERE Z_ENT = \(entity.number)"
          )
        }
        if before?.name != entity.name {
          statements.append(
            "UPDATE Z_PRIMARYKEY SET Z_NAME = '\(entity.name)' WHERE Z_ENT = \(entity.number)")
        }
      } else {
        // A new root above entities that have rows goes on with their keys.
        let key = entity.superNumber == 0 ? highestKeys[entity.name] ?? "0" : "0"
        statements.append(
          "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) "
            + "VALUES (\(entity.number), '\(entity.name)', \(entity.superNumber), \(key))")
      }
    }
  }

  /// A root entity that was none goes on with the keys of the root that it was below: a key is not handed out twice.
  private mutating func keepHighestKeys(_ tables: [TablePair]) {
    for pair in tables {
      guard let root = new.entity(named: pair.after.rootEntity),
        let source = pair.numbers.first(where: { $0.after == root.number }),
        let oldRoot = old.entity(named: pair.before.rootEntity), oldRoot.number != source.before
      else { continue }
      statements.append(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = max(ifnull(Z_MAX, 0), ifnull((SELECT Z_MAX FROM "
          + "Z_PRIMARYKEY WHERE Z_ENT = \(oldRoot.number)), 0)) WHERE Z_ENT = \(source.before)")
    }
  }

  /// For new root entities, an expression for the highest key of the tree that is below them now.
  private var highestKeys: [String: String] {
    var keys: [String: String] = [:]
    for table in new.tables {
      let below = new.entities.filter { $0.table == table.name && $0.name != table.rootEntity }
      if below.contains(where: { difference.sourceName(of: $0.name) != nil }) {
        keys[table.rootEntity] = "ifnull((SELECT max(Z_PK) FROM \(table.name)), 0)"
      }
    }
    return keys
  }

  /// A column with numbers, as an expression that gives the new ones.
  static func renumbered(_ column: String, _ numbers: [(before: Int, after: Int)]) -> String {
    guard !numbers.isEmpty else { return column }
    let cases = numbers.map { "WHEN \($0.before) THEN \($0.after)" }.joined(separator: " ")
    return "CASE \(column) \(cases) ELSE \(column) END"
  }
}

extension CoreDataChange {
  static func renumberStatement(
    table: String, column: String, _ numbers: [(before: Int, after: Int)]
  ) -> String {
    let cases = numbers.map { "WHEN \($0.before) THEN \($0.after)" }.joined(separator: " ")
    let affected = numbers.map { "\($0.before)" }.joined(separator: ", ")
    return
      "UPDATE \(table) SET \(column) = CASE \(column) \(cases) END WHERE \(column) IN (\(affected))"
  }
}
