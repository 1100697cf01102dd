import InstarSchema
import InstarStore

/// The columns of a store for one slot of a model.
enum SlotStorage: Sendable {
  case attribute(column: StoredColumn, isOptional: Bool)
  /// A value with several columns.
  case composite(columns: [StoredColumn], isOptional: Bool)
  /// `numberColumn` has the number of the concrete entity at the other end; `nil` if the table has no such column.
  case toOne(ForeignKey, destination: String, isOptional: Bool, numberColumn: String?)
  case toMany(EntityLayout.RelationshipStorage)
  /// Kept in memory only.
  case none

  /// The storage of each property of a model, in the order of its slots.
  static func all(of descriptor: ModelDescriptor, in layout: EntityLayout) -> [SlotStorage] {
    let columns = layout.attributes.keyed(by: \.attribute.name)
    let relationships = layout.relationships.keyed(by: \.relationship.name)
    return descriptor.properties.map { property in
      if let attribute = columns[property.name] {
        return .attribute(column: attribute.column, isOptional: attribute.attribute.isOptional)
      }
      if let relationship = relationships[property.name] { return SlotStorage(relationship) }
      guard case .attribute(let kind) = property.kind, let leaves = kind.leaves else {
        return .none
      }
      let fields = leaves.compactMap { columns["\(property.name).\($0.name)"]?.column }
      return fields.count == leaves.count
        ? .composite(columns: fields, isOptional: kind.isOptional) : .none
    }
  }

  private init(_ relationship: EntityLayout.RelationshipStorage) {
    guard case .column(let reference) = relationship.location else {
      self = .toMany(relationship)
      return
    }
    self = .toOne(
      reference, destination: relationship.relationship.destination,
      isOptional: relationship.relationship.isOptional, numberColumn: relationship.entityColumn)
  }

  /// The columns that a save writes: none, one, one for each field of a composite, or those of a foreign key and then
  /// its number column.
  var columns: [StoredColumn] {
    switch self {
    case .attribute(let column, _): column.isGenerated ? [] : [column]
    case .composite(let columns, _): columns
    case .toOne(let reference, _, _, let numberColumn):
      (reference.columns + [numberColumn].compactMap { $0 }).map { StoredColumn(name: $0) }
    case .toMany, .none: []
    }
  }

  /// The expressions that the slot is read from: none, one, or one for each field of a composite.
  var readings: [RowExpression] {
    switch self {
    // A value in a file is read when the getter is called.
    case .attribute(let column, _):
      [column.mayBeExternal ? RowExpression(column: column.name) : column.reading]
    case .composite(let columns, _): columns.map(\.reading)
    case .toOne(let reference, _, _, _): [reference.reading]
    case .toMany, .none: []
    }
  }

  /// Whether a save binds the content of the slot as it is: not for a composite, a foreign key of other columns than
  /// the key, and one with a number column.
  var isBoundDirectly: Bool {
    switch self {
    case .attribute: true
    case .toOne(let reference, _, _, let numberColumn):
      reference.referredColumns == nil && numberColumn == nil
    case .composite, .toMany, .none: false
    }
  }

  var isToOne: Bool { if case .toOne = self { true } else { false } }
  var isToMany: Bool { if case .toMany = self { true } else { false } }
  /// Whether the slot has no column.
  var isInMemory: Bool { if case .none = self { true } else { false } }

  /// Whether large values of the slot are in files.
  var mayBeExternal: Bool {
    if case .attribute(let column, _) = self { column.mayBeExternal } else { false }
  }

  /// Whether the last of the columns holds the number of the entity at the other end.
  var hasNumberColumn: Bool {
    if case .toOne(_, _, _, _?) = self { true } else { false }
  }
}
