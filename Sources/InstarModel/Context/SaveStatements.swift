import InstarStore

/// The statements of one save that write rows. They are looked up by entity and changed slots, because building and
/// comparing their text for each row takes longer than running them.
final class SaveStatements {
  let session: SQLSession
  /// By the position of the entity.
  private var insertions: [Int: SQLStatement] = [:]
  private var updates: [Shape: Update?] = [:]
  /// The one that was used last, because changed models nearly always have the same changes.
  private var last: (shape: Shape, update: Update?)?

  /// What determines the text of an update.
  private struct Shape: Hashable {
    let entity: Int
    /// `nil` for all slots of a row that belonged to another model.
    let slots: SlotSet?
  }

  struct Update {
    let statement: SQLStatement
    /// The slots whose columns it sets, in the order of its parameters. The key of the row comes last.
    let slots: [Int]
  }

  init(_ session: SQLSession) { self.session = session }

  func insertion(_ entity: ModelEntity) throws -> SQLStatement {
    if let known = insertions[entity.position] { return known }
    let statement = try session.statement(entity.insertStatement)
    insertions[entity.position] = statement
    return statement
  }

  /// Returns the statement that writes changed slots; `nil` if none of them has a column.
  func update(_ entity: ModelEntity, _ changed: SlotSet) throws -> Update? {
    let shape = Shape(entity: entity.position, slots: changed)
    if let last, last.shape == shape { return last.update }
    let update =
      try updates[shape]
      ?? makeUpdate(entity, entity.columnSlots.filter { changed.contains($0) }, takesRow: false)
    updates[shape] = .some(update)
    last = (shape, update)
    return update
  }

  /// Returns the statement that writes all slots of a row that belonged to another model.
  func takingRow(_ entity: ModelEntity) throws -> Update? {
    let shape = Shape(entity: entity.position, slots: nil)
    if let known = updates[shape] { return known }
    let update = try makeUpdate(entity, entity.columnSlots, takesRow: true)
    updates[shape] = .some(update)
    return update
  }

  private func makeUpdate(
    _ entity: ModelEntity, _ slots: [Int], takesRow: Bool
  ) throws -> Update? {
    let columns = slots.flatMap { entity.columnsBySlot[$0] }
    if columns.isEmpty { return nil }
    let layout = entity.layout
    // Z_OPT counts the updates of a row (Core Data layout, section 2.3).
    var assignments = layout.lockColumn.map { ["\($0) = IFNULL(\($0), 0) + 1"] } ?? []
    if takesRow, entity.sharesTable, let column = layout.entityColumn {
      assignments.append("\(column) = \(layout.number)")
    }
    if takesRow { assignments += Self.columnsOfOtherClasses(entity).map { "\($0) = NULL" } }
    assignments += columns.map { "\($0.name) = \($0.parameter)" }
    let sql =
      "UPDATE \(layout.table) AS t0 SET \(assignments.joined(separator: ", ")) "
      + "WHERE \(layout.key.condition("t0", equals: "?\(columns.count + 1)"))"
    return Update(statement: try session.statement(sql), slots: slots)
  }

  /// The columns of the table that the entity does not have.
  private static func columnsOfOtherClasses(_ entity: ModelEntity) -> [String] {
    guard entity.sharesTable else { return [] }
    let table = entity.store.layout.entityLayouts.filter { $0.table == entity.layout.table }
    let own = columns(of: entity.layout)
    return Set(table.flatMap { columns(of: $0) }).subtracting(own).sorted()
  }

  private static func columns(of layout: EntityLayout) -> Set<String> {
    let attributes = layout.attributes.map(\.column).filter { !$0.isGenerated }.map(\.name)
    let references = layout.relationships.flatMap { relationship -> [String] in
      guard case .column(let reference) = relationship.location else { return [] }
      return reference.columns + [relationship.entityColumn].compactMap { $0 }
    }
    return Set(attributes + references)
  }
}
