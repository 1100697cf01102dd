import InstarSchema
import InstarStore

// Links to rows that the change deletes because their entity is removed and the entity above it stays. Core Data's
// migration ends them too. Links that these rows hold themselves are deleted with the rows.

extension CoreDataChangeSteps {
  /// Ends the links that other rows and join tables have to rows of removed entities. Links to rows that were missing
  /// before stay as they are.
  ///
  /// Runs before anything else changes: the rows must still exist, with their old numbers.
  mutating func endLinksToRemovedRows(_ tables: [TablePair], _ joins: [JoinPair]) {
    let kept = Set(tables.map(\.before.name))
    let removed = difference.removedEntities.filter { !$0.isAbstract }
      .compactMap { old.entity(named: $0.name) }.filter { kept.contains($0.table) }
    for (table, entities) in Dictionary(grouping: removed, by: \.table)
      .sorted(by: { $0.key < $1.key })
    {
      let numbers = entities.map { "\($0.number)" }.joined(separator: ", ")
      let rows = "(SELECT Z_PK FROM \(table) WHERE Z_ENT IN (\(numbers)))"
      let entity = entities.count == 1 ? entities[0].name : nil
      for holder in old.tables where kept.contains(holder.name) {
        endLinks(in: holder, to: rows, of: table, entity)
      }
      for join in joins { endLinks(in: join.before, to: rows, of: table, entity) }
    }
  }

  private mutating func endLinks(
    in holder: CoreDataLayout.Table, to rows: String, of table: String, _ entity: String?
  ) {
    for column in holder.columns where destinationTable(of: column.role) == table {
      guard isContinued(column.role) else { continue }
      let parts = holder.columns.filter { $0.role.isPart(of: column.role) }
      let values = ([column] + parts).map { "\($0.name) = NULL" }
      add(
        "UPDATE \(holder.name) SET \(values.joined(separator: ", ")) "
          + "WHERE \(column.name) IN \(rows)", Self.endOfLinks, .destructive, rowChange: .writes,
        table: holder.name,
        column: column.name, entity: entity)
    }
  }

  private mutating func endLinks(
    in join: CoreDataLayout.JoinTable, to rows: String, of table: String, _ entity: String?
  ) {
    let ends = [join, join.turned].filter { old.entity(named: $0.entity)?.table == table }
    guard !ends.isEmpty else { return }
    add(
      "DELETE FROM \(join.name) WHERE "
        + ends.map { "\($0.column) IN \(rows)" }.joined(separator: " OR "), Self.endOfLinks,
      .destructive, rowChange: .writes, table: join.name, entity: entity)
  }

  private static let endOfLinks = "ends links to rows of removed entities"

  /// The table of the rows whose keys a column holds; `nil` for a column without such keys.
  private func destinationTable(of role: CoreDataLayout.Column.Role) -> String? {
    switch role {
    case .toOne(let entity, let name):
      old.entity(named: entity)?.relationships.first { $0.relationship.name == name }?
        .destinationTable
    case .ownerKey(let entity, _):
      old.entity(named: entity)?.table
    case .primaryKey, .entityNumber, .optimisticLock, .attribute, .toOneEntityNumber, .toOneOrder:
      nil
    }
  }

  /// Whether the new version keeps the links in a column, there or elsewhere.
  private func isContinued(_ role: CoreDataLayout.Column.Role) -> Bool {
    sourceRoles.values.contains(role)
      || difference.entities.contains { mapping in
        mapping.relationships.contains { relationship in
          relationship.old?.name == role.property?.name
            && difference.takesLinksAlong(relationship, of: mapping.new.name)
        }
      }
  }
}
