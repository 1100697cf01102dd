import InstarSchema

extension CoreDataLayout {
  /// The tables as models use them.
  public var entityLayouts: [EntityLayout] { entities.map(entityWithInheritedProperties) }

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
}
