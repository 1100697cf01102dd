import Foundation
import GRDB
import InstarSchema

/// Reads the schema of a Core Data store without a model from its tables.
///
/// The tables show every entity, every column with its type, every relationship with a join table or a column that
/// names its entity, and every constraint. They do not show the case of most names, what is optional, and the
/// destination of a foreign key. So names are in lower case, and a column is a relationship if it has the index of a
/// foreign key and is named after an entity ("Core Data layout", sections 3 to 6).
struct CoreDataIntrospection {
  private let db: Database
  private let listed: [CoreDataProbe.ListedEntity]
  private let structure: StoreStructure
  private let indexes: [Index]
  /// Whether the store has files with large values.
  private let hasFiles: Bool

  /// The foreign keys that have a column with a position beside them.
  private var places: [TableColumn] = []
  private var entities: [String: Schema.Entity] = [:]
  private var notes: [String] = []
  /// The names of the indexes of relationships.
  private var keys: Set<String> = []
  /// The property of each column.
  private var properties: [TableColumn: (entity: String, name: String)] = [:]

  private struct NumberedName {
    var number: Int
    var name: String
  }

  private struct Column {
    var name: String
    var type: String
  }

  /// - Parameter path: The path of the store.
  init(_ db: Database, _ probe: CoreDataProbe, path: String) throws {
    self.db = db
    listed = probe.entityList
    structure = probe.identity.structure
    indexes = try Self.readIndexes(db)
    hasFiles = FileManager.default.fileExists(
      atPath: ExternalValues.folder(ofStore: path))
  }

  /// - Parameter reason: Why there is no model to read.
  mutating func read(
    version: Schema.Version, because reason: String
  ) throws -> StoreIntrospection {
    for entity in listed {
      entities[entity.name] = Schema.Entity(
        name: entity.name, superentityName: self.entity(numbered: entity.superNumber)?.name)
    }
    for root in listed where root.superNumber == 0 {
      try readTable(of: root)
    }
    readJoinTables()
    for index in indexes { read(index) }
    addOrderedRelationships()
    pairKeys()
    notes.append(
      "read from the tables, because \(reason): names are in lower case unless an index spells them, everything is optional, and relationships without a column of their own are missing"
    )
    return StoreIntrospection(
      origin: .tables, schema: Schema(entities: Array(entities.values), version: version),
      notes: notes)
  }

  // MARK: Entities

  private func entity(numbered number: Int) -> CoreDataProbe.ListedEntity? {
    listed.first { $0.number == number }
  }

  /// The entities in the table of a root, the root first.
  private func members(of root: CoreDataProbe.ListedEntity) -> [CoreDataProbe.ListedEntity] {
    listed.filter { path(to: $0).first?.number == root.number }
  }

  /// The ancestors of an entity from the root on, and itself.
  private func path(to entity: CoreDataProbe.ListedEntity) -> [CoreDataProbe.ListedEntity] {
    var path = [entity]
    // Bounded, because a damaged list may contain a cycle.
    for _ in listed {
      guard let above = self.entity(numbered: path[0].superNumber) else { break }
      path.insert(above, at: 0)
    }
    return path
  }

  private func hasSubentities(_ entity: CoreDataProbe.ListedEntity) -> Bool {
    listed.contains { $0.superNumber == entity.number }
  }

  // MARK: Columns

  private mutating func readTable(of root: CoreDataProbe.ListedEntity) throws {
    let table = "Z" + root.name.uppercased()
    guard structure.tables.contains(where: { $0.name == table }) else {
      notes.append("entity \(root.name) has no table \(table)")
      return
    }
    let rows = try Row.fetchAll(
      db, sql: "SELECT name, type FROM pragma_table_xinfo(?)", arguments: [table])
    var columns: [Column] = []
    for row in rows {
      guard let name: String = row.get(0), !["Z_PK", "Z_ENT", "Z_OPT"].contains(name) else {
        continue
      }
      columns.append(Column(name: name, type: row.get(1) ?? ""))
    }
    let owners = try owners(of: columns.map(\.name), in: table, members: members(of: root))
    for (index, column) in columns.enumerated() {
      let owner = owners[column.name] ?? root.name
      let next = index + 1 < columns.count ? columns[index + 1].name : nil
      read(column, followedBy: next, of: owner, in: table)
      if hasFiles, column.type == "BLOB", try holdsFileNames(column.name, table) {
        mark(TableColumn(table: table, column: column.name), .externalStorage)
      }
    }
  }

  /// The entity of each column in a table with several: the lowest common ancestor of all rows with a value.
  private func owners(
    of columns: [String], in table: String, members: [CoreDataProbe.ListedEntity]
  ) throws -> [String: String] {
    guard members.count > 1 else { return [:] }
    var paths: [String: [String]] = [:]
    // A result may have 2,000 columns, and a store 50 GB.
    for start in stride(from: 0, to: columns.count, by: 500) {
      let part = columns[start..<min(start + 500, columns.count)]
      let counts = part.map { "count(\($0.quotedDatabaseIdentifier))" }.joined(separator: ", ")
      let rows = try Row.fetchAll(
        db,
        sql: """
          SELECT Z_ENT, \(counts) FROM (SELECT * FROM \(table.quotedDatabaseIdentifier) LIMIT 100000)
          GROUP BY Z_ENT
          """)
      for row in rows {
        guard let number: Int = row.get(0),
          let member = members.first(where: { $0.number == number })
        else { continue }
        let path = path(to: member).map(\.name)
        for (index, column) in part.enumerated() where row.get(index + 1) != 0 {
          paths[column] = paths[column].map { common($0, path) } ?? path
        }
      }
    }
    return paths.compactMapValues(\.last)
  }

  private func common(_ one: [String], _ two: [String]) -> [String] {
    zip(one, two).prefix { $0 == $1 }.map(\.0)
  }

  private mutating func read(
    _ column: Column, followedBy next: String?, of owner: String, in table: String
  ) {
    guard column.name.hasPrefix("Z") else {
      notes.append("column \(table).\(column.name) is not one of Core Data's")
      return
    }
    let bare = String(column.name.dropFirst())
    let number = bare.prefix { ("0"..."9").contains($0) }
    let rest = String(bare.dropFirst(number.count))
    if bare.hasPrefix("_FOK_") {
      places.append(TableColumn(table: table, column: "Z" + bare.dropFirst("_FOK_".count)))
      return
    }
    if !number.isEmpty, rest.hasPrefix("_") { return }
    if let number = Int(number), let source = entity(numbered: number) {
      entities[source.name]?.relationships.append(
        Schema.Relationship(
          name: rest.lowercased(), destination: owner, isToOneRelationship: false))
      return
    }
    let name = bare.lowercased()
    properties[TableColumn(table: table, column: column.name)] = (owner, name)
    if column.type == "INTEGER",
      let destination = destination(of: column.name, in: table, followedBy: next)
    {
      keys.insert("\(table)_\(column.name)_INDEX")
      entities[owner]?.relationships.append(
        Schema.Relationship(name: name, destination: destination, isToOneRelationship: true))
      return
    }
    entities[owner]?.attributes.append(
      Schema.Attribute(name: name, type: Self.type(declared: column.type), isOptional: true))
  }

  /// Whether the column holds names of files.
  private func holdsFileNames(_ column: String, _ table: String) throws -> Bool {
    let name = column.quotedDatabaseIdentifier
    let values = try Data.fetchAll(
      db,
      sql: """
        SELECT \(name) FROM (SELECT \(name) FROM \(table.quotedDatabaseIdentifier) LIMIT 100000)
        WHERE typeof(\(name)) = 'blob' AND length(\(name)) BETWEEN 37 AND 41
          AND substr(\(name), 1, 1) = x'02' LIMIT 10
        """)
    return values.contains {
      if case .file = ExternalValues.Form(stored: $0) { true } else { false }
    }
  }

  private mutating func mark(_ place: TableColumn, _ option: Schema.Attribute.Option) {
    guard let property = properties[place],
      let index = entities[property.entity]?.attributes
        .firstIndex(where: { $0.name == property.name })
    else { return }
    entities[property.entity]?.attributes[index].options.append(option)
  }

  private static func type(declared: String) -> Schema.AttributeType {
    switch declared {
    case "INTEGER": .int64
    case "DECIMAL": .decimal
    case "FLOAT": .double
    case "TIMESTAMP": .date
    case "VARCHAR": .string
    default: .data
    }
  }

  /// The destination of a to-one relationship in a column; `nil` for an attribute.
  private func destination(
    of column: String, in table: String, followedBy next: String?
  ) -> String? {
    let bare = column.dropFirst()
    // Beside the key is the number of the row's entity, in a column that names the destination's number.
    if let next, next.hasSuffix("_\(bare)"),
      let number = Int(next.dropFirst().dropLast(bare.count + 1)),
      let destination = entity(numbered: number)
    {
      return destination.name
    }
    let isIndexed = indexes.contains {
      $0.table == table && $0.columns == [column] && $0.name == "\(table)_\(column)_INDEX"
    }
    guard isIndexed else { return nil }
    // Without that column, the destination has no subentities.
    let leaves: [String] = listed.filter { !hasSubentities($0) }.map { $0.name }
    func named(_ test: (String) -> Bool) -> String? {
      leaves.filter { test($0.uppercased()) }.max { $0.count < $1.count }
    }
    if let equal = named({ $0 == bare }) { return equal }
    if let part = named({ bare.hasSuffix($0) || bare.hasPrefix($0) }) { return part }
    return named { $0.hasSuffix(bare) }
  }

  /// A foreign key with a position beside it is the inverse of an ordered relationship (section 4.4), whose name no
  /// table shows.
  private mutating func addOrderedRelationships() {
    for place in places {
      guard let key = properties[place],
        let index = entities[key.entity]?.relationships
          .firstIndex(where: { $0.name == key.name && $0.isToOneRelationship }),
        let destination = entities[key.entity]?.relationships[index].destination
      else { continue }
      let taken = Set(
        (entities[destination]?.attributes.map(\.name) ?? [])
          + (entities[destination]?.relationships.map(\.name) ?? []))
      var name = "\(key.entity.lowercased())s"
      while taken.contains(name) { name += "s" }
      entities[key.entity]?.relationships[index].inverseName = name
      entities[destination]?.relationships.append(
        Schema.Relationship(
          name: name, destination: key.entity, inverseName: key.name, isToOneRelationship: false,
          options: [.ordered]))
    }
  }

  /// Pairs the foreign keys of two entities that have one to each other: they are treated as a one-to-one relationship.
  private mutating func pairKeys() {
    func keys(of entity: String, to destination: String) -> [String] {
      var names: [String] = []
      for relationship in entities[entity]?.relationships ?? []
      where relationship.isToOneRelationship && relationship.inverseName == nil
        && relationship.destination == destination
      {
        names.append(relationship.name)
      }
      return names
    }
    func pair(_ name: String, of entity: String, with inverse: String) {
      guard var relationships = entities[entity]?.relationships,
        let index = relationships.firstIndex(where: { $0.name == name })
      else { return }
      relationships[index].inverseName = inverse
      entities[entity]?.relationships = relationships
    }
    let names: [String] = listed.map { $0.name }
    for one in names {
      for two in names where one < two {
        let there: [String] = keys(of: one, to: two)
        let back: [String] = keys(of: two, to: one)
        guard there.count == 1, back.count == 1 else { continue }
        pair(there[0], of: one, with: back[0])
        pair(back[0], of: two, with: there[0])
      }
    }
  }

  // MARK: Join tables (section 4.5)

  private mutating func readJoinTables() {
    for table in structure.tables where table.name.hasPrefix("Z_") {
      let keys: [NumberedName] = table.columns.filter { !$0.name.hasPrefix("Z_FOK_") }
        .compactMap { numbered($0.name) }
      if let key = keys.first, keys.count == 1, let owner = entity(numbered: key.number),
        numbered(table.name)?.number == key.number,
        table.columns.contains(where: { $0.name == CoreDataConventions.reflexiveColumn })
      {
        let name = (numbered(table.name)?.name ?? key.name).lowercased()
        entities[owner.name]?.relationships.append(
          Schema.Relationship(
            name: name, destination: owner.name, inverseName: name, isToOneRelationship: false))
        continue
      }
      guard keys.count == 2, let own = numbered(table.name),
        let first = entity(numbered: own.number)
      else {
        notes.append("table \(table.name) belongs to no entity and no relationship")
        continue
      }
      // The column of the other entity is named after the relationship to it, which also names the table.
      let isSecond =
        keys[1].name == own.name && (keys[0].name != own.name || keys[0].number == own.number)
      let (there, back) = isSecond ? (keys[1], keys[0]) : (keys[0], keys[1])
      guard there.name == own.name, back.number == own.number,
        let second = entity(numbered: there.number)
      else {
        notes.append("table \(table.name) belongs to no entity and no relationship")
        continue
      }
      let name = own.name
      func options(of key: NumberedName) -> [Schema.Relationship.Option] {
        let column = "Z_FOK_\(key.number)\(key.name)"
        return table.columns.contains { $0.name == column } ? [.ordered] : []
      }
      entities[first.name]?.relationships.append(
        Schema.Relationship(
          name: name.lowercased(), destination: second.name, inverseName: back.name.lowercased(),
          isToOneRelationship: false, options: options(of: there)))
      entities[second.name]?.relationships.append(
        Schema.Relationship(
          name: back.name.lowercased(), destination: first.name, inverseName: name.lowercased(),
          isToOneRelationship: false, options: options(of: back)))
    }
  }

  /// `Z_12TAGS` as 12 and TAGS.
  private func numbered(_ name: String) -> NumberedName? {
    guard name.hasPrefix("Z_") else { return nil }
    let digits = name.dropFirst(2).prefix { ("0"..."9").contains($0) }
    guard let number = Int(digits) else { return nil }
    return NumberedName(number: number, name: String(name.dropFirst(2 + digits.count)))
  }

  // MARK: Indexes (section 6.1)

  /// An index with its name, which a structure leaves out.
  private struct Index {
    var name: String
    var table: String
    var columns: [String] = []
    var isUnique: Bool
    /// The descending columns.
    var descending: Set<String> = []
    /// The condition on its rows, as SQL; `nil` for all rows.
    var condition: String?
  }

  private static func readIndexes(_ db: Database) throws -> [Index] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT l.name, m.name, l."unique", x."desc", x.name, iif(l.partial, i.sql, NULL)
        FROM sqlite_master AS m
        JOIN pragma_index_list(m.name) AS l
        JOIN pragma_index_xinfo(l.name) AS x
        LEFT JOIN sqlite_master AS i ON i.type = 'index' AND i.name = l.name
        WHERE m.type = 'table' AND m.rootpage > 0 AND m.name GLOB 'Z*' AND x.key = 1
          AND l.origin IN ('c', 'u')
        ORDER BY m.name, l.name, x.seqno
        """)
    var indexes: [Index] = []
    for row in rows {
      guard let name: String = row.get(0), let table: String = row.get(1) else { continue }
      if indexes.last?.name != name {
        let sql: String? = row.get(5)
        indexes.append(
          Index(
            name: name, table: table, isUnique: row.get(2) == 1,
            condition: sql.flatMap { CreateIndexText($0) }?.condition))
      }
      let column = row.get(4) ?? ""
      indexes[indexes.count - 1].columns.append(column)
      if row.get(3) != 0 {
        indexes[indexes.count - 1].descending.insert(column)
      }
    }
    return indexes
  }

  private mutating func read(_ index: Index) {
    var places: [(entity: String, name: String)] = []
    for column in index.columns {
      guard let place = properties[TableColumn(table: index.table, column: column)] else { return }
      places.append(place)
    }
    // The index of a foreign key belongs to the relationship.
    guard let first = places.first, index.isUnique || !keys.contains(index.name)
    else { return }
    let isPlain = index.condition == nil && index.descending.isEmpty
    let isToOne = entities[first.entity]?.relationships.contains {
      $0.name == first.name && $0.isToOneRelationship
    }
    // Core Data's own index of the relationship covers the same column.
    if isPlain, !index.isUnique, places.count == 1, isToOne == true { return }
    guard isPlain || !index.isUnique else {
      notes.append(
        "index \(index.name) is left out: no model can declare a unique index that is partial or descending"
      )
      return
    }
    var entity = first.entity
    for place in places where isBelow(place.entity, entity) { entity = place.entity }
    var names: [String] = places.map { $0.name }
    let kinds = [("_UNIQUE_", "_"), ("_\(CoreDataLayout.swiftDataIndexPrefix)", "")]
    for (infix, separator) in kinds {
      guard let range = index.name.range(of: infix) else { continue }
      let named = String(index.name[..<range.lowerBound].dropFirst(2))
      if entities[named] != nil { entity = named }
      // The name of the index has the model's spelling of the properties.
      names = spelled(names, String(index.name[range.upperBound...]), separator: separator)
    }
    for (place, name) in zip(places, names) { rename(place, to: name) }
    let fetchName = fetchIndexName(index, of: entity)
    if index.isUnique {
      entities[entity]?.uniquenessConstraints.append(names)
    } else if !isPlain || fetchName != nil {
      let elements = zip(names, index.columns).map { name, column in
        Schema.FetchIndex.Element(name, isAscending: !index.descending.contains(column))
      }
      entities[entity]?.fetchIndexes.append(
        Schema.FetchIndex(
          name: fetchName ?? index.name, elements: elements,
          condition: index.condition))
    } else {
      entities[entity]?.indices.append(names)
    }
  }

  /// Returns the model's name of the index; `nil` where it has none, or SwiftData named it.
  private func fetchIndexName(_ index: Index, of entity: String) -> String? {
    let prefix = CoreDataLayout.fetchIndexName("", of: entity)
    guard index.name.hasPrefix(prefix) else { return nil }
    let name = String(index.name.dropFirst(prefix.count))
    return name.isEmpty || name.hasPrefix(CoreDataLayout.swiftDataIndexPrefix) ? nil : name
  }

  private func isBelow(_ name: String, _ other: String) -> Bool {
    guard name != other, let entity = listed.first(where: { $0.name == name }) else { return false }
    return path(to: entity).contains { $0.name == other }
  }

  private func spelled(_ names: [String], _ text: String, separator: String) -> [String] {
    guard text.lowercased() == names.joined(separator: separator) else { return names }
    var rest = text[...]
    return names.map { name in
      let spelled = rest.prefix(name.count)
      rest = rest.dropFirst(name.count + separator.count)
      return String(spelled)
    }
  }

  private mutating func rename(_ property: (entity: String, name: String), to name: String) {
    guard property.name != name, var entity = entities[property.entity] else { return }
    for index in entity.attributes.indices where entity.attributes[index].name == property.name {
      entity.attributes[index].name = name
      entity.attributes[index].originalName = name
    }
    for index in entity.relationships.indices
    where entity.relationships[index].name == property.name {
      entity.relationships[index].name = name
      entity.relationships[index].originalName = name
    }
    entities[property.entity] = entity
    for (place, known) in properties where known == property {
      properties[place] = (property.entity, name)
    }
  }
}
