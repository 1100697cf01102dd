import InstarSchema
import InstarStore

/// A model class mapped to its table: the columns of each slot, and the statements that insert and delete rows.
final class ModelEntity: Sendable {
  let descriptor: ModelDescriptor
  /// Includes the properties that the entity inherits.
  let layout: EntityLayout
  /// The store that has the entity's rows.
  let store: ModelStore
  /// Index among the entities of all stores of the container.
  let position: Int
  let slots: [SlotStorage]
  /// The columns that a save writes for each slot.
  let columnsBySlot: [[StoredColumn]]
  /// The expressions that each slot is read from.
  let readingsBySlot: [[RowExpression]]
  /// The slots that have a column in the own table, in the order of the columns of every statement.
  let columnSlots: [Int]
  /// The slots that are kept in memory only.
  let slotsInMemory: [Int]
  /// The slots whose values SQLite computes.
  let generatedSlots: [Int]
  /// The slots whose large values are in files.
  let externalSlots: [Int]
  /// The slots of arrays, sets and dictionaries of plain values, which some stores contain as archives.
  let collectionSlots: Set<Int>
  /// For each slot, whether its content is bound to its one column as it is.
  let boundDirectly: [Bool]
  /// The slots of attributes with a column.
  let attributeSlots: SlotSet
  /// The slots that a save writes and whose value may be NaN.
  let fractionSlots: [Int]
  /// The slots of to-many relationships.
  let toManySlots: [Int]
  /// The to-one relationships.
  let references: [Reference]
  /// The slots of a model whose row is not read.
  let emptySlots: RowReader.EmptySlots
  /// Whether a value of the right storage class may still not be of the slot's type.
  let checkedSlots: [Bool]
  /// The slot that is the key itself: an integer primary key.
  let keySlot: Int?
  /// The slots that form the key of a table without rowid, in the key's order.
  let keySlots: [Int]
  /// Whether a statement that inserts a row binds its key apart from the slots.
  let insertsKey: Bool
  /// Groups of slots whose values may occur only once together.
  let uniqueGroups: [UniqueGroup]
  /// The to-one relationships in these groups.
  let uniqueReferences: [Int]
  /// The statement for the key of a row of a table without rowid, whose parameters are the values of `keySlots`.
  let keyStatement: String?
  /// The slots that a history of changes counts, in that order.
  let historySlots: [Int]
  /// Whether links of the entity have positions in an order.
  let hasOrderedLinks: Bool
  /// The to-many relationships with a minimum or maximum number of members.
  let countLimits: [CountLimit]
  let insertStatement: String
  let deleteStatement: String
  /// Finds out whether the row with a key exists.
  let existenceStatement: String

  /// A to-one relationship.
  struct Reference: Sendable {
    let slot: Int
    let destination: String
    let isOptional: Bool
  }

  struct UniqueGroup: Sendable {
    let slots: [Int]
    /// The collation of each column, as SQLite compares its texts; `nil` for their bytes.
    let collations: [String?]
    /// The table and the columns, which entities that share a table have in common.
    let name: String
    /// Finds the key of the row with the values of `slots`.
    let statement: String
  }

  struct CountLimit: Sendable {
    let slot: Int
    let minimum: Int
    /// `nil` for no limit.
    let maximum: Int?
  }

  /// - Parameter unique: The names of the properties of each unique group. In the closure of a stage, the class may be
  ///   another version's, and that version's groups may be other ones.
  init(
    descriptor: ModelDescriptor, unique: [[String]], layout: EntityLayout, store: ModelStore,
    position: Int
  ) {
    self.descriptor = descriptor
    self.layout = layout
    self.store = store
    self.position = position

    let slots = SlotStorage.all(of: descriptor, in: layout)
    let columnsBySlot = slots.map(\.columns)
    self.slots = slots
    self.columnsBySlot = columnsBySlot
    readingsBySlot = slots.map(\.readings)
    columnSlots = slots.indices.filter { !slots[$0].readings.isEmpty }
    slotsInMemory = slots.indices.filter { slots[$0].isInMemory }
    generatedSlots = columnSlots.filter { columnsBySlot[$0].isEmpty }
    externalSlots = slots.indices.filter { slots[$0].mayBeExternal }
    collectionSlots = Set(
      descriptor.properties.indices.filter {
        descriptor.properties[$0].collectionType.map(ArchivedCollection.canArchive) ?? false
      })
    boundDirectly = slots.indices.map { [collectionSlots] in
      columnsBySlot[$0].count == 1 && !collectionSlots.contains($0) && slots[$0].isBoundDirectly
    }
    attributeSlots = SlotSet(columnSlots.filter { !slots[$0].isToOne })
    fractionSlots = slots.indices.filter {
      !columnsBySlot[$0].isEmpty && descriptor.properties[$0].mayBeNotANumber
    }
    toManySlots = slots.indices.filter { slots[$0].isToMany }
    references = slots.enumerated().compactMap { slot, place in
      guard case .toOne(_, let destination, let isOptional, _) = place else { return nil }
      return Reference(slot: slot, destination: destination, isOptional: isOptional)
    }
    emptySlots = RowReader.EmptySlots(
      slots: ContiguousArray(repeating: .null, count: slots.count))
    checkedSlots = descriptor.properties.map { property in
      if case .attribute(let kind) = property.kind { kind.accepts != nil } else { false }
    }

    let key = layout.key
    keySlots = key.isRowID ? [] : Self.slots(of: key.columns, columnsBySlot)
    keySlot = key.isRowID ? Self.slots(of: [key.columns[0]], columnsBySlot).first : nil
    insertsKey = key.isRowID && keySlot == nil
    uniqueGroups = Self.uniqueSlots(unique, of: descriptor, layout, columnsBySlot).map {
      UniqueGroup(slots: $0, columns: $0.compactMap { columnsBySlot[$0].first }, in: layout)
    }
    let referenceSlots = Set(references.map(\.slot))
    uniqueReferences = Set(uniqueGroups.flatMap(\.slots)).intersection(referenceSlots).sorted()
    keyStatement = key.statement(
      ofKeyOf: keySlots.flatMap { columnsBySlot[$0] }.map(\.parameter))
    historySlots = Self.historySlots(of: descriptor, slots)
    hasOrderedLinks = layout.relationships.contains {
      $0.orderColumn != nil || $0.inverseOrderColumn != nil
    }
    countLimits = Self.countLimits(of: descriptor)
    insertStatement = Self.insertStatement(
      of: layout, bindingKey: insertsKey, columnsBySlot.flatMap { $0 })
    let isRow = "\(layout.table) AS t0 WHERE \(key.condition("t0", equals: "?1"))"
    deleteStatement = "DELETE FROM \(isRow)"
    existenceStatement = "SELECT 1 FROM \(isRow)"
  }

  /// Returns the slots of those columns that contain a property.
  private static func slots(of columns: [String], _ columnsBySlot: [[StoredColumn]]) -> [Int] {
    columns.compactMap { name in
      columnsBySlot.firstIndex { $0.contains { $0.name == name } }
    }
  }

  /// Returns the primary key, if properties contain all of its columns, and the groups of `#Unique`. Of several rows
  /// with values of a new model, the first one here keeps its key.
  private static func uniqueSlots(
    _ unique: [[String]], of descriptor: ModelDescriptor, _ layout: EntityLayout,
    _ columnsBySlot: [[StoredColumn]]
  ) -> [[Int]] {
    let groups = unique.compactMap { names in
      let slots = names.compactMap { name in
        descriptor.properties.firstIndex { $0.name == name }
      }
      return slots.count == names.count && slots.allSatisfy { !columnsBySlot[$0].isEmpty }
        ? slots : nil
    }
    let primaryKey = slots(of: layout.primaryKey, columnsBySlot)
    let isWhole = !primaryKey.isEmpty && primaryKey.count == layout.primaryKey.count
    return (isWhole ? [primaryKey] : []) + groups
  }

  private static func countLimits(of descriptor: ModelDescriptor) -> [CountLimit] {
    descriptor.properties.enumerated().compactMap { slot, property in
      guard case .relationship(let kind) = property.kind, !kind.isToOne else { return nil }
      let (minimum, maximum) = (kind.metadata.minimumModelCount, kind.metadata.maximumModelCount)
      return minimum > 0 || maximum > 0
        ? CountLimit(slot: slot, minimum: minimum, maximum: maximum > 0 ? maximum : nil) : nil
    }
  }

  /// The system columns come first, then those of the slots.
  private static func insertStatement(
    of layout: EntityLayout, bindingKey: Bool, _ slotColumns: [StoredColumn]
  ) -> String {
    var columns = bindingKey ? layout.key.columns.map { ($0, "?") } : []
    if let column = layout.entityColumn { columns.append((column, "\(layout.number)")) }
    if let column = layout.lockColumn { columns.append((column, "1")) }
    columns += slotColumns.map { ($0.name, $0.parameter) }
    return "INSERT INTO \(layout.table) (\(columns.map(\.0).joined(separator: ", "))) "
      + "VALUES (\(columns.map(\.1).joined(separator: ", ")))"
  }

  /// Whether other entities have their rows in the same table.
  var sharesTable: Bool { layout.numbers.count > 1 || layout.superNumber != 0 }

  /// Returns the slot that a save writes to a column, and the index of the column among those of the slot.
  func place(ofColumn name: String) -> (slot: Int, index: Int)? {
    for (slot, columns) in columnsBySlot.enumerated() {
      if let index = columns.firstIndex(where: { $0.name == name }) { return (slot, index) }
    }
    return nil
  }

  /// The error of a row without a required value.
  func missingValue(_ slot: Int, _ key: Int64) -> InstarError {
    var name = ""
    if case .attribute(let column, _) = slots[slot] { name = column.name }
    return InstarError(
      .missingRequiredValues, "cannot read \(layout.name) \(key)",
      cause:
        "required attribute '\(descriptor.properties[slot].name)' has no value: column \(name) is NULL",
      next: "make the property optional in this version of the models")
  }

  /// The error of a stored value that is not of the slot's type.
  func unreadable(_ slot: Int, stored: Slot, _ key: Int64) -> InstarError {
    ModelStorage(self, key: key, slots: emptySlots.slots).unreadable(slot, stored: stored)
  }

  /// Returns whether a stored value, which is not NULL, is of the type of the slot's property.
  func accepts(_ value: Slot, at slot: Int) -> Bool {
    guard checkedSlots[slot], case .attribute(let kind) = descriptor.properties[slot].kind,
      let accepts = kind.accepts
    else { return true }
    return accepts(value)
  }
}

extension ModelEntity.UniqueGroup {
  /// - Parameter columns: One for each slot. A schema with a group over a property with several columns is refused.
  fileprivate init(slots: [Int], columns: [StoredColumn], in layout: EntityLayout) {
    self.slots = slots
    collations = columns.map { column in
      layout.attributes.first { $0.column.name == column.name }?.attribute.column?.collation?
        .uppercased()
    }
    name = "\(layout.table)(\(columns.map(\.name).joined(separator: ", ")))"
    let conditions = columns.map { "t0.\($0.name) = \($0.parameter)" }
    statement =
      "SELECT \(layout.key.reading.sql("t0")) FROM \(layout.table) AS t0 "
      + "WHERE \(conditions.joined(separator: " AND "))"
  }
}
