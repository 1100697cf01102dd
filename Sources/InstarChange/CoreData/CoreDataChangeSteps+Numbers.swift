import InstarSchema
import InstarStore

// The numbers of entities in rows and in the list of entities (Core Data layout, section 5). Names of columns and
// tables, which contain them too, are renames.

extension CoreDataChangeSteps {
  /// The old and new numbers of entities whose number changes.
  var movedNumbers: [(before: Int, after: Int)] {
    mappedNumbers.filter { $0.before != $0.after }
  }

  private var mappedNumbers: [(before: Int, after: Int)] {
    new.entities.compactMap { entity in
      difference.sourceName(of: entity.name).flatMap { old.entity(named: $0) }
        .map { ($0.number, entity.number) }
    }
  }

  private static let reasonForNumbers = "renumbers the entities, which are numbered by name"

  private mutating func changeList(_ sql: String, _ comment: String) {
    add(
      sql, comment, .bookkeeping, rowChange: .none, table: "Z_PRIMARYKEY",
      reason: Self.reasonForNumbers)
  }

  /// Renumbers the rows of tables that were not rebuilt, then the list of entities.
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
        add(
          CoreDataSchemaChange.renumberStatement(
            table: pair.after.name, column: column.name, relevant),
          "renumbers rows of \(pair.after.name)", .bookkeeping, rowChange: .updatesBooks,
          table: pair.after.name, column: column.name, reason: Self.reasonForNumbers)
      }
    }
    renumberPrimaryKeys(tables)
  }

  /// Fills the new column of a relationship whose destination got its first sub-entity: the entity number of the row it
  /// references.
  mutating func fillEntityNumbers(_ pair: TablePair) {
    let (before, after) = (pair.before, pair.after)
    for column in after.columns where source(of: column, in: before) == nil {
      guard case .toOneEntityNumber(let entity, let name) = column.role,
        let key = after.columns.first(where: { $0.role == .toOne(entity: entity, name: name) }),
        source(of: key, in: before) != nil,
        let destination = new.entity(named: entity)?.relationships
          .first(where: { $0.relationship.name == name })?.destinationTable
      else { continue }
      add(
        "UPDATE \(after.name) SET \(column.name) = (SELECT d.Z_ENT FROM \(destination) AS d "
          + "WHERE d.Z_PK = \(after.name).\(key.name)) WHERE \(key.name) IS NOT NULL",
        "writes the entity numbers of \(entity).\(name)", .bookkeeping, rowChange: .updatesBooks,
        table: after.name,
        column: column.name)
    }
  }

  /// Z_ENT is the key of Z_PRIMARYKEY: a number that another entity still has is not free. So all numbers become
  /// negative first.
  private mutating func renumberPrimaryKeys(_ tables: [TablePair]) {
    let numbers = mappedNumbers
    keepHighestKeys(tables)
    for entity in difference.removedEntities {
      guard let number = old.entity(named: entity.name)?.number else { continue }
      add(
        "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = \(number)", "removes \(entity.name) from the list",
        .destructive, rowChange: .none, table: "Z_PRIMARYKEY", entity: entity.name)
    }
    let moved = movedNumbers
    for (before, after) in moved {
      changeList(
        "UPDATE Z_PRIMARYKEY SET Z_ENT = -\(after) WHERE Z_ENT = \(before)",
        "reserves number \(after)")
    }
    if !moved.isEmpty {
      changeList(
        "UPDATE Z_PRIMARYKEY SET Z_ENT = -Z_ENT WHERE Z_ENT < 0", "assigns the reserved numbers")
    }
    for entity in new.entities {
      if let source = numbers.first(where: { $0.after == entity.number }) {
        let before = old.entities.first { $0.number == source.before }
        if before?.superNumber != entity.superNumber {
          changeList(
            "UPDATE Z_PRIMARYKEY SET Z_SUPER = \(entity.superNumber) WHERE Z_ENT = \(entity.number)",
            "writes the superentity of \(entity.name)")
        }
        if before?.name != entity.name {
          add(
            "UPDATE Z_PRIMARYKEY SET Z_NAME = '\(entity.name)' WHERE Z_ENT = \(entity.number)",
            "renames the entity in the list", .rename, rowChange: .none, table: "Z_PRIMARYKEY",
            entity: entity.name)
        }
      } else {
        // A new root above entities with rows continues their keys.
        let key = entity.superNumber == 0 ? highestKeys[entity.name] ?? "0" : "0"
        add(
          "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) "
            + "VALUES (\(entity.number), '\(entity.name)', \(entity.superNumber), \(key))",
          "adds \(entity.name) to the list of entities", .additive, rowChange: .none,
          table: "Z_PRIMARYKEY",
          entity: entity.name)
      }
    }
  }

  /// An entity that becomes a root continues the keys of its old root, so that no key is used twice.
  private mutating func keepHighestKeys(_ tables: [TablePair]) {
    for pair in tables {
      guard let root = new.entity(named: pair.after.rootEntity),
        let source = pair.numbers.first(where: { $0.after == root.number }),
        let oldRoot = old.entity(named: pair.before.rootEntity), oldRoot.number != source.before
      else { continue }
      changeList(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = max(ifnull(Z_MAX, 0), ifnull((SELECT Z_MAX FROM "
          + "Z_PRIMARYKEY WHERE Z_ENT = \(oldRoot.number)), 0)) WHERE Z_ENT = \(source.before)",
        "keeps the highest key of \(pair.after.rootEntity)")
    }
  }

  /// For new root entities, an expression for the highest key of the entities below them.
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

  /// An expression for the new number where a column has an old one.
  static func renumbered(_ column: String, _ numbers: [(before: Int, after: Int)]) -> String {
    guard !numbers.isEmpty else { return column }
    let cases = numbers.map { "WHEN \($0.before) THEN \($0.after)" }.joined(separator: " ")
    return "CASE \(column) \(cases) ELSE \(column) END"
  }
}

extension CoreDataSchemaChange {
  static func renumberStatement(
    table: String, column: String, _ numbers: [(before: Int, after: Int)]
  ) -> String {
    let cases = numbers.map { "WHEN \($0.before) THEN \($0.after)" }.joined(separator: " ")
    let affected = numbers.map { "\($0.before)" }.joined(separator: ", ")
    return
      "UPDATE \(table) SET \(column) = CASE \(column) \(cases) END WHERE \(column) IN (\(affected))"
  }
}
