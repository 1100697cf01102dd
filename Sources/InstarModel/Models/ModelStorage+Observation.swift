public import Observation

/// Reports reads and changes of properties to `withObservationTracking`. A change may come from code, from the other
/// side of a relationship, or from reading the row again.
///
/// Observers identify a property by its slot, because some changes know only the slot.
extension ModelStorage: Observable {
  fileprivate subscript(observed slot: Int) -> Int { slot }

  func noteAccess(to slot: Int) {
    guard isObservable else { return }
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

  /// Runs `change` and reports a change of every property.
  func announcingAllChanges(_ change: () -> Void) {
    guard observers != nil else { return change() }
    for slot in descriptor.properties.indices { noteWillChange(slot) }
    change()
    for slot in descriptor.properties.indices { noteDidChange(slot) }
  }
}

private enum ObservedSlots {
  /// Created once, because each key path with an argument takes memory.
  private static let first: [any KeyPath<ModelStorage, Int> & Sendable] = (0..<64).map(make)

  static func path(_ slot: Int) -> KeyPath<ModelStorage, Int> {
    if slot < first.count { return first[slot] }
    return make(slot)
  }

  private static func make(_ slot: Int) -> any KeyPath<ModelStorage, Int> & Sendable {
    \ModelStorage.[observed: slot]
  }
}
