import InstarSchema
import InstarStore

// Links of to-one relationships that became to-many, and of to-many ones without inverse that got a to-many one. Their
// old column is dropped before the new column or table exists, so they are copied first.

extension CoreDataChangeSteps {
  /// The links of a relationship, copied to a temporary table with the columns `owner` and `member`.
  struct CopiedLinks {
    var table: String
    var entity: String
    var owner: String
    var relationship: EntityLayout.RelationshipStorage
    /// Whether the rows of members had the links, which are gone with rows that the change deletes.
    var areOfMembers: Bool
  }

  /// Runs before anything else changes.
  mutating func copyLinks() -> [CopiedLinks] {
    var all: [CopiedLinks] = []
    for mapping in difference.entities {
      guard let entity = new.entity(named: mapping.new.name) else { continue }
      for relationship in mapping.relationships
      where difference.takesLinksAlong(relationship, of: mapping.new.name) {
        guard
          let moved = entity.relationships.first(where: {
            $0.relationship.name == relationship.new.name
          }), !isKeptByInverse(moved),
          let before = difference.storedLinks(of: relationship, mapping, in: old)
        else { continue }
        let name = temporaryName()
        let areOfMembers = !difference.becomesToMany(relationship)
        let (owner, member) =
          areOfMembers ? (before.column, "Z_PK") : ("Z_PK", before.column)
        add(
          "CREATE TABLE \(name) AS SELECT \(owner) AS owner, \(member) AS member "
            + "FROM \(before.table) WHERE \(before.column) IS NOT NULL",
          "copies the links", .conversion, rowChange: .writes, table: before.table,
          column: before.column,
          entity: entity.name, property: relationship.new.name)
        all.append(
          CopiedLinks(
            table: name, entity: entity.name, owner: entity.table, relationship: moved,
            areOfMembers: areOfMembers))
      }
    }
    return all
  }

  /// Whether the inverse relationship stored the links in the old version and still does.
  private func isKeptByInverse(_ moved: EntityLayout.RelationshipStorage) -> Bool {
    guard case .foreignKey(let key) = moved.location else { return false }
    return new.tables.first { $0.name == moved.destinationTable }?.columns
      .first { $0.name == key.list }.map { sourceRoles[$0.role] != nil } ?? false
  }

  /// Runs when all rows have their final keys and numbers.
  mutating func storeLinks(_ links: [CopiedLinks]) {
    for copy in links {
      switch copy.relationship.location {
      case .column: break
      case .foreignKey(let key): fillKeys(key.list, copy)
      case .joinTable(let name, let own, _): fillJoinTable(name, own.list, copy)
      }
      add("DROP TABLE \(copy.table)", "drops the copied links", of: copy, table: copy.owner)
    }
  }

  private mutating func add(
    _ sql: String, _ comment: String, of copy: CopiedLinks, table: String, column: String? = nil
  ) {
    add(
      sql, comment, .conversion, rowChange: .writes, table: table, column: column,
      entity: copy.entity,
      property: copy.relationship.relationship.name)
  }

  private mutating func fillJoinTable(_ name: String, _ own: String, _ copy: CopiedLinks) {
    let sides = new.joinTables.filter { $0.name == name }.flatMap { [$0, $0.turned] }
    guard let join = sides.first(where: { $0.column == own }) else { return }
    var columns = [join.column, join.otherColumn]
    var values = ["owner", "member"]
    if let column = join.orderColumn {
      columns.append(column)
      values.append(Self.position(among: "member", orderedBy: "owner"))
    }
    if let column = join.otherOrderColumn {
      columns.append(column)
      values.append(Self.position(among: "owner", orderedBy: "member"))
    }
    let members =
      copy.areOfMembers
      ? " AND member IN (SELECT Z_PK FROM \(copy.relationship.destinationTable))" : ""
    // One that is its own inverse has a row for each direction.
    let isOwnInverse =
      join.entity == join.otherEntity && join.relationship == join.otherRelationship
    for values in isOwnInverse ? [values, values.reversed()] : [values] {
      // Both sides may have had the same links.
      add(
        "INSERT OR IGNORE INTO \(name) (\(columns.joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM \(copy.table) "
          + "WHERE owner IN (SELECT Z_PK FROM \(copy.owner))\(members)",
        "stores the links", of: copy, table: name)
    }
  }

  /// No row has two owners: `CoreDataRowCheck` refuses such stores.
  private mutating func fillKeys(_ column: String, _ copy: CopiedLinks) {
    let table = copy.relationship.destinationTable
    add(
      "UPDATE \(table) SET \(column) = (SELECT owner FROM \(copy.table) "
        + "WHERE member = \(table).Z_PK AND owner IN (SELECT Z_PK FROM \(copy.owner))) "
        + "WHERE Z_PK IN (SELECT member FROM \(copy.table))",
      "stores the links", of: copy, table: table, column: column)
    guard let columns = new.tables.first(where: { $0.name == table })?.columns,
      case .toOne(let entity, let name) = columns.first(where: { $0.name == column })?.role
    else { return }
    for other in columns {
      switch other.role {
      case .toOneEntityNumber(entity: entity, name: name):
        add(
          "UPDATE \(table) SET \(other.name) = (SELECT d.Z_ENT FROM \(copy.owner) AS d "
            + "WHERE d.Z_PK = \(table).\(column)) WHERE \(column) IS NOT NULL",
          "writes the entity numbers of the owners", of: copy, table: table, column: other.name)
      case .toOneOrder(entity: entity, name: name):
        // Each owner has one member.
        add(
          "UPDATE \(table) SET \(other.name) = 2048 WHERE \(column) IS NOT NULL",
          "writes the order of the links", of: copy, table: table, column: other.name)
      default: break
      }
    }
  }
}

extension SchemaDifference {
  /// The table and column with the links of a relationship of the old version: a to-one, or a to-many without inverse.
  func storedLinks(
    of relationship: PropertyMapping<Schema.Relationship>, _ mapping: EntityMapping,
    in layout: CoreDataLayout
  ) -> (table: String, column: String)? {
    guard let before = relationship.old, let source = mapping.old,
      let role = CoreDataChangeSteps.role(
        in: layout, at: [source.name],
        {
          before.isToOneRelationship
            ? .toOne(entity: $0, name: before.name) : .ownerKey(entity: $0, name: before.name)
        })
    else { return nil }
    for table in layout.tables {
      if let column = table.columns.first(where: { $0.role == role }) {
        return (table.name, column.name)
      }
    }
    return nil
  }
}
