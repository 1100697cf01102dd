import InstarSchema

extension CoreDataLayout {
  /// The tables as models use them.
  public var entityLayouts: [EntityLayout] {
    entities.map(entityWithInheritedProperties).map { entity in
      EntityLayout(
        name: entity.name, root: entity.root, table: entity.table, number: entity.number,
        superNumber: entity.superNumber, numbers: entity.numbers, key: Self.key,
        entityColumn: "Z_ENT", lockColumn: "Z_OPT",
        attributes: entity.attributes.map {
          EntityLayout.AttributeColumn(attribute: $0.attribute, column: Self.column($0))
        },
        relationships: entity.relationships.map {
          EntityLayout.RelationshipStorage(
            relationship: $0.relationship, destinationTable: $0.destinationTable,
            location: Self.location($0.location), entityColumn: $0.entityNumberColumn,
            orderColumn: $0.orderColumn, inverseOrderColumn: $0.inverseOrderColumn,
            keepsBothDirections: Self.isReflexive($0.location))
        },
        highestKeyStatement: highestKeyStatement(of: entity),
        recordKeyStatement:
          "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = \(rootNumber(of: entity))")
    }
  }

  /// A new position follows all others, as Core Data counts (section 4.4), in the order of the rows.
  package var linkOrderStatements: [String] {
    func statement(_ column: String, among owner: String, in table: String) -> String {
      "UPDATE \(table) SET \(column) = 2048 + ifnull((SELECT max(o.\(column)) FROM \(table) AS o "
        + "WHERE o.\(owner) = \(table).\(owner)), 0) "
        + "WHERE \(owner) IS NOT NULL AND \(column) IS NULL"
    }
    let keys = tables.flatMap { table in
      table.columns.compactMap { column -> String? in
        guard case .toOneOrder(let entity, let name) = column.role,
          let key = table.columns.first(where: { $0.role == .toOne(entity: entity, name: name) })
        else { return nil }
        return statement(column.name, among: key.name, in: table.name)
      }
    }
    let links = joinTables.flatMap { join in
      [
        join.orderColumn.map { statement($0, among: join.otherColumn, in: join.name) },
        join.otherOrderColumn.map { statement($0, among: join.column, in: join.name) },
      ].compactMap(\.self)
    }
    return keys + links
  }

  private static let key = RowKey(rowID: "Z_PK")

  private static func isReflexive(_ location: RelationshipStorage.Location) -> Bool {
    guard case .joinTable(_, _, let other) = location else { return false }
    return other == CoreDataConventions.reflexiveColumn
  }

  private static func column(_ attribute: AttributeColumn) -> StoredColumn {
    var column = StoredColumn(name: attribute.column)
    if attribute.attribute.mayBeExternal {
      column.mayBeExternal = true
      column.reading = column.reading.passed(to: ExternalValues.readFunction)
      column.parameter = "\(ExternalValues.writeFunction)(?)"
    }
    return column
  }

  private static func location(
    _ location: RelationshipStorage.Location
  ) -> EntityLayout.RelationshipStorage.Location {
    func reference(_ column: String) -> ForeignKey { ForeignKey(columns: [column], key: key) }
    return switch location {
    case .column(let column): .column(reference(column))
    case .foreignKey(let column): .foreignKey(reference(column))
    case .joinTable(let name, let own, let other):
      .joinTable(name: name, own: reference(own), other: reference(other))
    }
  }

  /// New keys follow the highest one that was ever used, which is in the root entity's row of Z_PRIMARYKEY. Some stores
  /// record less than their highest key, so that one counts too (section 2.1).
  private func highestKeyStatement(of entity: Entity) -> String {
    "SELECT max(ifnull((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(rootNumber(of: entity))), 0), "
      + "ifnull((SELECT max(Z_PK) FROM \(entity.table)), 0))"
  }

  private func rootNumber(of entity: Entity) -> Int {
    self.entity(named: entity.root)?.number ?? entity.number
  }
}
