import InstarWire

/// What operators and owners order: halts and approvals.
extension Rollout {
  /// Halts for an operator, until `resume`.
  mutating func halt(by order: Manager.Pause) { halt = order }

  /// Resumes the rollout. The stores that failed until now no longer count, even if they fail again.
  mutating func resume() {
    halt = nil
    forgiven = Set(stores.failed)
  }

  /// Approves stores that wait for an approval. Without names, all of them, also stores that are found later.
  mutating func approve(_ stores: [String]) {
    if stores.isEmpty { isApproved = true } else { approvedStores.formUnion(stores) }
    for store in stores.isEmpty ? self.stores.paths : stores {
      guard var place = self.stores[store]?.place, place.needsApproval else { continue }
      place.needsApproval = false
      self.stores.enqueue(place)
    }
  }

  /// Whether `approve` changes nothing.
  func hasApproved(_ stores: [String]) -> Bool {
    if stores.isEmpty { return isApproved && self.stores.unapprovedCount == 0 }
    return stores.allSatisfy {
      (isApproved || approvedStores.contains($0)) && self.stores[$0]?.place?.needsApproval != true
    }
  }
}
