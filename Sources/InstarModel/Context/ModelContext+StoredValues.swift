package import InstarSchema
import InstarStore

/// Stored values that the type of a property does not read.
package struct UnreadableValues {
  package let count: Int
  /// The keys of the first rows.
  package let keys: [Int64]
  /// Why the first one is not read.
  package let error: InstarError
}

extension ModelContext {
  private static let shownCount = 5

  /// Reads all stored values of a property, and makes no models.
  ///
  /// - Returns: those that its type does not read; `nil` where it reads all.
  /// - Throws: an error of SQLite, or of reading a file with a value.
  package func unreadableValues(
    of property: String, in name: String
  ) throws -> UnreadableValues? {
    guard let entity = stores.entity(named: name),
      let slot = entity.descriptor.properties.firstIndex(where: { $0.name == property })
    else { return nil }
    let reader = RowReader(entity, slots: [slot], family: [])
    var conditions = [entity.layout.rowCondition].compactMap(\.self)
    // A row without any value is another error, and found elsewhere.
    if case .attribute(let column, _) = entity.slots[slot] {
      conditions.append("\(column.name) IS NOT NULL")
    }
    let rows = conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))"
    var (count, keys) = (0, [Int64]())
    var first: InstarError?
    try forEachUnreadable(
      slot, of: entity,
      "SELECT \(reader.columns()) FROM \(entity.layout.table) AS t0\(rows)", reader
    ) { key, error in
      count += 1
      if keys.count < Self.shownCount { keys.append(key) }
      first = first ?? error
    }
    return first.map { UnreadableValues(count: count, keys: keys, error: $0) }
  }
}
