import InstarSchema
import InstarStore

/// Links of a relationship that end because their row no longer has the relationship: the relationship moved to an
/// entity below, or the row's entity no longer inherits from the one that has it. Core Data's own migration ends them
/// too. Else they would be links of the entity that has the relationship now.
struct MovedLinks {
  /// The entity that had the relationship, by its new name, and the relationship's old name: as in the difference.
  let entity: String
  let property: String
  /// The table whose rows hold the links, and the column with the keys of the rows that had the relationship.
  let table: String
  let column: String
  /// Ends the links. Runs when all rows have their final keys and numbers. Links of and to rows that do not exist stay
  /// as they are.
  let statement: String

  /// Returns the lost links of all relationships that both versions have.
  ///
  /// - Parameters:
  ///   - isContinued: Whether a column of the new layout has the values of one of the old layout.
  ///   - joins: The tables of the new layout that have the rows of one of the old layout.
  static func all(
    from old: CoreDataLayout, to new: CoreDataLayout, _ difference: SchemaDifference,
    isContinued: (CoreDataLayout.Column) -> Bool = { _ in true }, joins: Set<String>? = nil
  ) -> [MovedLinks] {
    difference.entities.flatMap { mapping -> [MovedLinks] in
      guard let heir = new.entity(named: mapping.new.name) else { return [] }
      return mapping.relationships.flatMap { relationship -> [MovedLinks] in
        guard let before = relationship.old,
          let owner = owner(of: before, difference.originNames(of: mapping.new), in: old),
          let storage = heir.storage(of: relationship.new.name)
        else { return [] }
        let losing = new.entities.filter { other in
          !heir.numbers.contains(other.number)
            && difference.sourceName(of: other.name).flatMap { old.entity(named: $0) }
              .map { owner.numbers.contains($0.number) } == true
        }
        func ended(_ table: String, _ column: String, _ statement: String) -> MovedLinks {
          MovedLinks(
            entity: difference.newName(of: owner.name), property: before.name, table: table,
            column: column, statement: statement)
        }
        func ended(_ key: ForeignKey, in table: String, where rows: String) -> MovedLinks? {
          let columns = new.linkColumns(key.list, in: table)
          guard let first = columns.first, isContinued(first) else { return nil }
          let values = columns.map { "\($0.name) = NULL" }.joined(separator: ", ")
          return ended(table, key.list, "UPDATE \(table) SET \(values) WHERE \(rows)")
        }
        // Rows of an entity that left have the keys that they had in the common table.
        return Dictionary(grouping: losing, by: \.table).sorted { $0.key < $1.key }.compactMap {
          table, losing in
          let isLosing = "Z_ENT IN (\(losing.map { "\($0.number)" }.joined(separator: ", ")))"
          let keys = "(SELECT Z_PK FROM \(table) WHERE \(isLosing))"
          switch storage.location {
          case .column(let key):
            guard table == heir.table else { return nil }
            return ended(key, in: table, where: "\(key.list) IS NOT NULL AND \(isLosing)")
          case .foreignKey(let key):
            return ended(key, in: storage.destinationTable, where: "\(key.list) IN \(keys)")
          case .joinTable(let name, let own, _):
            guard joins?.contains(name) != false else { return nil }
            return ended(name, own.list, "DELETE FROM \(name) WHERE \(own.list) IN \(keys)")
          }
        }
      }
    }
  }

  /// The entity that declares a relationship: one of these, or the nearest above.
  private static func owner(
    of relationship: Schema.Relationship, _ entities: [String], in layout: CoreDataLayout
  ) -> EntityLayout? {
    entities.lazy.compactMap { layout.entity(named: $0) }.compactMap { entity in
      layout.entities.last { above in
        above.numbers.contains(entity.number)
          && above.relationships.contains { $0.relationship.name == relationship.name }
      }
    }.first
  }
}

extension CoreDataChangeSteps {
  /// Ends the links of rows that no longer have their relationship.
  mutating func endMovedLinks(_ joins: [JoinPair]) {
    let moved = MovedLinks.all(
      from: old, to: new, difference, isContinued: { [sourceRoles] in sourceRoles[$0.role] != nil },
      joins: Set(joins.map(\.after.name)))
    for links in moved {
      add(
        links.statement, "ends links of rows that no longer have the relationship", .destructive,
        rowChange: .writes, table: links.table, column: links.column, entity: links.entity,
        property: links.property)
    }
  }
}

extension CoreDataLayout {
  /// The column with the key of a link, and those with its other parts: the number of the entity at the other end, and
  /// its place in an order.
  fileprivate func linkColumns(_ name: String, in table: String) -> [Column] {
    let columns = tables.first { $0.name == table }?.columns ?? []
    guard let key = columns.first(where: { $0.name == name }) else { return [] }
    return [key] + columns.filter { $0.role.isPart(of: key.role) }
  }
}
