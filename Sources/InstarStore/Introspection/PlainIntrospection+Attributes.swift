import GRDB
import InstarSchema

// The columns of a table as attributes.

extension PlainIntrospection {
  /// The entity of a table, without relationships.
  mutating func entity(of table: Table, named name: String) throws -> Schema.Entity {
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
    let sample = { column.isGenerated ? nil : try self.sample(column.name, of: table.name) }
    let (type, encoding) = try Self.attributeType(column.type, sample)
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
        column.definition?.words.contains("AUTOINCREMENT") ?? false
    }
    mapping.collation = collation(of: column)
    if column.isGenerated {
      guard let expression = expression(of: column) else {
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

  private func collation(of column: Column) -> String? {
    guard let clause = column.definition?.clauses("COLLATE").first else {
      return nil
    }
    let name = SQLToken.tokens(of: clause).last { $0.kind == .word || $0.kind == .quoted }?.name
    return name?.uppercased() == "BINARY" ? nil : name
  }

  /// What a generated column is made of.
  private func expression(of column: Column) -> String? {
    guard let clause = column.definition?.clauses("AS").first,
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

  /// What a column's values are, by its declared type, and one of them where that does not tell.
  private static func attributeType(
    _ declared: String, _ sample: () throws -> DatabaseValue?
  ) throws -> (Schema.AttributeType, Schema.Column.Encoding?) {
    let name = declared.uppercased()
    switch name.prefix(while: { $0 != "(" && $0 != " " }) {
    case "DATETIME", "TIMESTAMP", "TIMESTAMPTZ":
      return dateType(try sample())
    case "BOOL", "BOOLEAN": return (.bool, nil)
    case "UUID", "GUID", "UNIQUEIDENTIFIER", "CHAR", "NCHAR":
      let sample = try sample()
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
      switch try sample()?.storage {
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
}
