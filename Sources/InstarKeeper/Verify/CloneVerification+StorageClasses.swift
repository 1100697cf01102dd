internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension CloneVerification {
  /// Refuses values whose storage class their attribute's type does not read: SQL of the plan can write such values,
  /// and no app could read them. The clone may have as many as the store had before.
  ///
  /// - Parameter layout: As the clone names its tables.
  func requireStorageClasses(
    _ db: Database, _ layout: any StoreLayout, of store: EarlierStore
  ) throws {
    guard path.stages.contains(where: \.mayRunSQL) else { return }
    for entity in layout.entityLayouts {
      let declared = path.last.entitiesByName[entity.name]
      // The inherited attributes are checked in the superentity.
      let columns = entity.attributes.filter { declared?.declares($0.attribute.name) == true }
      for (column, condition) in try wrongColumns(columns, of: entity, db) {
        try requireAsBefore(column, condition, of: entity, db, store)
      }
    }
  }

  /// Returns the columns with such values, each with the condition on their rows. If there are none, it reads the table
  /// only once.
  private func wrongColumns(
    _ columns: [EntityLayout.AttributeColumn], of entity: EntityLayout, _ db: Database
  ) throws -> [(column: EntityLayout.AttributeColumn, condition: String)] {
    let checked = columns.compactMap { column in
      column.wrongClassCondition.map { (column: column, condition: $0) }
    }
    if checked.isEmpty { return [] }
    guard try KeyedRows(of: entity).hasRows(db, whereAny: checked.map(\.condition)) else {
      return []
    }
    return try checked.filter { try KeyedRows(of: entity).hasRows(db, where: $0.condition) }
  }

  private func requireAsBefore(
    _ column: EntityLayout.AttributeColumn, _ condition: String, of entity: EntityLayout,
    _ db: Database, _ store: EarlierStore
  ) throws {
    guard let rows = try KeyedRows(of: entity).affected(db, where: [condition]) else { return }
    let name = column.attribute.name
    let earlier = try wrongBefore(name, of: entity.name, store)
    guard rows.count > earlier else { return }
    throw InstarError(
      .verificationFailed, Self.what,
      cause: rows.sentence(
        of: entity.name,
        have: "a value of '\(name)' that is not of its type, \(column.attribute.type.swiftName)")
        + (earlier > 0 ? "; before the run \(earlier) had" : ""),
      next:
        "let the statements and the code of the stages write values of that type, build the plugin, and "
        + CommandText.repetition, rows: rows)
  }

  /// Returns how many such values the attribute had in the store.
  private func wrongBefore(
    _ attribute: String, of entity: String, _ store: EarlierStore
  ) throws -> Int {
    guard let last = path.stages.indices.last,
      let origin = path.origin(of: entity, attribute, before: last),
      let layout = store.layout.entity(named: origin.entity),
      let condition = layout.attributes.first(where: { $0.attribute.name == origin.property })?
        .wrongClassCondition
    else { return 0 }
    var count = 0
    try store.read { db in
      count = try KeyedRows(of: layout).affected(db, where: [condition])?.count ?? 0
    }
    return count
  }
}

extension StageManifest {
  /// Whether the plan can run SQL in the stage, by statements or in a closure.
  fileprivate var mayRunSQL: Bool {
    switch kind {
    case .sql, .custom, .bridge: true
    case .lightweight, .transform: false
    }
  }
}
