import GRDB
import InstarSchema

/// The schema of a store of ordinary tables, as models would map it.
///
/// Tables tell names, declared types, keys, foreign keys, uniqueness and defaults; what a value means where SQLite has no
/// type for it, a date or a UUID, the first stored one tells. Whatever no model can speak of stays out: it survives a
/// change of schema as it is.
struct PlainIntrospection {
  private let db: Database
  private let toolVersions: [ToolVersion]
  private var tables: [Table] = []
  private var entities: [Schema.Entity] = []
  private var notes: [String] = []

  private struct Table {
    var name: String
    var isWithoutRowID: Bool
    var isStrict: Bool
    var text: CreateTableText?
    var columns: [Column] = []
    var foreignKeys: [ForeignKey] = []
    var indexes: [Index] = []
    /// The class that its rows become; `nil` for a table of links.
    var entity: String?

    /// In the order of the key.
    var keyColumns: [Column] {
      columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
    }

    func column(_ name: String) -> Column? {
      columns.first { $0.name.lowercased() == name.lowercased() }
    }
  }

  private struct Column {
    var name: String
    var type: String
    var isRequired: Bool
    var defaultValue: String?
    /// From 1; 0 for a column that is not of the primary key.
    var keyPosition: Int
    var isGenerated: Bool
    var isStored: Bool
  }

  private struct ForeignKey {
    var table: String
    /// Those of this table, each with the one it refers to; an empty name stands for the other's primary key.
    var columns: [(own: String, other: String)]
    var onUpdate: String
    var onDelete: String
  }

  private struct Index {
    var columns: [String]
    var isUnique: Bool
  }

  init(_ db: Database, _ probe: StoreProbe) {
    self.db = db
    toolVersions = probe.identity.toolVersions
  }

  mutating func read(version: Schema.Version) throws -> StoreIntrospection {
    try readTables()
    nameClasses()
    for index in tables.indices where tables[index].entity != nil {
      entities.append(try entity(of: tables[index]))
    }
    for table in tables { addRelationships(of: table) }
    for table in tables where table.entity != nil { addIndexes(of: table) }
    try noteTheRest()
    return StoreIntrospection(
      origin: .tables, schema: Schema(entities: entities, version: version), notes: notes)
  }

  // MARK: Tables

  /// Where migration tools and platforms keep what is theirs.
  private static let toolTables: Set<String> = [
    "alembic_version", "django_migrations", "schema_migrations", "grdb_migrations",
    "room_master_table", "android_metadata",
  ]

  private mutating func readTables() throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, l.wr, l.strict, m.sql
        FROM sqlite_schema AS m JOIN pragma_table_list(m.name) AS l ON l.schema = 'main'
        WHERE m.type = 'table' AND l.type = 'table' AND m.name NOT GLOB 'sqlite_*'
        ORDER BY m.rowid
        """)
    for row in rows {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let name = String.fromDatabaseValue(values[0]) else { continue }
      if Self.toolTables.contains(name.lowercased()) { continue }
      var table = Table(
        name: name, isWithoutRowID: Bool.fromDatabaseValue(values[1]) ?? false,
        isStrict: Bool.fromDatabaseValue(values[2]) ?? false,
        text: String.fromDatabaseValue(values[3]).flatMap { CreateTableText($0) })
      table.columns = try columns(of: name)
      table.foreignKeys = try foreignKeys(of: name)
      table.indexes = try indexes(of: name)
      tables.append(table)
    }
  }

  private func columns(of table: String) throws -> [Column] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)
        """, arguments: [table])
    return rows.compactMap { row in
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let name = String.fromDatabaseValue(values[0]) else { return nil }
      let hidden = Int.fromDatabaseValue(values[5]) ?? 0
      return Column(
        name: name, type: String.fromDatabaseValue(values[1]) ?? "",
        isRequired: Bool.fromDatabaseValue(values[2]) ?? false,
        defaultValue: String.fromDatabaseValue(values[3]),
        keyPosition: Int.fromDatabaseValue(values[4]) ?? 0, isGenerated: hidden >= 2,
        isStored: hidden == 3)
    }
  }

  private func foreignKeys(of table: String) throws -> [ForeignKey] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT id, "table", "from", "to", on_update, on_delete FROM pragma_foreign_key_list(?)
        ORDER BY id DESC, seq
        """, arguments: [table])
    var keys: [ForeignKey] = []
    var last: Int?
    for row in rows {
      let values: [DatabaseValue] = Array(row.databaseValues)
      let text = values.map { String.fromDatabaseValue($0) ?? "" }
      let id = Int.fromDatabaseValue(values[0])
      if id != last {
        keys.append(
          ForeignKey(table: text[1], columns: [], onUpdate: text[4], onDelete: text[5]))
        last = id
      }
      keys[keys.count - 1].columns.append((own: text[2], other: text[3]))
    }
    return keys
  }

  /// The indexes over nothing but columns, smaller values first, of all rows.
  private func indexes(of table: String) throws -> [Index] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT l.name, l."unique", x.name, x."desc"
        FROM pragma_index_list(?) AS l JOIN pragma_index_xinfo(l.name) AS x
        WHERE l.origin IN ('c', 'u') AND l.partial = 0 AND x.key = 1 ORDER BY l.seq DESC, x.seqno
        """, arguments: [table])
    var indexes: [(name: String, index: Index, isPlain: Bool)] = []
    for row in rows {
      let values: [DatabaseValue] = Array(row.databaseValues)
      let name = String.fromDatabaseValue(values[0]) ?? ""
      if indexes.last?.name != name {
        let isUnique = Bool.fromDatabaseValue(values[1]) ?? false
        indexes.append((name, Index(columns: [], isUnique: isUnique), true))
      }
      guard let column = String.fromDatabaseValue(values[2]),
        Int.fromDatabaseValue(values[3]) == 0
      else {
        indexes[indexes.count - 1].isPlain = false
        continue
      }
      indexes[indexes.count - 1].index.columns.append(column)
    }
    return indexes.filter(\.isPlain).map(\.index)
  }

  private mutating func nameClasses() {
    var taken: Set<String> = []
    let links = Set(tables.indices.filter { isTableOfLinks(tables[$0]) })
    for index in tables.indices where !links.contains(index) {
      let table = tables[index]
      guard !table.keyColumns.isEmpty else {
        notes.append("table \(table.name) has no primary key, and no model: it stays as it is")
        continue
      }
      if let column = table.keyColumns.first(where: \.isGenerated) {
        notes.append(
          "table \(table.name) has no model: \(column.name) of its primary key is generated")
        continue
      }
      let name = PlainName.free(PlainName.typeName(table.name), among: taken)
      taken.insert(name)
      tables[index].entity = name
    }
  }

  /// Two foreign keys that are the primary key together, and nothing else.
  private func isTableOfLinks(_ table: Table) -> Bool {
    guard table.columns.count == 2, table.keyColumns.count == 2, table.foreignKeys.count == 2,
      table.foreignKeys.allSatisfy({ $0.columns.count == 1 })
    else { return false }
    let own = Set(table.foreignKeys.map { $0.columns[0].own.lowercased() })
    return own.count == 2
      && table.foreignKeys.allSatisfy { key in
        guard let other = self.table(key.table), let column = other.keyColumns.first,
          other.keyColumns.count == 1, other.name != table.name
        else { return false }
        return key.columns[0].other.isEmpty
          || key.columns[0].other.lowercased() == column.name.lowercased()
      }
  }

  private func table(_ name: String) -> Table? {
    tables.first { $0.name.lowercased() == name.lowercased() }
  }

  // MARK: Attributes

  private mutating func entity(of table: Table) throws -> Schema.Entity {
    let name = table.entity ?? table.name
    var entity = Schema.Entity(name: name)
    var mapping = Schema.Table()
    if !PlainName.isUsual(table.name, of: name) { mapping.name = table.name }
    mapping.isStrict = table.isStrict
    mapping.isWithoutRowID = table.isWithoutRowID
    entity.table = mapping
    let references = Set(
      references(of: table).flatMap { $0.key.columns.map { $0.own.lowercased() } })
    var taken: Set<String> = []
    for column in table.columns where !references.contains(column.name.lowercased()) {
      let property = PlainName.free(PlainName.propertyName(column.name), among: taken)
      taken.insert(property)
      if let attribute = try attribute(property, column, of: table) {
        entity.attributes.append(attribute)
      }
    }
    return entity
  }

  private mutating func attribute(
    _ name: String, _ column: Column, of table: Table
  ) throws -> Schema.Attribute? {
    let sample = column.isGenerated ? nil : try sample(column.name, of: table.name)
    let (type, encoding) = Self.attributeType(column.type, sample)
    var mapping = Schema.Column()
    if !PlainName.isUsual(column.name, of: name) { mapping.names = [column.name] }
    guard !column.type.contains(where: { ";'-/".contains($0) }) else {
      notes.append("\(table.name).\(column.name) is of type '\(column.type)': no model has it")
      return nil
    }
    if encoding != .standard(for: type) { mapping.encoding = encoding }
    let usual = encoding?.columnType ?? type.columnType(isStrict: table.isStrict)
    if usual != column.type.uppercased() { mapping.type = column.type }
    let isKey = column.keyPosition > 0
    if isKey {
      let isFoundAlone =
        name == "id" && table.keyColumns.count == 1
        && (type.isInteger || type == .uuid || type == .string)
      mapping.isPrimaryKey = !isFoundAlone
      mapping.isAutoincrement =
        definition(of: column, in: table)?.words.contains("AUTOINCREMENT") ?? false
    }
    mapping.collation = collation(of: column, in: table)
    if column.isGenerated {
      guard let expression = expression(of: column, in: table) else {
        notes.append("\(table.name).\(column.name) is computed by SQLite, and has no property")
        return nil
      }
      mapping.generated = expression
      mapping.isStored = column.isStored
    }
    var attribute = Schema.Attribute(
      // An initializer has nothing to give a property that is only read.
      name: name, type: type, isOptional: column.isGenerated || !column.isRequired && !isKey)
    if let text = column.defaultValue, !column.isGenerated, text.uppercased() != "NULL" {
      if encoding == nil, let value = Self.literal(text, as: type) {
        attribute.storedDefault = value
      } else {
        mapping.defaultValue = Self.isBareDefault(text) ? text : "(\(text))"
      }
    }
    if mapping != Schema.Column() { attribute.column = mapping }
    return attribute
  }

  /// The column as it stands in `CREATE TABLE`.
  private func definition(of column: Column, in table: Table) -> CreateTableText.Item? {
    table.text?.items.first { $0.column?.lowercased() == column.name.lowercased() }
  }

  private func collation(of column: Column, in table: Table) -> String? {
    guard let clause = definition(of: column, in: table)?.clauses("COLLATE").first else {
      return nil
    }
    let name = SQLToken.tokens(of: clause).last { $0.kind == .word || $0.kind == .quoted }?.name
    return name?.uppercased() == "BINARY" ? nil : name
  }

  /// What a generated column is made of.
  private func expression(of column: Column, in table: Table) -> String? {
    guard let clause = definition(of: column, in: table)?.clauses("AS").first,
      let open = clause.firstIndex(of: "("), let close = clause.lastIndex(of: ")"), open < close
    else { return nil }
    return String(clause[clause.index(after: open)..<close])
  }

  /// The first value that is found near the beginning of a table.
  private func sample(_ column: String, of table: String) throws -> DatabaseValue? {
    let name = PlainName.sql(column)
    return try DatabaseValue.fetchOne(
      db,
      sql: """
        SELECT iif(typeof(\(name)) IN ('text', 'blob'), substr(\(name), 1, 64), \(name))
        FROM (SELECT \(name) FROM \(PlainName.sql(table)) LIMIT 100)
        WHERE \(name) IS NOT NULL LIMIT 1
        """)
  }

  /// What a column's values are, by its declared type and one of them.
  private static func attributeType(
    _ declared: String, _ sample: DatabaseValue?
  ) -> (Schema.AttributeType, Schema.Column.Encoding?) {
    let name = declared.uppercased()
    switch name.prefix(while: { $0 != "(" && $0 != " " }) {
    case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ":
      return dateType(sample)
    case "BOOL", "BOOLEAN": return (.bool, nil)
    case "UUID", "GUID", "UNIQUEIDENTIFIER", "CHAR", "NCHAR":
      if let encoding = uuidEncoding(sample) { return (.uuid, encoding) }
      if case .blob = sample?.storage { return (.data, nil) }
      return (.string, nil)
    // A day, or a time of day, is no `Date`.
    case "DATE", "TIME", "JSON": return (.string, nil)
    case "DECIMAL", "NUMERIC", "MONEY", "NUMBER": return (.decimal, nil)
    default: break
    }
    switch ColumnAffinity(declared) {
    case .integer: return (.int64, nil)
    case .text: return (.string, nil)
    case .real: return (.double, nil)
    case .blob, .numeric:
      switch sample?.storage {
      case .int64: return (.int64, nil)
      case .double: return (.double, nil)
      case .string: return (.string, nil)
      case .blob: return (.data, nil)
      case .null, nil: return ColumnAffinity(declared) == .blob ? (.data, nil) : (.decimal, nil)
      }
    }
  }

  private static func dateType(
    _ sample: DatabaseValue?
  ) -> (Schema.AttributeType, Schema.Column.Encoding?) {
    switch sample?.storage {
    case .string(let text):
      // "2024-01-02 03:04:05"
      guard text.utf8.count >= 16, text.first?.isNumber == true else { return (.string, nil) }
      return (.date, text.contains("T") ? .iso8601 : .dateTime)
    case .int64(let number):
      if (100_000_000..<100_000_000_000).contains(number) { return (.date, .unixSeconds) }
      return (100_000_000_000..<100_000_000_000_000).contains(number)
        ? (.date, .unixMilliseconds) : (.int64, nil)
    case .double(let number):
      if (2_400_000..<2_500_000).contains(number) { return (.date, .julianDay) }
      return (100_000_000..<100_000_000_000).contains(number)
        ? (.date, .unixSeconds) : (.double, nil)
    case .blob: return (.data, nil)
    case .null, nil: return (.date, .dateTime)
    }
  }

  private static func uuidEncoding(_ sample: DatabaseValue?) -> Schema.Column.Encoding? {
    switch sample?.storage {
    case .blob(let data): return data.count == 16 ? .uuidBytes : nil
    case .string(let text):
      let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
      guard digits.count == 32, text.allSatisfy({ $0.isHexDigit || $0 == "-" }) else { return nil }
      if text.utf8.count == 32 { return .uuidHexadecimal }
      guard text.utf8.count == 36 else { return nil }
      return text.contains(where: \.isUppercase) ? .uuidUppercaseText : .uuidText
    default: return nil
    }
  }

  /// A default that is a value of the type; `nil` for an expression, and for a value of another one.
  private static func literal(_ text: String, as type: Schema.AttributeType) -> AttributeValue? {
    switch type {
    case .bool:
      switch text.uppercased() {
      case "1", "TRUE": return .integer(1)
      case "0", "FALSE": return .integer(0)
      default: return nil
      }
    case .int64: return Int64(text).map { .integer($0) }
    case .double: return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
    case .decimal: return Int64(text).map { .integer($0) }
    case .string:
      guard text.count >= 2, text.first == "'", text.last == "'" else { return nil }
      let parts = text.dropFirst().dropLast()
        .split(separator: "''", omittingEmptySubsequences: false)
      return parts.contains { $0.contains("'") } ? nil : .text(parts.joined(separator: "'"))
    default: return nil
    }
  }

  /// Whether `DEFAULT` takes the text without parentheses.
  private static func isBareDefault(_ text: String) -> Bool {
    let isText =
      text.count >= 2 && text.first == "'" && text.last == "'"
      && !text.dropFirst().dropLast().replacing("''", with: "").contains("'")
    let words = ["CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP", "TRUE", "FALSE"]
    return isText || Double(text) != nil || words.contains(text.uppercased())
  }

  // MARK: Relationships

  /// A foreign key that a relationship can stand for.
  private struct Reference {
    var key: ForeignKey
    var destination: Table
  }

  /// The foreign keys that become relationships: to the whole primary key of a table with a model. A column can be of one.
  private func references(of table: Table) -> [Reference] {
    guard table.entity != nil else { return [] }
    var used: Set<String> = []
    return table.foreignKeys.compactMap { key in
      guard let destination = self.table(key.table), destination.entity != nil,
        key.columns.count == destination.keyColumns.count
      else { return nil }
      var ordered: [(own: String, other: String)] = []
      // A model has the columns of a key in the order of its properties.
      for column in destination.columns where column.keyPosition > 0 {
        // Where none is named, they are those of the key, in its own order.
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
      // A key that is itself made of references has another order of columns in a model.
      guard destination.keyColumns.count == 1 || destination.foreignKeys.isEmpty else { return nil }
      used.formUnion(names)
      return Reference(
        key: ForeignKey(
          table: destination.name, columns: ordered, onUpdate: key.onUpdate,
          onDelete: key.onDelete), destination: destination)
    }
  }

  private mutating func addRelationships(of table: Table) {
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
    let name = freeName(
      columns.count == 1
        ? Self.relationshipName(columns[0].own, referringTo: columns[0].other)
        : PlainName.lowercasedFirst(destination), of: entity)
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
    // The side that has many: named after the class at the other end, and after the relationship where there are several.
    let plural = PlainName.plural(PlainName.lowercasedFirst(entity))
    let isTaken = property(plural, of: destination) || destination == entity && plural == name
    let inverse =
      isTaken
      ? freeName("\(plural)By\(PlainName.uppercasedFirst(name))", of: destination) : plural
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

  /// "folder_id" and "folderId" lead to "folder".
  private static func relationshipName(_ column: String, referringTo other: String) -> String {
    for suffix in ["_\(other)", "_id", PlainName.uppercasedFirst(other), "Id", "ID"]
    where column.hasSuffix(suffix) && column.count > suffix.count {
      return PlainName.propertyName(String(column.dropLast(suffix.count)))
    }
    return PlainName.propertyName(column)
  }

  private mutating func addLinks(of table: Table) {
    let keys = table.keyColumns.compactMap { column in
      table.foreignKeys.first { $0.columns[0].own.lowercased() == column.name.lowercased() }
    }
    guard keys.count == 2, let first = self.table(keys[0].table)?.entity,
      let second = self.table(keys[1].table)?.entity
    else {
      notes.append("table \(table.name) links tables without a model: it stays as it is")
      return
    }
    let name = freeName(PlainName.plural(PlainName.lowercasedFirst(second)), of: first)
    let back = PlainName.plural(PlainName.lowercasedFirst(first))
    let inverse = freeName(first == second && back == name ? "\(back)2" : back, of: second)
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

  private func property(_ name: String, of entity: String) -> Bool {
    guard let entity = entities.first(where: { $0.name == entity }) else { return false }
    return entity.attributes.contains { $0.name == name }
      || entity.relationships.contains { $0.name == name }
  }

  private func freeName(_ name: String, of entity: String) -> String {
    guard let entity = entities.first(where: { $0.name == entity }) else { return name }
    return PlainName.free(
      name, among: Set(entity.attributes.map(\.name) + entity.relationships.map(\.name)))
  }

  private mutating func append(_ relationship: Schema.Relationship, to entity: String) {
    guard let index = entities.firstIndex(where: { $0.name == entity }) else { return }
    entities[index].relationships.append(relationship)
  }

  // MARK: Indexes

  private mutating func addIndexes(of table: Table) {
    guard let position = entities.firstIndex(where: { $0.name == table.entity }) else { return }
    var names: [String: String] = [:]
    for attribute in entities[position].attributes {
      names[attribute.columnName.lowercased()] = attribute.name
    }
    for index in table.indexes {
      let group = index.columns.compactMap { names[$0.lowercased()] }
      // Those over a foreign key no property stands for alone.
      guard group.count == index.columns.count else { continue }
      if index.isUnique {
        if !entities[position].uniquenessConstraints.contains(group) {
          entities[position].uniquenessConstraints.append(group)
        }
      } else if !entities[position].indices.contains(group) {
        entities[position].indices.append(group)
      }
    }
  }

  // MARK: The rest

  /// What stays as it is, by its kind.
  private mutating func noteTheRest() throws {
    let kinds = [
      ("views", "type = 'view'"), ("triggers", "type = 'trigger'"),
      ("virtual tables", "type = 'table' AND rootpage = 0"),
    ]
    for (kind, condition) in kinds {
      let names = try String.fetchAll(
        db,
        sql: """
          SELECT substr(name, 1, 100) FROM sqlite_schema WHERE \(condition) ORDER BY name LIMIT 11
          """)
      guard !names.isEmpty else { continue }
      let list = names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", …" : "")
      notes.append("no model speaks of these \(kind), which survive a migration: \(list)")
    }
    if !toolVersions.isEmpty {
      let list = toolVersions.map(\.source).joined(separator: ", ")
      notes.append(
        "a migration tool's own table says where the store is: a plan says which of its versions that is by importedVersions, as in [\(list): Schema.Version(1, 0, 0)]"
      )
    }
  }
}

extension ToolVersion {
  /// As a plan writes it.
  fileprivate var source: String {
    func quoted(_ text: some StringProtocol) -> String { "\"\(text)\"" }
    switch tool {
    case .alembic: return ".alembic(\(quoted(name)))"
    case .django:
      let dot = name.firstIndex(of: ".") ?? name.endIndex
      return ".django(app: \(quoted(name[..<dot])), \(quoted(name[dot...].dropFirst())))"
    case .golangMigrate: return ".golangMigrate(\(name))"
    case .grdb: return ".grdb(\(quoted(name)))"
    case .room: return ".room(identityHash: \(quoted(name)))"
    }
  }
}
