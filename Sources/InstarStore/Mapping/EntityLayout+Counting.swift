package import GRDB
package import InstarSchema

/// What rows of an entity hold, in either format.
extension EntityLayout {
  /// Returns the rows of the entity; with a property only those in which it has no value.
  ///
  /// - Parameter excludesSubentities: Whether to leave out the rows of its subentities.
  /// - Returns: `nil` for none, and for a property without a column in the entity's own table.
  package func rows(
    _ db: Database, without property: String? = nil, excludesSubentities: Bool = false
  ) throws -> AffectedRows? {
    var conditions = excludesSubentities ? [ownRowCondition] : []
    if let property {
      let parts = compositeColumns(of: property)
      guard let columns = parts ?? columns(of: property) else { return nil }
      let isMissing = columns.map { "\($0) IS NULL" }
      conditions += ["(\(isMissing.joined(separator: parts == nil ? " OR " : " AND ")))"]
    }
    return try KeyedRows(of: self).affected(db, where: conditions)
  }

  /// The columns of a property that has several; `nil` for every other property.
  private func compositeColumns(of property: String) -> [String]? {
    let columns = attributes.filter {
      $0.attribute.isPartOfComposite && $0.attribute.compositeName == property
    }
    return columns.isEmpty ? nil : columns.map(\.column.name)
  }

  private func columns(of property: String) -> [String]? {
    if let attribute = attributes.first(where: { $0.attribute.name == property }) {
      return [attribute.column.name]
    }
    guard let storage = relationships.first(where: { $0.relationship.name == property }),
      case .column(let reference) = storage.location
    else { return nil }
    return reference.columns
  }
}

extension EntityLayout.AttributeColumn {
  /// The condition on rows whose value has a storage class that no reader of the attribute's type reads; `nil` if
  /// SQLite computes the value. SQL can write such values: a column of numbers takes 'abc'.
  package var wrongClassCondition: String? {
    if column.isGenerated { return nil }
    // SQLite looks up each value of an IN list in a tree: three times slower than comparisons, on every row.
    let others = (readClasses + ["null"]).map { "typeof(\(column.name)) <> '\($0)'" }
    return "(\(others.joined(separator: " AND ")))"
  }

  private var readClasses: [String] {
    switch column.encoding {
    case .iso8601, .dateTime, .unixSeconds, .unixMilliseconds, .julianDay:
      return ["text", "integer", "real"]
    case .uuidText, .uuidUppercaseText, .uuidHexadecimal, .uuidBytes, .jsonText, .jsonBytes:
      return ["text", "blob"]
    case nil: break
    }
    return switch attribute.type {
    case .bool, .int16, .int32, .int64: ["integer"]
    case .double, .float, .date: ["integer", "real"]
    case .decimal: ["integer", "real", "text"]
    case .string, .url: ["text"]
    case .data, .uuid: ["blob"]
    case .codable: ["blob", "text"]
    }
  }
}
