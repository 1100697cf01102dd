import InstarStore

/// The columns that a statement selects for an entity, and how each row is read.
///
/// The same statement finds the rows of subentities. It then selects their columns too, and the entity number of a row
/// selects the columns to read. So a fetch of a superclass returns instances of its subclasses.
struct RowReader: Sendable {
  /// How a row of one entity is read. Made once, so that a row costs no more than its values.
  final class Part: Sendable {
    let entity: ModelEntity
    let columns: [Column]

    fileprivate init(_ entity: ModelEntity, _ slots: [Int], _ firstColumns: [Int32]) {
      self.entity = entity
      columns = zip(slots, firstColumns).compactMap { slot, first in
        Column.Kind(slot, entity).map { Column(slot: slot, first: first, kind: $0) }
      }
    }
  }

  /// A slot, and the first of the columns that it is read from.
  struct Column: Sendable {
    let slot: Int
    let first: Int32
    let kind: Kind

    enum Kind: Sendable {
      /// `isChecked` where a value of the right storage class may still not be of the slot's type.
      case attribute(isOptional: Bool, isChecked: Bool)
      case externalAttribute(isOptional: Bool)
      case composite(count: Int32, isOptional: Bool)
      case toOne
    }
  }

  /// The slots of a row without its values. Sendable, because they hold neither a model nor a list of members.
  struct EmptySlots: @unchecked Sendable {
    let slots: ContiguousArray<Slot>
  }

  /// The store that has the rows.
  let store: ModelStore
  /// In the order of the SELECT: the key, the readings of the slots, and the entity number if there are several parts.
  private let columns: [RowExpression]
  /// The entity first, then its subentities by number, which follow without a gap (Core Data layout, section 2.2).
  private let parts: [Part]
  /// The SQL that selects the row with a key.
  let rowStatement: String

  /// - Parameters:
  ///   - slots: The slots to read; `nil` for all.
  ///   - family: The entity and its subentities.
  init(_ entity: ModelEntity, slots: [Int]? = nil, family: [ModelEntity]) {
    store = entity.store
    let below = family.filter { $0 !== entity }.sorted { $0.layout.number < $1.layout.number }
    var columns = [entity.layout.key.reading]
    var positions: [[RowExpression]: Int32] = [:]
    parts = ([entity] + below).map { entity in
      let slots = slots ?? entity.columnSlots
      let firstColumns = slots.map { slot -> Int32 in
        let readings = entity.readingsBySlot[slot]
        // All entities share the columns of inherited properties.
        if let known = positions[readings] { return known }
        let first = Int32(columns.count)
        columns += readings
        positions[readings] = first
        return first
      }
      return Part(entity, slots, firstColumns)
    }
    if parts.count > 1, let entityColumn = entity.layout.entityColumn {
      columns.append(RowExpression(column: entityColumn))
    }
    self.columns = columns
    rowStatement =
      "SELECT \(columns.map { $0.sql("t0") }.joined(separator: ", ")) FROM \(entity.layout.table) AS t0 "
      + "WHERE \(entity.layout.key.condition("t0", equals: "?1"))"
  }

  /// The number of the first column after those of the reader.
  var endColumn: Int32 { Int32(columns.count) }

  /// Whether the statement finds rows of several entities.
  var isPolymorphic: Bool { parts.count > 1 }

  func columns(alias: String = "t0") -> String {
    columns.map { $0.sql(alias) }.joined(separator: ", ")
  }

  /// Returns how to read the current row.
  func part(of statement: SQLStatement) -> Part {
    guard isPolymorphic else { return parts[0] }
    let offset = Int(statement.integer(at: endColumn - 1)) - parts[0].entity.layout.number
    return parts.indices.contains(offset) ? parts[offset] : parts[0]
  }
}

extension RowReader.Column.Kind {
  fileprivate init?(_ slot: Int, _ entity: ModelEntity) {
    switch entity.slots[slot] {
    case .attribute(let column, let isOptional):
      self =
        column.mayBeExternal
        ? .externalAttribute(isOptional: isOptional)
        : .attribute(isOptional: isOptional, isChecked: entity.checkedSlots[slot])
    case .composite(let columns, let isOptional):
      self = .composite(count: Int32(columns.count), isOptional: isOptional)
    case .toOne: self = .toOne
    case .toMany, .none: return nil
    }
  }
}
