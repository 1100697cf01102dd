import InstarSchema

/// An attribute that triggers update: the number of rows in a to-many relationship, `count:(pages)`.
///
/// The triggers equal Core Data's (section 6.3), letter by letter as in one real store. No store with another
/// derivation is known; its triggers can be kept, not created.
public struct DerivedAttribute: Sendable, Hashable {
  /// The entity that has the attribute.
  public let entity: String
  /// The attribute's name.
  public let name: String
  private let table: String
  private let column: String
  /// The table of the rows that are counted.
  public let countedTable: String
  private let key: String

  /// Returns the derived attributes of a layout whose triggers are known.
  public static func all(in layout: CoreDataLayout) -> [DerivedAttribute] {
    layout.entities.flatMap { entity in
      entity.attributes.compactMap { DerivedAttribute($0, of: entity) }
    }
  }

  private init?(_ attribute: EntityLayout.AttributeColumn, of entity: EntityLayout) {
    guard let derivation = attribute.attribute.derivation, derivation.hasPrefix("count:("),
      derivation.hasSuffix(")")
    else { return nil }
    let path = String(derivation.dropFirst("count:(".count).dropLast())
    guard let counted = entity.relationships.first(where: { $0.relationship.name == path }),
      counted.relationship.inverseName != nil, case .foreignKey(let key) = counted.location,
      counted.destinationTable != entity.table
    else { return nil }
    self.entity = entity.name
    name = attribute.attribute.name
    table = entity.table
    column = attribute.column.name
    countedTable = counted.destinationTable
    self.key = key.list
  }

  /// The statements that create its triggers, in the order of a new store.
  public var triggerStatements: [String] {
    let parameter = "Z_DA_\(countedTable)_\(entity)_\(name)_PARAMETER"
    return [
      trigger("\(parameter)_INSERT", "INSERT", row: "NEW", value: "IFNULL(\(column), 0) + 1"),
      trigger(
        "\(parameter)_UPDATE_INCREMENT", "UPDATE OF \(key)", row: "NEW", value: "\(column) + 1"),
      trigger(
        "\(parameter)_UPDATE_DECREMENT", "UPDATE OF \(key)", row: "OLD", value: "\(column) - 1"),
      trigger("\(parameter)_DELETE", "DELETE", row: "OLD", value: "\(column) - 1"),
      "CREATE TRIGGER Z_DA_\(table)_\(entity)_\(name)_SOURCE_INSERT AFTER INSERT ON \(table) "
        + "FOR EACH ROW BEGIN UPDATE \(table) SET \(column) = "
        + "(SELECT IFNULL(COUNT(\(key)), 0) FROM \(countedTable) WHERE \(key) = NEW.Z_PK) "
        + "WHERE Z_PK = NEW.Z_PK; "
        + "SELECT NSCoreDataDATriggerInsertUpdatedAffectedObjectValue('\(table)', Z_ENT, Z_PK, "
        + "'\(name)', \(column)) FROM \(table) WHERE Z_PK = NEW.Z_PK; END",
    ]
  }

  private func trigger(_ name: String, _ event: String, row: String, value: String) -> String {
    "CREATE TRIGGER \(name) AFTER \(event) ON \(countedTable) FOR EACH ROW "
      + "WHEN (\(row).\(key) NOT NULL) BEGIN UPDATE \(table) SET \(column) = \(value) "
      + "WHERE Z_PK = \(row).\(key); "
      + "SELECT NSCoreDataDATriggerUpdatedAffectedObjectValue('\(table)', Z_ENT, Z_PK, "
      + "'\(self.name)', \(column)) FROM \(table) WHERE Z_PK = \(row).\(key); END"
  }

  /// Counts all rows, for an attribute that is new in a store, or whose counted rows were partly deleted.
  public var countStatement: String {
    "UPDATE \(table) SET \(column) = "
      + "(SELECT COUNT(*) FROM \(countedTable) AS c WHERE c.\(key) = \(table).Z_PK)"
  }
}
