import InstarSchema

/// Computes a `CoreDataLayout` in steps: numbers, columns, relationships, join tables, indexes.
struct CoreDataLayoutBuilder {
  private let schema: Schema
  private let conventions: CoreDataConventions
  private let entitiesByName: [String: Schema.Entity]
  private let subentityNames: [String: [String]]

  private(set) var entities: [EntityLayout] = []
  private(set) var tables: [CoreDataLayout.Table] = []
  private(set) var joinTables: [CoreDataLayout.JoinTable] = []
  private(set) var indexes: [CoreDataLayout.Index] = []

  private var positions: [String: Int] = [:]
  private var columnNames: [CoreDataLayout.Column.Role: String] = [:]

  init(schema: Schema, conventions: CoreDataConventions) throws(InstarError) {
    self.schema = schema
    self.conventions = conventions
    var byName: [String: Schema.Entity] = [:]
    var tableNames: [String: String] = [:]
    for entity in schema.entities {
      guard byName.updateValue(entity, forKey: entity.name) == nil else {
        throw schema.invalid("two models are named \(entity.name)")
      }
      try Self.requireIdentifier(entity.name, in: schema, as: "the name of a model")
      if let other = tableNames.updateValue(entity.name, forKey: entity.name.uppercased()) {
        throw schema.invalid("the models \(other) and \(entity.name) would share one table")
      }
      for property in entity.attributes as [any SchemaProperty] + entity.relationships {
        for part in property.name.split(separator: ".", omittingEmptySubsequences: false) {
          try Self.requireIdentifier(String(part), in: schema, as: "a property of \(entity.name)")
        }
      }
    }
    for entity in schema.entities {
      for index in entity.fetchIndexes {
        try Self.requireIdentifier(index.name, in: schema, as: "an index of \(entity.name)")
      }
    }
    entitiesByName = byName
    var below: [String: [String]] = [:]
    for entity in schema.entities {
      guard let superentity = entity.superentityName else { continue }
      guard byName[superentity] != nil else {
        throw schema.missing(superentity, usedBy: entity.name)
      }
      below[superentity, default: []].append(entity.name)
    }
    subentityNames = below
  }

  mutating func build() throws(InstarError) {
    try numberEntities()
    try addTables()
    try addRelationships()
    addIndexes()
  }

  // MARK: Numbers (section 2.2)

  /// Numbers the roots 1, 2, 3… by name without regard to case, each followed by its subentities in the same way.
  private mutating func numberEntities() throws(InstarError) {
    func sorted(_ names: [String]) -> [String] {
      names.sorted { ($0.lowercased(), $0) < ($1.lowercased(), $1) }
    }
    // A schema may come from another process, so its depth is limited to what the stack can hold.
    let depthLimit = 100
    func visit(
      _ name: String, root: (name: String, number: Int), superNumber: Int, depth: Int
    ) {
      guard depth <= depthLimit else { return }
      let number = entities.count + 1
      let position = entities.count
      positions[name] = position
      entities.append(Self.entity(name, number: number, superNumber: superNumber, root: root))
      for subentity in sorted(subentityNames[name] ?? []) {
        visit(subentity, root: root, superNumber: number, depth: depth + 1)
      }
      entities[position].numbers = Array(number...entities.count)
    }
    for root in sorted(schema.entities.filter { $0.superentityName == nil }.map(\.name)) {
      visit(root, root: (root, entities.count + 1), superNumber: 0, depth: 1)
    }
    if let lost = schema.entities.first(where: { positions[$0.name] == nil }) {
      throw schema.invalid(
        "\(lost.name) inherits from itself, or from more than \(depthLimit) models")
    }
  }

  private static let key = RowKey(rowID: "Z_PK")

  /// New keys follow the highest one that was ever used, which is in the root entity's row of Z_PRIMARYKEY. Some stores
  /// record less than their highest key, so that one counts too (section 2.1).
  private static func entity(
    _ name: String, number: Int, superNumber: Int, root: (name: String, number: Int)
  ) -> EntityLayout {
    let table = "Z" + root.name.uppercased()
    return EntityLayout(
      name: name, root: root.name, table: table, number: number, superNumber: superNumber,
      numbers: [], key: key, entityColumn: "Z_ENT", lockColumn: "Z_OPT", attributes: [],
      relationships: [],
      highestKeyStatement:
        "SELECT max(ifnull((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(root.number)), 0), "
        + "ifnull((SELECT max(Z_PK) FROM \(table)), 0))",
      recordKeyStatement: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = \(root.number)")
  }

  // MARK: Tables and columns (sections 3.2, 3.3, 4)

  /// The columns of one table, in order.
  private struct TableColumns {
    private(set) var columns = [
      CoreDataLayout.Column(name: "Z_PK", type: "INTEGER", role: .primaryKey),
      CoreDataLayout.Column(name: "Z_ENT", type: "INTEGER", role: .entityNumber),
      CoreDataLayout.Column(name: "Z_OPT", type: "INTEGER", role: .optimisticLock),
    ]
    private var taken: Set<String> = ["Z_PK", "Z_ENT", "Z_OPT"]

    /// The first column of a name keeps it, later ones get 1, 2, 3… (section 3.3).
    mutating func add(
      _ bareName: String, _ role: CoreDataLayout.Column.Role, type: String = "INTEGER"
    ) {
      var name = bareName
      var suffix = 0
      while !taken.insert(name).inserted {
        suffix += 1
        name = "\(bareName)\(suffix)"
      }
      columns.append(CoreDataLayout.Column(name: name, type: type, role: role))
    }
  }

  /// One table for each family. Its columns come in seven groups, and in each group by entity.
  private mutating func addTables() throws(InstarError) {
    for root in entities where root.superNumber == 0 {
      let members = entities.filter { $0.root == root.name }
        .compactMap { entitiesByName[$0.name] }
      var columns = TableColumns()
      for group in 1...7 {
        for entity in members {
          addAttributes(of: entity, group: group, to: &columns)
          if group == 1 { try addReferences(of: entity, to: &columns) }
        }
      }
      for column in columns.columns { columnNames[column.role] = column.name }
      tables.append(
        CoreDataLayout.Table(name: root.table, rootEntity: root.name, columns: columns.columns))
    }
  }

  private func addAttributes(
    of entity: Schema.Entity, group: Int, to columns: inout TableColumns
  ) {
    for attribute in Self.inColumnOrder(entity.attributes)
    where attribute.columnGroup == group && !attribute.isEphemeral {
      columns.add(
        Self.column(attribute.name), .attribute(entity: entity.name, name: attribute.name),
        type: attribute.type.columnType)
    }
  }

  /// The foreign keys in an entity's table: of its relationships to one, each with what belongs to it, and of
  /// relationships to it that have no inverse.
  private func addReferences(
    of entity: Schema.Entity, to columns: inout TableColumns
  ) throws(InstarError) {
    for relationship in entity.relationships.sorted(by: Self.bytewise)
    where relationship.isToOneRelationship {
      let destination = try position(of: relationship.destination, usedBy: entity, relationship)
      let name = relationship.name.uppercased()
      columns.add(
        Self.column(relationship.name), .toOne(entity: entity.name, name: relationship.name))
      if entities[destination].numbers.count > 1 {
        columns.add(
          "Z\(entities[destination].number)_\(name)",
          .toOneEntityNumber(entity: entity.name, name: relationship.name))
      }
      if let inverseName = relationship.inverseName,
        inverse(named: inverseName, in: relationship.destination)?.relationship.isOrdered == true
      {
        columns.add(
          "Z_FOK_\(name)", .toOneOrder(entity: entity.name, name: relationship.name))
      }
    }
    for (owner, relationship) in ownersWithoutInverse(of: entity.name) {
      columns.add(
        "Z\(owner.number)\(relationship.name.uppercased())",
        .ownerKey(entity: owner.name, name: relationship.name))
    }
  }

  /// The to-many relationships without inverse to an entity: their foreign key is in its table (section 4.3).
  private func ownersWithoutInverse(
    of destination: String
  ) -> [(EntityLayout, Schema.Relationship)] {
    entities.flatMap { owner in
      (entitiesByName[owner.name]?.relationships ?? []).sorted(by: Self.bytewise)
        .filter {
          !$0.isToOneRelationship && $0.inverseName == nil && $0.destination == destination
        }
        .map { (owner, $0) }
    }
  }

  // MARK: Relationships (section 4)

  private mutating func addRelationships() throws(InstarError) {
    for position in entities.indices {
      guard let entity = entitiesByName[entities[position].name] else { continue }
      entities[position].attributes = entity.attributes.compactMap { attribute in
        columnNames[.attribute(entity: entity.name, name: attribute.name)]
          .map { Self.column($0, of: attribute) }
      }
      for relationship in entity.relationships {
        let destination = try self.position(
          of: relationship.destination, usedBy: entity, relationship)
        let location = try location(of: relationship, in: entity, at: position, to: destination)
        entities[position].relationships.append(
          EntityLayout.RelationshipStorage(
            relationship: relationship, destinationTable: entities[destination].table,
            location: location,
            entityColumn: columnNames[
              .toOneEntityNumber(entity: entity.name, name: relationship.name)],
            orderColumn: orderColumn(of: relationship, in: entity.name, location),
            inverseOrderColumn: inverseOrderColumn(location),
            keepsBothDirections: Self.isReflexive(location)))
      }
    }
  }

  private static func column(
    _ name: String, of attribute: Schema.Attribute
  ) -> EntityLayout.AttributeColumn {
    var column = StoredColumn(name: name)
    if attribute.mayBeExternal {
      column.mayBeExternal = true
      column.reading = column.reading.passed(to: ExternalValues.readFunction)
      column.parameter = "\(ExternalValues.writeFunction)(?)"
    }
    return EntityLayout.AttributeColumn(attribute: attribute, column: column)
  }

  private static func isReflexive(_ location: EntityLayout.RelationshipStorage.Location) -> Bool {
    guard case .joinTable(_, _, let other) = location else { return false }
    return other == reference(CoreDataConventions.reflexiveColumn)
  }

  private static func reference(_ column: String) -> ForeignKey {
    ForeignKey(columns: [column], key: key)
  }

  private func reference(
    _ role: CoreDataLayout.Column.Role, of relationship: String
  ) throws(InstarError) -> ForeignKey {
    guard let column = columnNames[role] else {
      throw schema.invalid("\(relationship) has no column")
    }
    return Self.reference(column)
  }

  private func inverseOrderColumn(
    _ location: EntityLayout.RelationshipStorage.Location
  ) -> String? {
    guard case .joinTable(let name, let own, _) = location,
      let join = joinTables.first(where: { $0.name == name })
    else { return nil }
    return Self.reference(join.column) == own ? join.orderColumn : join.otherOrderColumn
  }

  private func orderColumn(
    of relationship: Schema.Relationship, in entity: String,
    _ location: EntityLayout.RelationshipStorage.Location
  ) -> String? {
    switch location {
    case .column:
      return columnNames[.toOneOrder(entity: entity, name: relationship.name)]
    case .foreignKey:
      return relationship.inverseName
        .flatMap { inverse(named: $0, in: relationship.destination) }
        .flatMap { columnNames[.toOneOrder(entity: $0.entity, name: $0.relationship.name)] }
    case .joinTable(let name, let own, _):
      guard let join = joinTables.first(where: { $0.name == name }) else { return nil }
      return Self.reference(join.column) == own ? join.otherOrderColumn : join.orderColumn
    }
  }

  private mutating func location(
    of relationship: Schema.Relationship, in entity: Schema.Entity, at position: Int,
    to destination: Int
  ) throws(InstarError) -> EntityLayout.RelationshipStorage.Location {
    let path = "\(entity.name).\(relationship.name)"
    if relationship.isToOneRelationship {
      return .column(try reference(.toOne(entity: entity.name, name: relationship.name), of: path))
    }
    guard let inverseName = relationship.inverseName else {
      return .foreignKey(
        try reference(.ownerKey(entity: entity.name, name: relationship.name), of: path))
    }
    guard let inverse = inverse(named: inverseName, in: relationship.destination) else {
      throw schema.invalid(
        "\(path) names the inverse \(relationship.destination).\(inverseName), which does not exist"
      )
    }
    if inverse.relationship.isToOneRelationship {
      return .foreignKey(
        try reference(.toOne(entity: inverse.entity, name: inverseName), of: path))
    }
    let isOwnInverse = position == destination && relationship.name == inverseName
    guard !isOwnInverse || !relationship.isOrdered else {
      throw schema.invalid(
        "\(path) is ordered and its own inverse",
        next: "remove .ordered or .ownInverse: both ends would order the same links")
    }
    // An inherited relationship is the one of the entity that declares it.
    let declaring = entities.firstIndex { $0.name == inverse.entity } ?? destination
    let join =
      isOwnInverse
      ? reflexiveTable(entities[position], relationship.name)
      : joinTable(position, relationship.name, declaring, inverseName)
    if !joinTables.contains(join) { joinTables.append(join) }
    let isFirst = join.entity == entity.name && join.relationship == relationship.name
    return .joinTable(
      name: join.name, own: Self.reference(isFirst ? join.column : join.otherColumn),
      other: Self.reference(isFirst ? join.otherColumn : join.column))
  }

  /// The table is named after the entity with the lower number and its relationship; each column after the entity that
  /// it refers to and the relationship to it (section 4.5).
  private func joinTable(
    _ position: Int, _ name: String, _ otherPosition: Int, _ otherName: String
  ) -> CoreDataLayout.JoinTable {
    let (one, two) = (entities[position], entities[otherPosition])
    if two.number < one.number || (two.number == one.number && otherName < name) {
      return joinTable(otherPosition, otherName, position, name)
    }
    let bare = "Z_\(one.number)\(name.uppercased())"
    let turned = "Z_\(two.number)\(otherName.uppercased())"
    // Some stores break the rule, and nothing but the store shows it.
    let isTurned =
      conventions.namingRelationships.contains(.init(entity: two.name, name: otherName))
      || (conventions.joinTables.contains(turned) && !conventions.joinTables.contains(bare))
    if isTurned { return joinTable(two, otherName, one, name) }
    return joinTable(one, name, two, otherName)
  }

  /// The table of a relationship that is its own inverse has a row for each direction of a link.
  ///
  /// The name of its second column is known from memory only ("Core Data layout", section 4.5); no public store or text
  /// shows one. Where a store has other names, they are kept (`reflexiveColumns`).
  private func reflexiveTable(
    _ entity: EntityLayout, _ name: String
  ) -> CoreDataLayout.JoinTable {
    let table = "Z_\(entity.number)\(name.uppercased())"
    return CoreDataLayout.JoinTable(
      name: table, entity: entity.name, relationship: name, otherEntity: entity.name,
      otherRelationship: name, column: conventions.reflexiveColumns[table] ?? table,
      otherColumn: CoreDataConventions.reflexiveColumn)
  }

  private func joinTable(
    _ one: EntityLayout, _ name: String, _ two: EntityLayout, _ otherName: String
  ) -> CoreDataLayout.JoinTable {
    func isOrdered(_ entity: EntityLayout, _ relationship: String) -> Bool {
      inverse(named: relationship, in: entity.name)?.relationship.isOrdered ?? false
    }
    return CoreDataLayout.JoinTable(
      name: "Z_\(one.number)\(name.uppercased())",
      entity: one.name, relationship: name, otherEntity: two.name, otherRelationship: otherName,
      column: "Z_\(one.number)\(otherName.uppercased())",
      otherColumn: "Z_\(two.number)\(name.uppercased())",
      orderColumn: isOrdered(two, otherName)
        ? "Z_FOK_\(one.number)\(otherName.uppercased())" : nil,
      otherOrderColumn: isOrdered(one, name)
        ? "Z_FOK_\(two.number)\(name.uppercased())" : nil)
  }

  private func inverse(
    named name: String, in entity: String
  ) -> (entity: String, relationship: Schema.Relationship)? {
    var next: String? = entity
    while let current = next, let described = entitiesByName[current] {
      if let found = described.relationships.first(where: { $0.name == name }) {
        return (current, found)
      }
      next = described.superentityName
    }
    return nil
  }

  // MARK: Indexes (section 6.1)

  private mutating func addIndexes() {
    for position in tables.indices {
      let table = tables[position]
      let members = entities.filter { $0.root == table.rootEntity }
      if conventions.generation != .current {
        for member in members { addIndexedAttributes(of: member, in: table.name) }
      }
      for column in table.columns {
        switch column.role {
        case .toOne, .ownerKey:
          addIndex("\(table.name)_\(column.name)_INDEX", table.name, [column.name])
        case .primaryKey, .entityNumber, .optimisticLock, .attribute, .toOneEntityNumber,
          .toOneOrder:
          break
        }
      }
      if members.count > 1 { addIndex("\(table.name)_Z_ENT_INDEX", table.name, ["Z_ENT"]) }
      for member in members {
        addFetchIndexes(of: member, in: table.name)
        addUniqueness(of: member, to: position)
      }
      guard conventions.generation != .before2015 else { continue }
      for join in joinTables where positions[join.entity].map({ entities[$0].table }) == table.name
      {
        addIndex(
          "\(join.name)_\(join.otherColumn)_INDEX", join.name, [join.otherColumn, join.column])
      }
    }
  }

  /// How frameworks before 2017 write `#Index` over one property.
  private mutating func addIndexedAttributes(
    of member: EntityLayout, in table: String
  ) {
    for group in entitiesByName[member.name]?.indices ?? [] where group.count == 1 {
      for column in columns(of: member.name, group) {
        addIndex("\(table)_\(column)_INDEX", table, [column])
      }
    }
  }

  private mutating func addFetchIndexes(of member: EntityLayout, in table: String) {
    guard let entity = entitiesByName[member.name] else { return }
    for group in entity.indices {
      let columns = columns(of: entity.name, group)
      if conventions.generation == .current {
        indexes.append(
          CoreDataLayout.Index(
            name: CoreDataLayout.fetchIndexName(
              CoreDataLayout.swiftDataIndexPrefix + group.joined(), of: entity.name),
            table: table,
            columns: columns, isUnique: false, spellsCollation: true))
      } else if group.count > 1 {
        addIndex("\(table)_\(columns.joined(separator: "_"))", table, columns)
      }
    }
    for index in entity.fetchIndexes {
      let names = index.elements.map(\.property)
      let descending = index.elements.filter { !$0.isAscending }.map(\.property)
      // An index over an expression cannot be laid out.
      guard !names.isEmpty, columns(of: entity.name, names).count == names.count else { continue }
      indexes.append(
        CoreDataLayout.Index(
          name: CoreDataLayout.fetchIndexName(index.name, of: entity.name), table: table,
          columns: columns(of: entity.name, names),
          descendingColumns: Set(columns(of: entity.name, descending)), isUnique: false,
          spellsCollation: true, isPartial: index.isPartial, condition: index.condition))
    }
  }

  private mutating func addUniqueness(of member: EntityLayout, to position: Int) {
    for group in entitiesByName[member.name]?.uniquenessConstraints ?? [] {
      let columns = columns(of: member.name, group)
      if conventions.generation == .current {
        indexes.append(
          CoreDataLayout.Index(
            name: "Z_\(member.name)_UNIQUE_\(group.joined(separator: "_"))",
            table: tables[position].name, columns: columns, isUnique: true, spellsCollation: true))
      } else {
        tables[position].uniqueColumns.append(columns)
      }
    }
  }

  private mutating func addIndex(_ name: String, _ table: String, _ columns: [String]) {
    indexes.append(
      CoreDataLayout.Index(
        name: name, table: table, columns: columns, isUnique: false, spellsCollation: false))
  }

  /// The columns of properties, including inherited ones.
  private func columns(of entity: String, _ properties: [String]) -> [String] {
    properties.compactMap { property in
      var next: String? = entity
      while let name = next {
        let column =
          columnNames[.attribute(entity: name, name: property)]
          ?? columnNames[.toOne(entity: name, name: property)]
        if let column { return column }
        next = entitiesByName[name]?.superentityName
      }
      return nil
    }
  }

  // MARK: Names and errors

  private func position(
    of name: String, usedBy entity: Schema.Entity, _ relationship: Schema.Relationship
  ) throws(InstarError) -> Int {
    guard let position = positions[name] else {
      throw schema.missing(name, usedBy: "\(entity.name).\(relationship.name)")
    }
    return position
  }

  /// The columns of a composite's fields have no prefix (section 3.4).
  private static func column(_ property: String) -> String {
    "Z" + (property.split(separator: ".").last ?? "").uppercased()
  }

  /// By name; the fields of a composite take its place, in the order of declaration (section 3.2).
  private static func inColumnOrder(_ attributes: [Schema.Attribute]) -> [Schema.Attribute] {
    func property(_ attribute: Schema.Attribute) -> Substring.UTF8View {
      attribute.name.prefix { $0 != "." }.utf8
    }
    return attributes.enumerated().sorted { one, two in
      let (left, right) = (property(one.element), property(two.element))
      return left.elementsEqual(right)
        ? one.offset < two.offset : left.lexicographicallyPrecedes(right)
    }.map(\.element)
  }

  private static func bytewise(_ one: some SchemaProperty, _ two: some SchemaProperty) -> Bool {
    one.name.utf8.lexicographicallyPrecedes(two.name.utf8)
  }

  /// Names are used unquoted in SQL, as Core Data does, so only plain identifiers are allowed.
  private static func requireIdentifier(
    _ name: String, in schema: Schema, as role: String
  ) throws(InstarError) {
    let isIdentifier =
      !name.isEmpty
      && name.unicodeScalars.allSatisfy { scalar in
        scalar == "_" || scalar.properties.isXIDContinue
      }
    guard isIdentifier, name.utf8.count <= 255 else {
      throw schema.invalid("'\(name)' cannot be \(role): it is not an identifier")
    }
  }
}
