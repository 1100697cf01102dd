import InstarSchema
import InstarStore

// Files with large values that no row references after a save.

extension ModelSave {
  /// Returns the files of deleted rows and of changed values.
  func filesReleased(
    by deleted: [Change], _ changed: [Change], _ session: SQLSession
  ) throws -> Set<String> {
    var names: Set<String> = []
    for (changes, areDeleted) in [(deleted, true), (changed, false)] {
      for change in changes {
        for slot in change.entity.externalSlots
        where areDeleted || change.storage.changedSlots.contains(slot) {
          guard case .attribute(let column, _) = change.entity.slots[slot] else { continue }
          let layout = change.entity.layout
          let statement = try session.statement(
            "SELECT \(column.name) FROM \(layout.table) AS t0 "
              + "WHERE \(layout.key.condition("t0", equals: "?1"))")
          statement.bind(change.storage.key, at: 1)
          defer { statement.reset() }
          guard try statement.step(), case .blob(let stored) = statement.slot(at: 0),
            case .file(let name) = ExternalValues.Form(stored: stored)
          else { continue }
          names.insert(name)
        }
      }
    }
    return names
  }
}
