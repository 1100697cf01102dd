import InstarSchema

// The columns of a table as attributes.

extension PlainIntrospection {
  /// The entity of a table, without relationships.
  mutating func entity(of table: Table, named name: String) -> Schema.Entity {
    var entity = Schema.Entity(name: name)
    var mapping = Schema.Table()
    if !SQLIdentifier.isUsual(table.name, of: name) { mapping.name = table.name }
    mapping.isStrict = table.isStrict
    mapping.isWithoutRowID = table.isWithoutRowID
    entity.table = mapping
    let references = Set(
      references(of: table).flatMap { $0.key.columns.map { $0.own.lowercased() } })
    let columns = table.columns.filter { !references.contains($0.name.lowercased()) }
    var names = FreeNames()
    for column in columns {
      let property = names.take(SQLIdentifier.propertyName(column.name))
      if let attribute = attribute(property, column, of: table) {
        entity.attributes.append(attribute)
      }
    }
    self.names[name] = names
    return entity
  }

  private mutating func attribute(
    _ name: String, _ column: Column, of table: Table
  ) -> Schema.Attribute? {
    let (type, encoding) = column.holds.type(seen: column.sample)
    var mapping = Schema.Column()
    if !SQLIdentifier.isUsual(column.name, of: name) { mapping.names = [column.name] }
    guard !column.type.contains(where: { ";'-/".contains($0) }) else {
      notes.append(
        "\(table.name).\(column.name) has no property, because no model can declare its type '\(column.type)'"
      )
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
        notes.append(
          "\(table.name).\(column.name) has no property, because its generating expression cannot be read"
        )
        return nil
      }
      mapping.generated = expression
      mapping.isStored = column.isStored
    }
    var attribute = Schema.Attribute(
      // A property that is only read has no value in an initializer.
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

  /// The expression of a generated column.
  private func expression(of column: Column) -> String? {
    guard let clause = column.definition?.clauses("AS").first,
      let open = clause.firstIndex(of: "("), let close = clause.lastIndex(of: ")"), open < close
    else { return nil }
    return String(clause[clause.index(after: open)..<close])
  }

  /// Returns a default that is a value of the type; `nil` for an expression and for a value of another type.
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
