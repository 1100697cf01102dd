import InstarSchema

/// Computes a `PlainLayout` in steps: names and primary keys, columns, join tables, indexes, entity layouts.
struct PlainLayoutBuilder {
  private let schema: Schema
  private(set) var tables: [PlainLayout.Table] = []
  private(set) var indexes: [PlainLayout.Index] = []
  private(set) var entityLayouts: [EntityLayout] = []

  private let entitiesByName: [String: Schema.Entity]
  private var tableNames: [String: String] = [:]

  /// A column of a primary key.
  private struct KeyColumn {
    var name: String
    var type: String
  }

  init(schema: Schema) throws(InstarError) {
    self.schema = schema
    entitiesByName = schema.entitiesByName
    var names: Set<String> = []
    for entity in schema.entities {
      guard let table = entity.table else {
        throw schema.invalid(
          "\(entity.name) has no @Table, but other models of the schema have one",
          next: "write @Table before \(entity.name)")
      }
      guard entity.superentityName == nil else {
        throw schema.invalid(
          "\(entity.name) has @Table and inherits from another model",
          next:
            "declare the properties of both in one class; only the Core Data format has inheritance"
        )
      }
      let name = table.name ?? Schema.snakeCase(entity.name)
      try requireName(name, of: "the table of \(entity.name)")
      guard names.insert(name.lowercased()).inserted else {
        throw schema.invalid("two tables are named \(name)")
      }
      tableNames[entity.name] = name
    }
  }

  mutating func build() throws(InstarError) {
    for entity in schema.entities { tables.append(try table(of: entity)) }
    try addJunctions()
    try addIndexes()
    for (index, entity) in schema.entities.enumerated() {
      entityLayouts.append(try layout(of: entity, number: index + 1))
    }
  }

  // MARK: Keys

  /// The columns of an entity's primary key: those of attributes, then those of relationships.
  ///
  /// - Parameter depth: How many keys of other tables refer to this one so far; bounds a cycle.
  private func primaryKey(
    of entity: Schema.Entity, depth: Int = 0
  ) throws(InstarError) -> [KeyColumn] {
    guard depth <= schema.entities.count else {
      throw schema.invalid("the primary key of \(entity.name) contains a reference to itself")
    }
    var key: [KeyColumn] = []
    for attribute in entity.keyAttributes {
      key.append(KeyColumn(name: attribute.columnName, type: try type(of: attribute, entity)))
    }
    for relationship in entity.relationships where relationship.column?.isPrimaryKey == true {
      let reference = try reference(relationship, of: entity, depth: depth + 1)
      key += reference.map { KeyColumn(name: $0.column, type: $0.target.type) }
    }
    return key.isEmpty ? [KeyColumn(name: "id", type: "INTEGER")] : key
  }

  /// Whether the key is the rowid under another name, which SQLite makes it for exactly this type.
  private func isRowID(_ key: [KeyColumn], of entity: Schema.Entity) -> Bool {
    key.count == 1 && key[0].type.uppercased() == "INTEGER" && entity.table?.isWithoutRowID != true
      && !entity.relationships.contains { $0.column?.isPrimaryKey == true }
  }

  private func rowKey(of entity: Schema.Entity) throws(InstarError) -> RowKey {
    let key = try primaryKey(of: entity)
    let names = key.map { SQLIdentifier.sql($0.name) }
    if isRowID(key, of: entity) { return RowKey(rowID: names[0]) }
    if key.count == 1, key[0].type.uppercased() == "INTEGER",
      entity.table?.isWithoutRowID != true
    {
      throw schema.invalid(
        "the primary key of \(entity.name) is a single relationship, which would be its rowid",
        next:
          "write @Table(.withoutRowID) before \(entity.name), or give it a primary key attribute")
    }
    if entity.table?.isWithoutRowID == true {
      return RowKey(primaryKey: names, ofTable: try tableName(of: entity))
    }
    let taken = Set(
      tables.first { $0.entity == entity.name }?.columns.map { $0.name.lowercased() } ?? [])
    guard let name = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) else {
      throw schema.invalid(
        "columns of \(entity.name) use all names of the rowid: rowid, _rowid_ and oid")
    }
    return RowKey(rowID: name)
  }

  // MARK: Relationships

  /// The columns of a to-one relationship, each with the column of the key that it refers to.
  private func reference(
    _ relationship: Schema.Relationship, of entity: Schema.Entity, depth: Int = 0
  ) throws(InstarError) -> [(column: String, target: KeyColumn)] {
    let destination = try destination(of: relationship, entity)
    let key = try primaryKey(of: destination, depth: depth)
    let names =
      relationship.column?.names
      ?? key.map { "\(Schema.snakeCase(relationship.name))_\($0.name)" }
    guard names.count == key.count else {
      throw schema.invalid(
        "\(entity.name).\(relationship.name) has \(names.count) columns, and the key of "
          + "\(destination.name) has \(key.count)",
        next: "name one column for each with .columns(…)")
    }
    return Array(zip(names, key))
  }

  private func destination(
    of relationship: Schema.Relationship, _ entity: Schema.Entity
  ) throws(InstarError) -> Schema.Entity {
    guard let destination = entitiesByName[relationship.destination] else {
      throw schema.missing(
        relationship.destination, usedBy: "\(entity.name).\(relationship.name)")
    }
    return destination
  }

  private func inverse(of relationship: Schema.Relationship) -> Schema.Relationship? {
    relationship.inverseName.flatMap { name in
      entitiesByName[relationship.destination]?.relationships.first { $0.name == name }
    }
  }

  /// What happens to a row whose referenced row is deleted: the declared action, else the other end's delete rule.
  private func actions(_ relationship: Schema.Relationship) -> String {
    let meant: Schema.Column.Action? = inverse(of: relationship).flatMap { inverse in
      switch inverse.deleteRule {
      case .cascade: .cascade
      case .deny: .restrict
      case .nullify: relationship.isOptional ? .setNull : nil
      case .noAction: nil
      }
    }
    return actions(relationship.column?.onDelete ?? meant, relationship.column?.onUpdate)
  }

  private func actions(
    _ deletion: Schema.Column.Action?, _ update: Schema.Column.Action?
  ) -> String {
    (deletion.map { " ON DELETE \($0.rawValue)" } ?? "")
      + (update.map { " ON UPDATE \($0.rawValue)" } ?? "")
  }

  // MARK: Columns

  private func encoding(_ attribute: Schema.Attribute) -> Schema.Column.Encoding? {
    attribute.column?.encoding ?? .standard(for: attribute.type)
  }

  private func type(
    of attribute: Schema.Attribute, _ entity: Schema.Entity
  ) throws(InstarError) -> String {
    if let encoding = attribute.column?.encoding, !encoding.fits(attribute.type) {
      throw schema.invalid(
        "\(entity.name).\(attribute.name) is a \(attribute.type.rawValue), which .\(encoding.rawValue) does not encode"
      )
    }
    if let type = attribute.column?.type,
      type.utf8.contains(where: { $0 == 0x3B || $0 == 0x27 || $0 == 0x2D || $0 == 0x2F })
    {
      throw schema.invalid("'\(type)' is not a valid column type")
    }
    return attribute.columnType(isStrict: entity.table?.isStrict ?? false)
  }

  private func column(
    _ attribute: Schema.Attribute, of entity: Schema.Entity, soleKey: Bool, isKey: Bool
  ) throws(InstarError) -> PlainLayout.Column {
    let path = "\(entity.name).\(attribute.name)"
    let mapping = attribute.column ?? Schema.Column()
    if let names = mapping.names, names.count != 1 {
      throw schema.invalid("\(path) is a single value, but has \(names.count) columns")
    }
    if mapping.junction != nil {
      throw schema.invalid("\(path) is an attribute; only a relationship can have a join table")
    }
    let name = attribute.columnName
    try requireName(name, of: "the column of \(path)")
    let type = try type(of: attribute, entity)
    let encoding = encoding(attribute)
    var declaration = [type]
    let isRowID = soleKey && type.uppercased() == "INTEGER" && entity.table?.isWithoutRowID != true
    if soleKey { declaration.append("PRIMARY KEY") }
    if mapping.isAutoincrement {
      guard isRowID else {
        throw schema.invalid(
          "\(path) cannot be autoincremented, because it is not an INTEGER PRIMARY KEY by itself")
      }
      declaration.append("AUTOINCREMENT")
    }
    let isRequired = (!attribute.isOptional || isKey) && !isRowID && mapping.generated == nil
    if isRequired { declaration.append("NOT NULL") }
    var defaultValue = mapping.defaultValue
    if defaultValue == nil, mapping.generated == nil, !isKey, !attribute.isOptional,
      mapping.hasConstantDefault, let value = attribute.storedDefault
    {
      defaultValue = (encoding?.written(value) ?? value).literal
    }
    if let collation = mapping.collation {
      declaration.append("COLLATE \(SQLIdentifier.sql(collation))")
    }
    if let check = mapping.check { declaration.append("CHECK (\(check))") }
    if let generated = mapping.generated {
      guard !isKey else {
        throw schema.invalid("\(path) is a generated column, which cannot be a primary key")
      }
      declaration.append(
        "GENERATED ALWAYS AS (\(generated)) \(mapping.isStored ? "STORED" : "VIRTUAL")")
    }
    let definition = declaration + (defaultValue.map { ["DEFAULT \($0)"] } ?? [])
    if let value = mapping.defaultValue { declaration.append("DEFAULT \(value)") }
    return PlainLayout.Column(
      name: name, type: type, role: .attribute(attribute.name), encoding: encoding,
      definition: "\(SQLIdentifier.sql(name)) \(definition.joined(separator: " "))",
      declaration: declaration.joined(separator: " "), isRequired: isRequired,
      isGenerated: mapping.generated != nil,
      defaultValue: defaultValue)
  }

  // MARK: Tables

  private func table(of entity: Schema.Entity) throws(InstarError) -> PlainLayout.Table {
    let keyAttributes = entity.keyAttributes
    let key = try primaryKey(of: entity)
    let isHidden =
      keyAttributes.isEmpty
      && !entity.relationships.contains { $0.column?.isPrimaryKey == true }
    if isHidden, entity.table?.isWithoutRowID == true {
      throw schema.invalid(
        "\(entity.name) is WITHOUT ROWID, but has no primary key",
        next: "write @Column(.primaryKey) before the properties of the primary key")
    }
    var columns: [PlainLayout.Column] = []
    var constraints: [String] = []
    if isHidden {
      columns.append(
        PlainLayout.Column(
          name: "id", type: "INTEGER", role: .hiddenKey, definition: "id INTEGER PRIMARY KEY",
          declaration: "INTEGER PRIMARY KEY", isRequired: false))
    }
    let keyNames = Set(keyAttributes.map(\.name))
    let stored = entity.attributes.filter { !$0.options.contains(.ephemeral) }
    for attribute in stored.filter({ keyNames.contains($0.name) })
      + stored.filter({ !keyNames.contains($0.name) })
    {
      let isKey = keyNames.contains(attribute.name)
      columns.append(
        try column(
          attribute, of: entity, soleKey: isKey && key.count == 1, isKey: isKey))
    }
    if !isHidden, key.count > 1 || keyAttributes.isEmpty {
      constraints.append("PRIMARY KEY (\(Self.list(key.map(\.name))))")
    }
    for relationship in entity.relationships where relationship.isToOneRelationship {
      let reference = try referenceColumns(relationship, of: entity)
      columns += reference.columns
      if let constraint = reference.constraint { constraints.append(constraint) }
    }
    constraints += (entity.table?.checks ?? []).map { "CHECK (\($0))" }
    try requireDistinct(columns, of: entity)
    return PlainLayout.Table(
      name: try tableName(of: entity), entity: entity.name, columns: columns,
      primaryKey: key.map(\.name), isStrict: entity.table?.isStrict ?? false,
      isWithoutRowID: entity.table?.isWithoutRowID ?? false, constraints: constraints)
  }

  /// The columns of a to-one relationship, and its foreign key where that is not part of a column.
  private func referenceColumns(
    _ relationship: Schema.Relationship, of entity: Schema.Entity
  ) throws(InstarError) -> (columns: [PlainLayout.Column], constraint: String?) {
    let path = "\(entity.name).\(relationship.name)"
    if relationship.column?.junction != nil {
      throw schema.invalid("\(path) is a to-one relationship, which cannot have a join table")
    }
    let reference = try reference(relationship, of: entity)
    let target = SQLIdentifier.sql(try tableName(of: destination(of: relationship, entity)))
    let isRequired = !relationship.isOptional || relationship.column?.isPrimaryKey == true
    let clause =
      "REFERENCES \(target) (\(Self.list(reference.map(\.target.name))))\(actions(relationship))"
    var columns: [PlainLayout.Column] = []
    for (index, part) in reference.enumerated() {
      try requireName(part.column, of: "a column of \(path)")
      let type = part.target.type + (isRequired ? " NOT NULL" : "")
      columns.append(
        PlainLayout.Column(
          name: part.column, type: part.target.type,
          role: .reference(relationship: relationship.name, index: index),
          definition: "\(SQLIdentifier.sql(part.column)) \(type)"
            + (reference.count == 1 ? " \(clause)" : ""),
          // Without the table's name, because SQLite itself updates it in a rename, and without the action of a
          // delete rule, because the app's own foreign key stays.
          declaration: "\(type) to \(relationship.destination)"
            + actions(relationship.column?.onDelete, relationship.column?.onUpdate),
          isRequired: isRequired))
    }
    let names = Self.list(reference.map(\.column))
    return (columns, reference.count > 1 ? "FOREIGN KEY (\(names)) \(clause)" : nil)
  }

  private func requireDistinct(
    _ columns: [PlainLayout.Column], of entity: Schema.Entity
  ) throws(InstarError) {
    var names: Set<String> = []
    for column in columns where !names.insert(column.name.lowercased()).inserted {
      throw schema.invalid(
        "two properties of \(entity.name) use the column \(column.name)",
        next: "give one of them another column with @Column(\"…\")")
    }
  }

  // MARK: Join tables

  /// The join table of a many-to-many relationship. Both ends describe the same table.
  private func junction(
    of relationship: Schema.Relationship, _ entity: Schema.Entity
  ) throws(InstarError) -> Schema.Column.Junction? {
    guard !relationship.isToOneRelationship else { return nil }
    if let junction = relationship.column?.junction { return junction }
    guard let inverse = inverse(of: relationship) else { return nil }
    if inverse.isToOneRelationship { return nil }
    if let junction = inverse.column?.junction {
      return Schema.Column.Junction(
        table: junction.table, own: junction.other, other: junction.own)
    }
    let destination = try destination(of: relationship, entity)
    if (destination.name, inverse.name) < (entity.name, relationship.name),
      let turned = try self.junction(of: inverse, destination)
    {
      return Schema.Column.Junction(table: turned.table, own: turned.other, other: turned.own)
    }
    let (own, other) = (try primaryKey(of: entity), try primaryKey(of: destination))
    let ownName = Schema.snakeCase(entity.name)
    let otherName =
      destination.name == entity.name
      ? Schema.snakeCase(relationship.name) : Schema.snakeCase(destination.name)
    return Schema.Column.Junction(
      table: "\(try tableName(of: entity))_\(Schema.snakeCase(relationship.name))",
      own: own.map { "\(ownName)_\($0.name)" }, other: other.map { "\(otherName)_\($0.name)" })
  }

  private mutating func addJunctions() throws(InstarError) {
    for entity in schema.entities {
      for relationship in entity.relationships {
        guard let junction = try junction(of: relationship, entity) else {
          if !relationship.isToOneRelationship, inverse(of: relationship) == nil {
            throw schema.invalid(
              "the to-many relationship \(entity.name).\(relationship.name) has no inverse",
              next:
                "name its inverse with @Relationship(inverse:), or its join table with @Column(.junction(…))"
            )
          }
          continue
        }
        let name = "\(entity.name).\(relationship.name)"
        let known = tables.firstIndex { $0.name.lowercased() == junction.table.lowercased() }
        if let known {
          guard tables[known].entity == nil,
            tables[known].relationships
              == [relationship.inverseName.map { "\(relationship.destination).\($0)" }]
          else {
            throw schema.invalid(
              "the join table \(junction.table) of \(name) belongs to another relationship or model too"
            )
          }
          tables[known].relationships.append(name)
          continue
        }
        tables.append(try table(junction, of: relationship, entity, name: name))
      }
    }
  }

  private func table(
    _ junction: Schema.Column.Junction, of relationship: Schema.Relationship,
    _ entity: Schema.Entity, name: String
  ) throws(InstarError) -> PlainLayout.Table {
    try requireName(junction.table, of: "the join table of \(name)")
    var table = PlainLayout.Table(
      name: junction.table, entity: nil, relationships: [name], columns: [],
      primaryKey: junction.own + junction.other)
    let destination = try destination(of: relationship, entity)
    for (isOwn, names, target) in [
      (true, junction.own, entity), (false, junction.other, destination),
    ] {
      let key = try primaryKey(of: target)
      guard names.count == key.count else {
        throw schema.invalid(
          "\(junction.table) refers to \(target.name) by \(names.count) columns, but the key of \(target.name) has \(key.count)"
        )
      }
      let targetTable = SQLIdentifier.sql(try tableName(of: target))
      let clause = "REFERENCES \(targetTable) (\(Self.list(key.map(\.name)))) ON DELETE CASCADE"
      for (index, (column, part)) in zip(names, key).enumerated() {
        try requireName(column, of: "a column of \(junction.table)")
        let type = "\(part.type) NOT NULL"
        table.columns.append(
          PlainLayout.Column(
            name: column, type: part.type, role: .link(isOwn: isOwn, index: index),
            definition: "\(SQLIdentifier.sql(column)) \(type)"
              + (key.count == 1 ? " \(clause)" : ""),
            declaration: "\(type) to \(target.name)", isRequired: true))
      }
      if key.count > 1 { table.constraints.append("FOREIGN KEY (\(Self.list(names))) \(clause)") }
    }
    table.constraints.insert("PRIMARY KEY (\(Self.list(table.primaryKey)))", at: 0)
    return table
  }

  // MARK: Indexes

  private mutating func addIndexes() throws(InstarError) {
    for entity in schema.entities {
      guard let table = tables.first(where: { $0.entity == entity.name }) else { continue }
      func names(_ properties: [String]) -> [String] {
        properties.flatMap { property in
          table.columns.filter { column in
            switch column.role {
            case .attribute(let name), .reference(let name, _): name == property
            case .hiddenKey, .link: false
            }
          }.map(\.name)
        }
      }
      func add(_ columns: [String], _ suffix: String, isUnique: Bool) {
        guard !columns.isEmpty else { return }
        indexes.append(
          PlainLayout.Index(
            name: "\(table.name)_\(columns.joined(separator: "_"))_\(suffix)", table: table.name,
            terms: columns.map(SQLIdentifier.sql), isUnique: isUnique))
      }
      for group in entity.uniquenessConstraints {
        let columns = names(group)
        if Set(columns) != Set(table.primaryKey) { add(columns, "unique", isUnique: true) }
      }
      for group in entity.indices { add(names(group), "index", isUnique: false) }
      for index in entity.fetchIndexes {
        try requireName(index.name, of: "an index of \(entity.name)")
        let terms = index.elements.flatMap { element in
          names([element.property]).map {
            element.isAscending ? SQLIdentifier.sql($0) : "\(SQLIdentifier.sql($0)) DESC"
          }
        }
        indexes.append(
          PlainLayout.Index(
            name: index.name, table: table.name, terms: terms, isUnique: false,
            condition: index.condition))
      }
      for index in entity.table?.indexes ?? [] {
        try requireName(index.name, of: "an index of \(entity.name)")
        indexes.append(
          PlainLayout.Index(
            name: index.name, table: table.name, terms: index.terms, isUnique: index.isUnique,
            condition: index.condition))
      }
    }
    var known: Set<String> = []
    for index in indexes where !known.insert(index.name.lowercased()).inserted {
      throw schema.invalid("two indexes are named \(index.name)")
    }
  }

  // MARK: Entity layouts

  private func layout(
    of entity: Schema.Entity, number: Int
  ) throws(InstarError) -> EntityLayout {
    guard let table = tables.first(where: { $0.entity == entity.name }) else {
      throw missingTable(of: entity)
    }
    let key = try rowKey(of: entity)
    var relationships: [EntityLayout.RelationshipStorage] = []
    for relationship in entity.relationships {
      let destination = try destination(of: relationship, entity)
      relationships.append(
        EntityLayout.RelationshipStorage(
          relationship: relationship,
          destinationTable: SQLIdentifier.sql(try tableName(of: destination)),
          location: try location(of: relationship, entity, destination)))
    }
    let name = SQLIdentifier.sql(table.name)
    let highestKey = "(SELECT max(\(key.columns[0])) FROM \(name))"
    let isAutoincrement = entity.attributes.contains { $0.column?.isAutoincrement == true }
    let literal = AttributeValue.text(table.name).literal
    return EntityLayout(
      name: entity.name, root: entity.name, table: name, number: number, superNumber: 0,
      numbers: [number], key: key, primaryKey: table.primaryKey.map(SQLIdentifier.sql),
      entityColumn: nil, lockColumn: nil,
      attributes: table.columns.compactMap { column in
        guard case .attribute(let name) = column.role,
          let attribute = entity.attributes.first(where: { $0.name == name })
        else { return nil }
        return EntityLayout.AttributeColumn(attribute: attribute, column: StoredColumn(column))
      },
      relationships: relationships,
      highestKeyStatement: !key.isRowID
        ? "SELECT 0"
        : isAutoincrement
          ? "SELECT max(ifnull(\(highestKey), 0), "
            + "ifnull((SELECT max(seq) FROM sqlite_sequence WHERE name = \(literal) COLLATE NOCASE), 0))"
          : "SELECT \(highestKey)", recordKeyStatement: nil)
  }

  private func location(
    of relationship: Schema.Relationship, _ entity: Schema.Entity, _ destination: Schema.Entity
  ) throws(InstarError) -> EntityLayout.RelationshipStorage.Location {
    if relationship.isToOneRelationship {
      let reference = try reference(relationship, of: entity)
      return .column(try foreignKey(reference.map(\.column), to: destination))
    }
    if let junction = try junction(of: relationship, entity) {
      return .joinTable(
        name: SQLIdentifier.sql(junction.table), own: try foreignKey(junction.own, to: entity),
        other: try foreignKey(junction.other, to: destination))
    }
    guard let inverse = inverse(of: relationship) else {
      throw schema.invalid("\(entity.name).\(relationship.name) has no inverse")
    }
    let reference = try reference(inverse, of: destination)
    return .foreignKey(try foreignKey(reference.map(\.column), to: entity))
  }

  private func foreignKey(
    _ columns: [String], to entity: Schema.Entity
  ) throws(InstarError) -> ForeignKey {
    let key = try rowKey(of: entity)
    let names = columns.map(SQLIdentifier.sql)
    let primaryKey = try primaryKey(of: entity)
    if isRowID(primaryKey, of: entity) || !key.isRowID {
      return ForeignKey(columns: names, key: key)
    }
    return ForeignKey(
      columns: names,
      target: ForeignKey.Target(
        table: SQLIdentifier.sql(try tableName(of: entity)),
        columns: primaryKey.map { SQLIdentifier.sql($0.name) }), key: key)
  }

  // MARK: Names and errors

  private func tableName(of entity: Schema.Entity) throws(InstarError) -> String {
    guard let name = tableNames[entity.name] else { throw missingTable(of: entity) }
    return name
  }

  private func missingTable(of entity: Schema.Entity) -> InstarError {
    schema.invalid("\(entity.name) has no table")
  }

  private static func list(_ names: [String]) -> String {
    names.map(SQLIdentifier.sql).joined(separator: ", ")
  }

  private func requireName(_ name: String, of what: String) throws(InstarError) {
    guard !name.isEmpty, name.utf8.count <= 255, !name.utf8.contains(0),
      !name.lowercased().hasPrefix("sqlite_")
    else { throw schema.invalid("'\(name)' cannot be \(what)") }
  }
}

extension StoredColumn {
  init(_ column: PlainLayout.Column) {
    self.init(name: SQLIdentifier.sql(column.name))
    encoding = column.encoding
    isGenerated = column.isGenerated
    if let encoding {
      reading = reading.passed(to: encoding.readFunction)
      parameter = "\(encoding.writeFunction)(?)"
    }
  }
}
