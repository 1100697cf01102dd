import InstarSchema
import InstarStore

/// Explains why a relationship references a missing row. Core Data only reports that it "failed to fulfill" a fault.
extension ModelContext {
  /// Returns an error with the row, the relationships that reference it, and the number of other broken links.
  func missingRow(of storage: ModelStorage, _ entity: ModelEntity) -> InstarError {
    let what = "cannot read \(entity.layout.name) \(storage.key)"
    var sentences: [String] = []
    var seen: Set<[String]> = []
    do {
      for owner in stores.entities where owner.store === entity.store {
        for (slot, stored) in owner.slots.enumerated() {
          guard case .toOne(let reference, let destination, _, _) = stored,
            let target = stores.entity(named: destination),
            target.layout.table == entity.layout.table,
            // Entities that inherit a relationship share its column.
            seen.insert([owner.layout.table] + reference.columns).inserted
          else { continue }
          let links = try brokenLinks(reference, owner, target, to: storage.key)
          guard links.here > 0 else { continue }
          let name = "\(owner.layout.name).\(owner.descriptor.properties[slot].name)"
          sentences.append(
            "\(name) of \(links.here.counted("row")) references it, but the row does not exist"
              + (links.elsewhere > 0
                ? "; \(links.elsewhere) more links of \(name) reference missing rows" : ""))
        }
      }
    } catch {
      sentences.append("the row does not exist; \(error)")
    }
    return InstarError(
      .brokenReferences, what,
      cause: sentences.isEmpty
        ? "the row was deleted" : sentences.joined(separator: "\n"),
      next: sentences.isEmpty
        ? "fetch again"
        : "set the relationship to nil; 'instarctl plan' lists all such links before a migration")
  }

  /// Returns how many rows reference the row with a key, and how many reference other missing rows.
  private func brokenLinks(
    _ reference: ForeignKey, _ owner: ModelEntity, _ target: ModelEntity, to key: Int64
  ) throws -> (here: Int64, elsewhere: Int64) {
    let link = reference.reading.sql("t0")
    return try owner.store.connection.perform { session in
      let statement = try session.statement(
        "SELECT COALESCE(SUM(\(link) = ?1), 0), COALESCE(SUM(\(link) <> ?1), 0) "
          + "FROM \(owner.layout.table) AS t0 WHERE \(link) IS NOT NULL AND NOT EXISTS "
          + "(SELECT 1 FROM \(target.layout.table) AS d WHERE \(reference.condition("t0", refersTo: "d")))"
      )
      statement.bind(key, at: 1)
      defer { statement.reset() }
      guard try statement.step() else { return (0, 0) }
      return (statement.integer(at: 0), statement.integer(at: 1))
    }
  }
}
