import InstarSchema
import InstarStore

/// `minimumModelCount` and `maximumModelCount` of to-many relationships, checked at each save.
extension ModelContext {
  /// - Throws: `modelValidationFailure` for a relationship with too few or too many members.
  func validateCounts() throws {
    for entity in stores.entities where !entity.countLimits.isEmpty {
      let new = inserted.all.map(\._modelStorage).filter { $0.descriptor === entity.descriptor }
      for storage in new + livingStorages(of: entity) {
        for limit in entity.countLimits where isKnown(storage, limit.slot) {
          try validate(storage, limit, entity)
        }
      }
    }
  }

  /// Whether the relationship may have changed. Changes from either side are in the owner's memory, so a relationship
  /// without members in memory and without pending ones is unchanged.
  private func isKnown(_ storage: ModelStorage, _ slot: Int) -> Bool {
    if storage.pendingMembers[slot] != nil { return true }
    switch storage.slots[slot] {
    case .models: return true
    case .null: return storage.state == .inserted
    default: return false
    }
  }

  private func validate(
    _ storage: ModelStorage, _ limit: ModelEntity.CountLimit, _ entity: ModelEntity
  ) throws {
    let count = storage.toMany(at: limit.slot).count { !$0._modelStorage.isDeleted }
    guard count < limit.minimum || limit.maximum.map({ count > $0 }) ?? false else { return }
    let range =
      switch (limit.minimum, limit.maximum) {
      case (let minimum, nil): "at least \(minimum)"
      case (0, let maximum?): "at most \(maximum)"
      case (let minimum, let maximum?): "\(minimum) to \(maximum)"
      }
    let property = entity.descriptor.properties[limit.slot].name
    throw SwiftDataError.validation(
      "cannot save \(storage.title)",
      "relationship '\(property)' has \(count) models and must have \(range)")
  }

  private func livingStorages(of entity: ModelEntity) -> [ModelStorage] {
    registeredStorages.joined()
      .filter { $0.descriptor === entity.descriptor && $0.state == .loaded }
  }
}
