import InstarSchema

// The foreign keys of tables, and tables of links, as relationships.

extension PlainIntrospection {
  /// A foreign key that becomes a relationship.
  struct Reference {
    var key: ForeignKey
    var destination: Table
  }

  /// Returns the foreign keys that become relationships: those to the whole primary key of a table with a model. A
  /// column can belong to one of them.
  func references(of table: Table) -> [Reference] {
    guard table.entity != nil else { return [] }
    var used: Set<String> = []
    return table.foreignKeys.compactMap { key in
      guard let destination = tables[key.table], destination.entity != nil,
        key.columns.count == destination.keyColumns.count
      else { return nil }
      var ordered: [(own: String, other: String)] = []
      // A model has the columns of a key in the order of its properties.
      for column in destination.columns where column.keyPosition > 0 {
        // Foreign keys without named columns refer to the primary key in its own order.
        let pair =
          key.columns.first { $0.other.lowercased() == column.name.lowercased() }
          ?? (key.columns[0].other.isEmpty ? key.columns[column.keyPosition - 1] : nil)
        guard let pair,
          let own = table.column(pair.own), !own.isGenerated,
          ColumnAffinity(own.type).isLike(ColumnAffinity(column.type))
        else { return nil }
        ordered.append((own.name, column.name))
      }
      let names = ordered.map { $0.own.lowercased() }
      // Such a column would be the row's own number and another's at once.
      let isWholeKey =
        !table.isWithoutRowID && names.count == 1 && table.keyColumns.count == 1
        && table.keyColumns[0].name.lowercased() == names[0]
      guard !isWholeKey, used.isDisjoint(with: names) else { return nil }
      // A key that contains references has another order of columns in a model.
      guard destination.keyColumns.count == 1 || destination.foreignKeys.isEmpty else { return nil }
      used.formUnion(names)
      return Reference(
        key: ForeignKey(
          table: destination.name, columns: ordered, onUpdate: key.onUpdate,
          onDelete: key.onDelete), destination: destination)
    }
  }

  mutating func addRelationships(of table: Table) {
    guard let entity = table.entity else {
      if isTableOfLinks(table) { addLinks(of: table) }
      return
    }
    for reference in references(of: table) { add(reference, of: table, entity) }
  }

  private mutating func add(_ reference: Reference, of table: Table, _ entity: String) {
    guard let destination = reference.destination.entity else { return }
    let columns = reference.key.columns
    let own = columns.compactMap { table.column($0.own) }
    let name = take(
      columns.count == 1
        ? Self.relationshipName(columns[0].own, referringTo: columns[0].other)
        : SQLIdentifier.lowercasedFirst(destination), of: entity)
    var mapping = Schema.Column()
    let usual = columns.map { "\(Schema.snakeCase(name))_\($0.other)" }
    if usual != columns.map(\.own) { mapping.names = columns.map(\.own) }
    mapping.isPrimaryKey = own.contains { $0.keyPosition > 0 }
    let action = Schema.Column.Action(rawValue: reference.key.onDelete) ?? .noAction
    let isOptional = !mapping.isPrimaryKey && own.contains { !$0.isRequired }
    let rule: Schema.Relationship.DeleteRule
    switch action {
    case .cascade: rule = .cascade
    case .restrict: rule = .deny
    case .setNull:
      rule = .nullify
      if !isOptional { mapping.onDelete = .setNull }
    case .setDefault:
      rule = .noAction
      mapping.onDelete = .setDefault
    case .noAction: rule = .noAction
    }
    let update = Schema.Column.Action(rawValue: reference.key.onUpdate) ?? .noAction
    if update != .noAction { mapping.onUpdate = update }
    // The to-many side is named after the class at the other end, and also after the relationship where there are
    // several.
    let plural = SQLIdentifier.plural(SQLIdentifier.lowercasedFirst(entity))
    let isTaken = names[destination]?.isTaken(plural) == true
    let inverse =
      take(
        isTaken ? "\(plural)By\(SQLIdentifier.uppercasedFirst(name))" : plural, of: destination)
    var toOne = Schema.Relationship(
      name: name, destination: destination, inverseName: inverse, maximumModelCount: 1,
      isOptional: isOptional, isToOneRelationship: true)
    if mapping != Schema.Column() { toOne.column = mapping }
    append(toOne, to: entity)
    append(
      Schema.Relationship(
        name: inverse, destination: entity, inverseName: name, deleteRule: rule,
        isOptional: false, isToOneRelationship: false),
      to: destination)
  }

  /// "folder_id" and "folderId" become "folder".
  private static func relationshipName(_ column: String, referringTo other: String) -> String {
    for suffix in ["_\(other)", "_id", SQLIdentifier.uppercasedFirst(other), "Id", "ID"]
    where column.hasSuffix(suffix) && column.count > suffix.count {
      return SQLIdentifier.propertyName(String(column.dropLast(suffix.count)))
    }
    return SQLIdentifier.propertyName(column)
  }

  private mutating func addLinks(of table: Table) {
    let keys = table.linkColumns.compactMap { column in
      table.foreignKeys.first { $0.columns[0].own.lowercased() == column.name.lowercased() }
    }
    guard keys.count == 2, let first = tables[keys[0].table]?.entity,
      let second = tables[keys[1].table]?.entity
    else {
      notes.append(
        "table \(table.name) has no model, because it links tables without one; a migration keeps it unchanged"
      )
      return
    }
    let name = take(SQLIdentifier.plural(SQLIdentifier.lowercasedFirst(second)), of: first)
    let back = SQLIdentifier.plural(SQLIdentifier.lowercasedFirst(first))
    let inverse = take(back, of: second)
    var relationship = Schema.Relationship(
      name: name, destination: second, inverseName: inverse, isOptional: false,
      isToOneRelationship: false)
    var mapping = Schema.Column()
    mapping.junction = Schema.Column.Junction(
      table: table.name, own: [keys[0].columns[0].own], other: [keys[1].columns[0].own])
    relationship.column = mapping
    append(relationship, to: first)
    append(
      Schema.Relationship(
        name: inverse, destination: first, inverseName: name, isOptional: false,
        isToOneRelationship: false),
      to: second)
  }

  /// Returns a name that no property of the entity has.
  private mutating func take(_ name: String, of entity: String) -> String {
    names[entity, default: FreeNames()].take(name)
  }

  private mutating func append(_ relationship: Schema.Relationship, to entity: String) {
    entities[entity]?.relationships.append(relationship)
  }
}
