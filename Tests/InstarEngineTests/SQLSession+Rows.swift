import InstarSchema
import InstarStore

extension SQLSession {
  /// Five rows. Each optional property has a value in every other one.
  func insertRows(of entity: EntityLayout, _ format: StoreFormat) throws {
    for key in 1...5 {
      var values: [(String, String)] = []
      if format == .coredata {
        values = [("Z_PK", "\(key)"), ("Z_ENT", "\(entity.number)"), ("Z_OPT", "1")]
      }
      for (place, attribute) in entity.attributes.enumerated() {
        let isEmpty = attribute.attribute.isOptional && (key + place) % 2 == 0
        let text = attribute.attribute.type == .string ? "'text \(key) \(place)'" : "\(key)"
        values.append((attribute.column.name, isEmpty ? "NULL" : text))
      }
      for relationship in entity.relationships {
        guard case .column(let link) = relationship.location else { continue }
        for column in link.columns { values.append((column, key % 3 == 0 ? "NULL" : "\(key)")) }
      }
      try run(
        "INSERT INTO \(entity.table) (\(values.map(\.0).joined(separator: ", "))) "
          + "VALUES (\(values.map(\.1).joined(separator: ", ")))")
    }
  }
}
