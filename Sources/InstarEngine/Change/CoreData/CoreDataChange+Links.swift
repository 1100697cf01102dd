import InstarSchema
import InstarStore

// Links of a to-one relationship that leads to many now. Their column goes before the place that they get exists, so they
// are set aside first.

extension CoreDataChangePlanner {
  /// The links of a relationship, in a table of our own with the columns `owner` and `member`.
  struct LinksAside {
    var table: String
    var owner: String
    var relationship: CoreDataLayout.RelationshipStorage
  }

  /// Before anything is changed.
  mutating func setLinksAside() -> [LinksAside] {
    var all: [LinksAside] = []
    for mapping in difference.entities {
      guard let entity = new.entity(named: mapping.new.name) else { continue }
      for relationship in mapping.relationships where difference.leadsToManyNow(relationship) {
        guard
          let moved = entity.relationships.first(where: {
            $0.relationship.name == relationship.new.name
          }), !isKeptByInverse(moved),
          let before = difference.storedLinks(of: relationship, mapping, in: old)
        else { continue }
        let name = temporaryName()
        statements.append(
          "CREATE TABLE \(name) AS SELECT Z_PK AS owner, \(before.column) AS member "
            + "FROM \(before.table) WHERE \(before.column) IS NOT NULL")
        all.append(LinksAside(table: name, owner: entity.table, relationship: moved))
      }
    }
    return all
  }

  /// Whether the other side has had the links before, and has them still.
  private func isKeptByInverse(_ moved: CoreDataLayout.RelationshipStorage) -> Bool {
    guard case .foreignKey(let column) = moved.place else { return false }
    return new.tables.first { $0.name == moved.destinationTable }?.columns
      .first { $0.name == column }.map { sourceRoles[$0.role] != nil } ?? false
  }

  /// Once all rows have their final keys and numbers.
  mutating func putBack(_ links: [LinksAside]) {
    for aside in links {
      switch aside.relationship.place {
      case .column: break
      case .foreignKey(let column): fillKeys(column, aside)
      case .joinTable(let name, let own, _): fillJoinTable(name, own, aside)
      }
      statements.append("DROP TABLE \(aside.table)")
    }
  }

  private mutating func fillJoinTable(_ name: String, _ own: String, _ aside: LinksAside) {
    let sides = new.joinTables.filter { $0.name == name }.flatMap { [$0, $0.turned] }
    guard let join = sides.first(where: { $0.column == own }) else { return }
    var columns = [join.column, join.otherColumn]
    var values = ["owner", "member"]
    if let column = join.orderColumn {
      columns.append(column)
      values.append(Self.place(among: "member", orderedBy: "owner"))
    }
    if let column = join.otherOrderColumn {
      columns.append(column)
      values.append(Self.place(among: "owner", orderedBy: "member"))
    }
    // One that is its own inverse has a row for each direction.
    let isOwnInverse =
      join.entity == join.otherEntity && join.relationship == join.otherRelationship
    for values in isOwnInverse ? [values, values.reversed()] : [values] {
      // Both sides of a relationship between two rows may lead to many now: they have the same links.
      statements.append(
        "INSERT OR IGNORE INTO \(name) (\(columns.joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM \(aside.table) "
          + "WHERE owner IN (SELECT Z_PK FROM \(aside.owner))")
    }
  }

  /// No row is a member twice: `StageCheck` has looked.
  private mutating func fillKeys(_ column: String, _ aside: LinksAside) {
    let table = aside.relationship.destinationTable
    statements.append(
      "UPDATE \(table) SET \(column) = (SELECT owner FROM \(aside.table) "
        + "WHERE member = \(table).Z_PK AND owner IN (SELECT Z_PK FROM \(aside.owner))) "
        + "WHERE Z_PK IN (SELECT member FROM \(aside.table))")
    guard let columns = new.tables.first(where: { $0.name == table })?.columns,
      case .toOne(let entity, let name) = columns.first(where: { $0.name == column })?.role
    else { return }
    for other in columns {
      switch other.role {
      case .toOneEntityNumber(entity: entity, name: name):
        statements.append(
          "UPDATE \(table) SET \(other.name) = (SELECT d.Z_ENT FROM \(aside.owner) AS d "
            + "WHERE d.Z_PK = \(table).\(column)) WHERE \(column) IS NOT NULL")
      case .toOneOrder(entity: entity, name: name):
        // Each owner has one member.
        statements.append(
          "UPDATE \(table) SET \(other.name) = 2048 WHERE \(column) IS NOT NULL")
      default: break
      }
    }
  }
}

extension SchemaDifference {
  /// Where the links of a to-one relationship of the old version are.
  func storedLinks(
    of relationship: PropertyMapping<Schema.Relationship>, _ mapping: EntityMapping,
    in layout: CoreDataLayout
  ) -> (table: String, column: String)? {
    guard let name = relationship.old?.name, let source = mapping.old,
      let role = CoreDataChangePlanner.role(
        in: layout, at: [source.name], { .toOne(entity: $0, name: name) })
    else { return nil }
    for table in layout.tables {
      if let column = table.columns.first(where: { $0.role == role }) {
        return (table.name, column.name)
      }
    }
    return nil
  }
}
