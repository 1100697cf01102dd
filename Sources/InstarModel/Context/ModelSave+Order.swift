import InstarSchema
import InstarStore

// Positions of links in ordered relationships (Core Data layout, section 4.4).

extension ModelSave {
  /// The distance between two positions in Core Data. A new link fits between two others without moving them.
  static let step: Int64 = 2048

  /// Writes the positions of the links of rows. Links without a position of their own get the order of their rows.
  ///
  /// Members of a row that a new model took come before those of the model.
  func writeOrders(of new: [NewRow], _ changed: [Change], _ session: SQLSession) throws {
    let changes = (new.map(\.change) + changed).filter(\.entity.hasOrderedLinks)
      .sorted { $0.storage.key < $1.storage.key }
    if changes.isEmpty { return }
    let taken = Set(new.filter(\.isTaken).map { ObjectIdentifier($0.change.storage) })
    var ends = LinkEnds(session: session)
    for change in changes { try placeAmongMembers(change, &ends) }
    for change in changes {
      try writeOrder(change, isTaken: taken.contains(ObjectIdentifier(change.storage)), session)
    }
    for change in changes { try placeAmongLinks(change, &ends) }
  }

  /// The last positions of links, each read once, so that a new link costs the same for any number of others.
  private struct LinkEnds {
    let session: SQLSession
    private var positions: [End: Int64] = [:]

    /// The links of one row, in one column with positions.
    private struct End: Hashable {
      let column: String
      let owner: Int64
    }

    init(session: SQLSession) { self.session = session }

    /// Returns the position after the last link.
    ///
    /// - Parameter statement: Finds the last position of the links of ?1, without the row ?2 if there is one.
    mutating func next(
      _ column: String, of owner: Int64, without row: Int64? = nil,
      _ statement: @autoclosure () -> String
    ) throws -> Int64 {
      let end = End(column: column, owner: owner)
      let last = try positions[end] ?? read(statement(), owner, row)
      positions[end] = last + ModelSave.step
      return last + ModelSave.step
    }

    private func read(_ sql: String, _ owner: Int64, _ row: Int64?) throws -> Int64 {
      let statement = try session.statement(sql)
      statement.bind(owner, at: 1)
      if let row { statement.bind(row, at: 2) }
      defer { statement.reset() }
      return try statement.step() ? statement.integer(at: 0) : 0
    }
  }

  /// Puts a row that is new, or has a new owner, last among the owner's rows. The owner's own order overrides this.
  private func placeAmongMembers(_ change: Change, _ ends: inout LinkEnds) throws {
    let layout = change.entity.layout
    let key = change.storage.key
    for reference in change.entity.references {
      let slot = reference.slot
      guard change.storage.state == .inserted || change.storage.changedSlots.contains(slot),
        let relationship = layout.relationships.first(where: {
          $0.relationship.name == change.entity.descriptor.properties[slot].name
        }), let column = relationship.orderColumn, case .column(let owner) = relationship.location
      else { continue }
      let update = "UPDATE \(layout.table) AS t0 SET \(column) ="
      let isRow = layout.key.condition("t0", equals: "?1")
      guard let ownerKey = Self.key(in: change.storage.slots[slot]) else {
        try run("\(update) NULL WHERE \(isRow)", [key], ends.session)
        continue
      }
      let position = try ends.next(
        "\(layout.table).\(column)", of: ownerKey, without: key,
        "SELECT max(o.\(column)) FROM \(layout.table) AS o "
          + "WHERE \(owner.condition("o", equals: "?1")) "
          + "AND NOT (\(layout.key.condition("o", equals: "?2")))")
      try run("\(update) ?2 WHERE \(isRow)", [key, position], ends.session)
    }
  }

  /// Returns the key that a save writes for a to-one relationship.
  static func key(in slot: Slot) -> Int64? {
    switch slot {
    case .key(let key): return key
    case .model(let model): return model._modelStorage.referenceKey
    default: return nil
    }
  }

  /// Writes the order of a changed relationship.
  private func writeOrder(_ change: Change, isTaken: Bool, _ session: SQLSession) throws {
    let storage = change.storage
    for slot in change.entity.toManySlots {
      guard case .toMany(let relationship) = change.entity.slots[slot],
        let column = relationship.orderColumn,
        storage.state == .inserted || storage.changedSlots.contains(slot),
        case .models(let members) = storage.slots[slot],
        let target = stores.entity(named: relationship.relationship.destination)?.layout
      else { continue }
      var next = Self.step
      if isTaken { next += try lastPosition(relationship, column, of: storage.key, session) }
      for member in members.all.compactMap(\._modelStorage.referenceKey) {
        let keys = [next, storage.key, member]
        next += Self.step
        switch relationship.location {
        case .column: continue
        case .foreignKey(let reference):
          try run(
            "UPDATE \(relationship.destinationTable) AS t0 SET \(column) = ?1 "
              + "WHERE \(target.key.condition("t0", equals: "?3")) "
              + "AND \(reference.condition("t0", equals: "?2"))", keys, session)
        case .joinTable(let name, let own, let other):
          try run(
            "UPDATE \(name) AS j SET \(column) = ?1 WHERE \(own.condition("j", equals: "?2")) "
              + "AND \(other.condition("j", equals: "?3"))", keys, session)
        }
      }
    }
  }

  /// Returns the last position among the links of a row.
  private func lastPosition(
    _ relationship: EntityLayout.RelationshipStorage, _ column: String, of key: Int64,
    _ session: SQLSession
  ) throws -> Int64 {
    let sql: String
    switch relationship.location {
    case .column: return 0
    case .foreignKey(let reference):
      sql =
        "SELECT ifnull(max(o.\(column)), 0) FROM \(relationship.destinationTable) AS o "
        + "WHERE \(reference.condition("o", equals: "?1"))"
    case .joinTable(let name, let own, _):
      sql =
        "SELECT ifnull(max(o.\(column)), 0) FROM \(name) AS o "
        + "WHERE \(own.condition("o", equals: "?1"))"
    }
    return try integers(sql, [key], session).first ?? 0
  }

  /// Puts new links last among those of the related models, if these have an order that does not contain the links yet.
  private func placeAmongLinks(_ change: Change, _ ends: inout LinkEnds) throws {
    let storage = change.storage
    for slot in change.entity.toManySlots {
      guard case .toMany(let relationship) = change.entity.slots[slot],
        let column = relationship.inverseOrderColumn,
        case .joinTable(let name, let own, let other) = relationship.location,
        storage.state == .inserted || storage.changedSlots.contains(slot)
      else { continue }
      let isOwn = own.condition("j", equals: "?1")
      let keys = try integers(
        "SELECT \(other.reading.sql("j")) FROM \(name) AS j "
          + "WHERE \(isOwn) AND j.\(column) IS NULL", [storage.key], ends.session)
      for key in keys {
        let position = try ends.next(
          "\(name).\(column)", of: key,
          "SELECT max(o.\(column)) FROM \(name) AS o WHERE \(other.condition("o", equals: "?1"))")
        try run(
          "UPDATE \(name) AS j SET \(column) = ?3 WHERE \(isOwn) "
            + "AND \(other.condition("j", equals: "?2"))", [storage.key, key, position],
          ends.session)
      }
    }
  }

  func integers(_ sql: String, _ keys: [Int64], _ session: SQLSession) throws -> [Int64] {
    let statement = try session.statement(sql)
    for (offset, key) in keys.enumerated() { statement.bind(key, at: Int32(offset + 1)) }
    defer { statement.reset() }
    var values: [Int64] = []
    while try statement.step() { values.append(statement.integer(at: 0)) }
    return values
  }
}

extension EntityLayout.RelationshipStorage {
  /// Returns the ORDER BY clause for the members: by their positions, then by their keys.
  ///
  /// - Parameters:
  ///   - alias: The alias of the table with the links.
  ///   - key: The key of a member.
  func order(_ alias: String, key: String) -> String {
    guard let orderColumn, relationship.isOrdered else { return "ORDER BY \(key)" }
    return "ORDER BY \(alias).\(orderColumn) IS NULL, \(alias).\(orderColumn), \(key)"
  }
}
