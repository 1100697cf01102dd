import InstarStore

/// What a statement selects of the rows of an entity, and what each row is read as.
///
/// Rows of the entities below it are found by the same statement. Their own columns are then selected too, and the entity
/// number says which of them count: a fetch of a superclass gives instances of the classes that its rows are of.
struct RowReader: Sendable {
  /// What is read of a row of one entity.
  struct Part: Sendable {
    let entity: ModelEntity
    let slots: [Int]
    /// The first column of each of `slots`.
    let firstColumns: [Int32]
  }

  /// The store that has the rows.
  let store: ModelStore
  /// As they are selected: the key, what the slots are read from, and the entity number where there are several parts.
  private let columns: [RowExpression]
  /// The entity's own, then those of the entities below it, whose numbers follow its own without a gap (Core Data layout,
  /// section 2.2).
  private let parts: [Part]
  /// Reads the row with a key.
  let rowStatement: String

  /// - Parameters:
  ///   - slots: those to be read; all, where none are given.
  ///   - family: the entity and those below it.
  init(_ entity: ModelEntity, slots: [Int]? = nil, family: [ModelEntity]) {
    store = entity.store
    let below = family.filter { $0 !== entity }.sorted { $0.layout.number < $1.layout.number }
    var columns = [entity.layout.key.reading]
    var positions: [[RowExpression]: Int32] = [:]
    parts = ([entity] + below).map { entity in
      let slots = slots ?? entity.columnSlots
      let firstColumns = slots.map { slot -> Int32 in
        let readings = entity.readingsBySlot[slot]
        // Inherited properties have one column for all.
        if let known = positions[readings] { return known }
        let first = Int32(columns.count)
        columns += readings
        positions[readings] = first
        return first
      }
      return Part(entity: entity, slots: slots, firstColumns: firstColumns)
    }
    if parts.count > 1, let entityColumn = entity.layout.entityColumn {
      columns.append(RowExpression(column: entityColumn))
    }
    self.columns = columns
    rowStatement =
      "SELECT \(columns.map { $0.sql("t0") }.joined(separator: ", ")) FROM \(entity.layout.table) AS t0 "
      + "WHERE \(entity.layout.key.condition("t0", equals: "?1"))"
  }

  /// The number of the first column behind those of the reader.
  var endColumn: Int32 { Int32(columns.count) }

  /// Whether rows of several entities are found.
  var isPolymorphic: Bool { parts.count > 1 }

  func columns(alias: String = "t0") -> String {
    columns.map { $0.sql(alias) }.joined(separator: ", ")
  }

  /// How the current row is read.
  func part(of statement: SQLStatement) -> Part {
    guard isPolymorphic else { return parts[0] }
    let offset = Int(statement.integer(at: endColumn - 1)) - parts[0].entity.layout.number
    return parts.indices.contains(offset) ? parts[offset] : parts[0]
  }
}
