import InstarSchema
import InstarStore

// Relationships that are stored outside the row of their model.

extension ModelSave {
  func writeMembers(_ change: Change, _ session: SQLSession) throws {
    for slot in change.entity.toManySlots {
      guard case .toMany(let relationship) = change.entity.slots[slot],
        relationship.isSavedFromHere, case .models(let members) = change.storage.slots[slot]
      else { continue }
      let saved = change.storage.savedMembers[slot] ?? []
      if saved.isEmpty, members.isEmpty { continue }
      let current = Set(members.all.compactMap(\._modelStorage.referenceKey))
      // A new model may take the row of a former member, which another context has removed since.
      let new = members.all.lazy.map(\._modelStorage).filter { $0.state == .inserted }
      let links = Links(
        added: current.subtracting(saved).sorted(),
        doubtful: saved.intersection(new.compactMap(\.referenceKey)).sorted(),
        removed: saved.subtracting(current).sorted())
      if !links.isEmpty { try write(links, relationship, of: change.storage.key, session) }
    }
  }

  /// The members that a save adds to a relationship and removes from it, by key.
  private struct Links {
    let added: [Int64]
    /// Members whose links may be in the store, which are not written again then: a join table without a key would have
    /// them twice, and the app's triggers would see a change.
    let doubtful: [Int64]
    let removed: [Int64]
    var isEmpty: Bool { added.isEmpty && doubtful.isEmpty && removed.isEmpty }
  }

  private func write(
    _ links: Links, _ relationship: EntityLayout.RelationshipStorage, of key: Int64,
    _ session: SQLSession
  ) throws {
    switch relationship.location {
    case .column: return
    case .foreignKey(let reference):
      guard let target = stores.entity(named: relationship.relationship.destination)?.layout
      else { return }
      let update = "UPDATE \(relationship.destinationTable) AS t0 SET"
      let isMember = target.key.condition("t0", equals: "?2")
      let addition = "\(update) \(reference.assignment(of: "?1")) WHERE \(isMember)"
      for member in links.added { try run(addition, [key, member], session) }
      let isLinked = reference.condition("t0", equals: "?1")
      for member in links.doubtful {
        try run("\(addition) AND (\(isLinked)) IS NOT TRUE", [key, member], session)
      }
      // The member may have another owner by now, which was written before.
      let removal =
        "\(update) \(cleared(reference)) WHERE \(isMember) "
        + "AND \(reference.condition("t0", equals: "?1"))"
      for member in links.removed { try run(removal, [key, member], session) }
    case .joinTable(let name, let own, let other):
      // A relationship that is its own inverse has a row for each direction.
      let directions =
        relationship.keepsBothDirections
        ? [(own, other), (other, own)] : [(own, other)]
      for (own, other) in directions {
        let columns = (own.columns + other.columns).joined(separator: ", ")
        let values = (own.values(of: "?1") + other.values(of: "?2")).joined(separator: ", ")
        let link =
          "\(name) AS j WHERE \(own.condition("j", equals: "?1")) "
          + "AND \(other.condition("j", equals: "?2"))"
        // Both sides may insert the same link.
        let insertion = "INSERT OR IGNORE INTO \(name) (\(columns))"
        for member in links.added {
          try run("\(insertion) VALUES (\(values))", [key, member], session)
        }
        let isMissing = "NOT EXISTS (SELECT 1 FROM \(link))"
        for member in links.doubtful {
          try run("\(insertion) SELECT \(values) WHERE \(isMissing)", [key, member], session)
        }
        let removal = "DELETE FROM \(link)"
        for member in links.removed { try run(removal, [key, member], session) }
      }
    }
  }

  func cleared(_ reference: ForeignKey) -> String {
    reference.columns.map { "\($0) = NULL" }.joined(separator: ", ")
  }

  func run(_ sql: String, _ keys: [Int64], _ session: SQLSession) throws {
    let statement = try session.statement(sql)
    for (offset, key) in keys.enumerated() { statement.bind(key, at: Int32(offset + 1)) }
    try statement.run()
  }
}

extension EntityLayout.RelationshipStorage {
  /// Whether a save writes the links of this to-many relationship itself. The foreign key of a relationship with an
  /// inverse is a slot of the member, and is written with its row.
  var isSavedFromHere: Bool {
    if case .foreignKey = location { relationship.inverseName == nil } else { true }
  }
}
