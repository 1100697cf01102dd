import InstarSchema
import InstarStore

// New models with a unique value that a row has take that row.

extension ModelSave {
  /// The row of an inserted model.
  struct NewRow {
    let change: Change
    /// Whether the row exists, or is that of a new model that is written before.
    var isTaken: Bool
  }

  /// Returns new rows in an order in which, of the models that share a row, the one that was inserted into the context
  /// last is written last.
  func lastInsertedLast(_ new: [NewRow]) -> [NewRow] {
    var sharing: [Row: [Int]] = [:]
    for (position, new) in new.enumerated() {
      sharing[Row(new.change), default: []].append(position)
    }
    var ordered = new
    for positions in sharing.values where positions.count > 1 {
      let exists = positions.allSatisfy { new[$0].isTaken }
      let models = positions.map { new[$0].change }
        .sorted { $0.storage.position < $1.storage.position }
      for (index, position) in positions.enumerated() {
        ordered[position] = NewRow(change: models[index], isTaken: exists || index > 0)
      }
    }
    return ordered
  }

  /// The models that took a row of the store or of another new model, without those whose values another one replaces.
  func lastOfTakenRows(_ new: [NewRow]) -> [NewRow] {
    var rows: Set<Row> = []
    return new.reversed().filter { $0.isTaken && rows.insert(Row($0.change)).inserted }.reversed()
  }

  // MARK: Unique values

  struct UniqueValue: Hashable {
    /// The name of the unique group.
    let group: String
    let values: [Part]

    enum Part: Hashable {
      /// Not a text.
      case value(AttributeValue)
      /// The bytes of a text: SQLite compares these, but Swift ignores how an accented letter is composed.
      case text([UInt8])
      case row(Int64)
      /// A referenced model that has no key yet.
      case model(ObjectIdentifier)
    }
  }

  /// Returns the unique values of a model. SQLite does not compare a group with a missing value.
  func uniqueValues(
    of change: Change
  ) -> [(group: ModelEntity.UniqueGroup, value: UniqueValue)] {
    change.entity.uniqueGroups.compactMap { group in
      let values = zip(group.slots, group.collations).compactMap { slot, collation in
        Self.part(
          change.storage.slots[slot], change.entity.columnsBySlot[slot].first?.encoding, collation)
      }
      guard values.count == group.slots.count else { return nil }
      return (group: group, value: UniqueValue(group: group.name, values: values))
    }
  }

  private static func part(
    _ slot: Slot, _ encoding: Schema.Column.Encoding?, _ collation: String?
  ) -> UniqueValue.Part? {
    switch slot {
    case .key(let key): return .row(key)
    case .model(let model):
      let storage = model._modelStorage
      if storage.isDeleted { return nil }
      return storage.hasRow ? .row(storage.key) : .model(ObjectIdentifier(model))
    default: break
    }
    guard let value = slot.attributeValue.map({ encoding?.written($0) ?? $0 }) else { return nil }
    switch value {
    case .text(let text): return .text(compared(text, collation))
    // SQLite stores NULL.
    case .real(let real) where real.isNaN: return nil
    case .integer, .real, .blob: return .value(value)
    }
  }

  /// Returns what SQLite's collations compare of a text: NOCASE ignores the case of ASCII letters, RTRIM spaces at the
  /// end.
  private static func compared(_ text: String, _ collation: String?) -> [UInt8] {
    switch collation {
    case "NOCASE": return text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }
    case "RTRIM":
      let bytes = Array(text.utf8)
      let end = bytes.lastIndex { $0 != 32 }.map { $0 + 1 } ?? 0
      return Array(bytes[..<end])
    default: return Array(text.utf8)
    }
  }

  /// The rows with the unique values of new models: in the store, and those that the save writes.
  struct TakenRows {
    /// The rows with unique values of one model, each once, in the order of its groups.
    struct Found {
      /// The keys of rows in the store.
      var stored: [Int64] = []
      /// The keys of other new models.
      var new: [Int64] = []
      /// Whether a model of the save has one of the values.
      var isShared = false
    }

    private let session: SQLSession
    private let changed: [Change]
    private let deleted: [Change]
    /// The keys of the models of the save by their values.
    private var keys: [UniqueValue: Int64] = [:]
    /// The values of the models of the save by their rows, where a row may have several.
    private var values: [Row: [UniqueValue]] = [:]
    /// The rows of the store whose values a new model replaces, except their keys.
    private var overwritten: Set<Row> = []
    /// The rows of the store that are deleted for a new model.
    private var merged: Set<Row> = []
    /// The rows of new models, where a model may have values of several rows.
    private var new: Set<Row> = []
    /// The changed slots of rows by table and key, `nil` of rows that are deleted later; `nil` until it is needed.
    private var changes: [String: [Int64: SlotSet?]]?
    /// Whether a table had rows before the new ones.
    private var haveRows: [String: Bool] = [:]

    init(changed: [Change], deleted: [Change], _ session: SQLSession) {
      self.changed = changed
      self.deleted = deleted
      self.session = session
    }

    /// Notes the values that the row of a model gets.
    ///
    /// - Parameter isTaken: Whether it is the row of another model; `nil` for a changed row.
    mutating func note(
      _ pairs: [(group: ModelEntity.UniqueGroup, value: UniqueValue)], of change: Change,
      isTaken: Bool? = nil
    ) {
      for pair in pairs { keys[pair.value] = change.storage.key }
      guard change.entity.uniqueGroups.count > 1 || change.entity.sharesTable else { return }
      let row = Row(change)
      if isTaken == true {
        let own = Set(pairs.map { $0.value })
        for value in values[row] ?? [] where !own.contains(value) { keys[value] = nil }
        overwritten.insert(row)
      }
      if isTaken == false { new.insert(row) }
      values[row] = pairs.map { $0.value }
    }

    /// Notes that a row of the store gives way to a new model.
    mutating func noteMerged(_ row: Row) {
      forget(row)
      merged.insert(row)
    }

    /// Forgets the values of a row.
    mutating func forget(_ row: Row) {
      for value in values.removeValue(forKey: row) ?? [] { keys[value] = nil }
    }

    mutating func find(
      _ pairs: [(group: ModelEntity.UniqueGroup, value: UniqueValue)], of change: Change,
      _ save: ModelSave
    ) throws -> Found {
      var found = Found()
      let table = change.entity.layout.table
      for (group, value) in pairs {
        if let key = keys[value] {
          found.isShared = true
          if new.contains(Row(table, key)) {
            if !found.new.contains(key) { found.new.append(key) }
          } else if !found.stored.contains(key) {
            found.stored.append(key)
          }
        } else if try mayHaveRows(table), let key = try save.key(of: group, change, session),
          !found.stored.contains(key), !frees(group, of: key, change.entity)
        {
          found.stored.append(key)
        }
      }
      return found
    }

    private mutating func mayHaveRows(_ table: String) throws -> Bool {
      if let known = haveRows[table] { return known }
      let hasRows = try session.integer("SELECT 1 FROM \(table) LIMIT 1") != nil
      haveRows[table] = hasRows
      return hasRows
    }

    /// Whether this save frees the values that a row of the store has in some slots. If a model of the save takes one
    /// again, `keys` has it.
    private mutating func frees(
      _ group: ModelEntity.UniqueGroup, of key: Int64, _ entity: ModelEntity
    ) -> Bool {
      let table = entity.layout.table
      if merged.contains(Row(table, key)) { return true }
      if overwritten.contains(Row(table, key)), !group.slots.allSatisfy(entity.isPartOfKey) {
        return true
      }
      let known = changes ?? changesByTable()
      changes = known
      guard let change = known[table]?[key] else { return false }
      return change.map { group.slots.contains(where: $0.contains) } ?? true
    }

    private func changesByTable() -> [String: [Int64: SlotSet?]] {
      var found: [String: [Int64: SlotSet?]] = [:]
      for change in changed {
        found[change.entity.layout.table, default: [:]][change.storage.key] =
          .some(change.storage.changedSlots)
      }
      for change in deleted {
        found[change.entity.layout.table, default: [:]].updateValue(
          nil, forKey: change.storage.key)
      }
      return found
    }
  }

  /// Returns the key of the row of the store that has the values of a model in a unique group.
  func key(
    of group: ModelEntity.UniqueGroup, _ change: Change, _ session: SQLSession
  ) throws -> Int64? {
    let statement = try session.statement(group.statement)
    var index: Int32 = 1
    for slot in group.slots { try bind(slot, of: change, to: statement, at: &index, session) }
    defer { statement.reset() }
    return try statement.step() ? statement.integer(at: 0) : nil
  }

  /// The save cannot be written before rows of the store give way to new models: each of these has unique values of
  /// several rows.
  struct RowsToMerge: Error {
    struct Row {
      let model: ObjectIdentifier
      let entity: ModelEntity
      /// The key of the row, which is not the one that the model takes.
      let key: Int64
      /// The key of the row that the model takes.
      let keptKey: Int64

      init(of change: Change, key: Int64) {
        model = ObjectIdentifier(change.model)
        entity = change.entity
        self.key = key
        keptKey = change.storage.key
      }
    }

    let rows: [Row]
  }

  // MARK: Links of the former model

  /// Ends the links that the former model of a row has and the new one does not: those of one-to-one relationships, and
  /// those that only the former class has. Members of other to-many relationships stay.
  ///
  /// - Parameter ended: Gets the rows of other models that are changed.
  func endFormerLinks(
    _ change: Change, _ session: SQLSession, _ history: inout SaveHistory?,
    _ ended: inout SaveLog.Rows
  ) throws {
    for reference in change.entity.references {
      try endOneToOne(
        change, change.entity, reference, kept: Self.key(in: change.storage.slots[reference.slot]),
        session, &history, &ended)
    }
    guard change.entity.sharesTable else { return }
    let own = Set(change.entity.layout.relationships.map(\.location))
    for entity in stores.entities
    where entity.store === store && entity.layout.table == change.entity.layout.table {
      for reference in entity.references {
        guard case .toOne(let column, _, _, _) = entity.slots[reference.slot],
          !own.contains(.column(column))
        else { continue }
        try endOneToOne(change, entity, reference, kept: nil, session, &history, &ended)
      }
    }
    try endLinksOfOtherClasses(change, session)
  }

  /// Ends the links of a row that other models have by the inverse of a one-to-one relationship.
  ///
  /// - Parameters:
  ///   - entity: The class with the relationship: that of the new model, or another one in its table.
  ///   - kept: The model that stays linked.
  private func endOneToOne(
    _ change: Change, _ entity: ModelEntity, _ reference: ModelEntity.Reference, kept: Int64?,
    _ session: SQLSession, _ history: inout SaveHistory?, _ ended: inout SaveLog.Rows
  ) throws {
    guard
      let inverse = stores.inverse(of: entity.descriptor, slot: reference.slot),
      inverse.isToOne, let other = stores.entity(named: inverse.descriptor.name),
      other.slots.indices.contains(inverse.slot),
      case .toOne(let back, _, let isOptional, let numberColumn) = other.slots[inverse.slot]
    else { return }
    let layout = other.layout
    let linked =
      "SELECT \(layout.key.reading.sql("t0")) FROM \(layout.table) AS t0 WHERE "
      + back.condition("t0", equals: "?1")
    let former = try integers(linked, [change.storage.key], session).filter { $0 != kept }
    if former.isEmpty { return }
    if !isOptional {
      throw Self.wouldLose(
        inverse, of: "\(other.layout.name) \(former[0])", change.entity.layout.name,
        change.storage.key)
    }
    let columns = back.columns + [numberColumn].compactMap { $0 }
    let clearing =
      "UPDATE \(layout.table) AS t0 SET \(columns.map { "\($0) = NULL" }.joined(separator: ", ")) "
      + "WHERE \(layout.key.condition("t0", equals: "?1"))"
    for key in former {
      try run(clearing, [key], session)
      try history?.noteUpdate(of: key, other) { $0 == inverse.slot }
    }
    ended.changed[layout.table, default: []].formUnion(former)
  }

  /// - Parameters:
  ///   - name: The name of the new model's entity.
  ///   - key: The key of the row with its unique value.
  static func wouldLose(
    _ inverse: ModelDescriptor.Inverse, of model: String, _ name: String, _ key: Int64
  ) -> SwiftDataError {
    SwiftDataError.validation(
      "cannot save a new \(name)",
      "\(name) \(key) has its unique value, and \(model) would lose its required '\(inverse.property.name)'",
      next: "delete \(model) too, or change the existing model in place of inserting a new one")
  }

  private func endLinksOfOtherClasses(_ change: Change, _ session: SQLSession) throws {
    let own = Set(change.entity.layout.relationships.map(\.location))
    for layout in store.layout.entityLayouts where layout.table == change.entity.layout.table {
      for relationship in layout.relationships where !own.contains(relationship.location) {
        try endLinks(of: change.storage.key, relationship, session)
      }
    }
  }
}
