import InstarSchema
import InstarStore

// Positions of links in ordered relationships (Core Data layout, section 4.4).

extension ModelSave {
  /// The distance between two positions in Core Data. A new link fits between two others without moving them.
  private static let step: Int64 = 2048

  /// Puts a row that is new, or has a new owner, last among the owner's rows. The owner's own order overrides this.
  func placeAmongMembers(_ change: Change, _ session: SQLSession) throws {
    let layout = change.entity.layout
    for (slot, property) in change.entity.descriptor.properties.enumerated() {
      guard case .toOne = change.entity.slots[slot],
        change.storage.state == .inserted || change.storage.changedSlots.contains(slot),
        let relationship = layout.relationships.first(where: {
          $0.relationship.name == property.name
        }), let column = relationship.orderColumn,
        case .column(let reference) = relationship.location, let owner = reference.columns.first
      else { continue }
      try run(
        "UPDATE \(layout.table) AS t0 SET \(column) = CASE WHEN \(owner) IS NOT NULL THEN "
          + "\(Self.step) + ifnull((SELECT max(o.\(column)) FROM \(layout.table) AS o "
          + "WHERE o.\(owner) = t0.\(owner) AND NOT (\(layout.key.condition("o", equals: "?1")))), 0) "
          + "END WHERE \(layout.key.condition("t0", equals: "?1"))", [change.storage.key], session)
    }
  }

  /// Writes the order of a changed relationship.
  func writeOrder(_ change: Change, _ session: SQLSession) throws {
    let storage = change.storage
    for (slot, place) in change.entity.slots.enumerated() {
      guard case .toMany(let relationship) = place, let column = relationship.orderColumn,
        storage.state == .inserted || storage.changedSlots.contains(slot),
        case .models(let models) = storage.slots[slot],
        let target = stores.entity(named: relationship.relationship.destination)?.layout
      else { continue }
      var next = Self.step
      for model in models where !model._modelStorage.isDeleted {
        let keys = [next, storage.key, model._modelStorage.key]
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

  /// Puts new links last among those of the related models, if these have an order that does not contain the links yet.
  func placeAmongLinks(_ change: Change, _ session: SQLSession) throws {
    let storage = change.storage
    for (slot, place) in change.entity.slots.enumerated() {
      guard case .toMany(let relationship) = place,
        let column = relationship.inverseOrderColumn,
        case .joinTable(let name, let own, let other) = relationship.location,
        storage.state == .inserted || storage.changedSlots.contains(slot)
      else { continue }
      // Each link has another model at the other end, so no two links get the same position.
      let isOfSameModel = other.columns.map { "o.\($0) = j.\($0)" }.joined(separator: " AND ")
      try run(
        "UPDATE \(name) AS j SET \(column) = \(Self.step) + ifnull((SELECT max(o.\(column)) "
          + "FROM \(name) AS o WHERE \(isOfSameModel)), 0) "
          + "WHERE \(own.condition("j", equals: "?1")) AND \(column) IS NULL",
        [storage.key], session)
    }
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
