import InstarSchema

/// Statements that count what rows of an entity hold, in either format.
extension EntityLayout {
  /// Counts the rows of the entity; with a property only those in which it has no value.
  ///
  /// - Returns: `nil` for a property without a column in the entity's own table.
  public func rowCountStatement(without property: String? = nil) -> String? {
    var conditions = [rowCondition].compactMap(\.self)
    if let property {
      guard let columns = columns(of: property) else { return nil }
      conditions.append("(\(columns.map { "\($0) IS NULL" }.joined(separator: " OR ")))")
    }
    let condition = conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))"
    return "SELECT count(*) FROM \(table)\(condition)"
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
