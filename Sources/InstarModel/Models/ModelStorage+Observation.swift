public import Observation

/// Lets `withObservationTracking` see which properties of a model are read, and when one of them changes: set by its
/// owner, from the other side of a relationship, or by reading the row anew.
///
/// A property is told from the others by its slot, so that a change that knows no more than the slot can be announced.
extension ModelStorage: Observable {
  fileprivate subscript(observed slot: Int) -> Int { slot }

  func noteAccess(to slot: Int) {
    let registrar = observers ?? ObservationRegistrar()
    if observers == nil { observers = registrar }
    registrar.access(self, keyPath: ObservedSlots.path(slot))
  }

  func noteWillChange(_ slot: Int) {
    observers?.willSet(self, keyPath: ObservedSlots.path(slot))
  }

  func noteDidChange(_ slot: Int) {
    observers?.didSet(self, keyPath: ObservedSlots.path(slot))
  }

  /// Runs `change`, which may change any property.
  func announcingAllChanges(_ change: () -> Void) {
    guard observers != nil else { return change() }
    for slot in descriptor.properties.indices { noteWillChange(slot) }
    change()
    for slot in descriptor.properties.indices { noteDidChange(slot) }
  }
}

private enum ObservedSlots {
  /// Made once: a key path with an argument takes memory.
  private static let first: [any KeyPath<ModelStorage, Int> & Sendable] = (0..<64).map(make)

  static func path(_ slot: Int) -> KeyPath<ModelStorage, Int> {
    if slot < first.count { return first[slot] }
    return make(slot)
  }

  private static func make(_ slot: Int) -> any KeyPath<ModelStorage, Int> & Sendable {
    \ModelStorage.[observed: slot]
  }
}
