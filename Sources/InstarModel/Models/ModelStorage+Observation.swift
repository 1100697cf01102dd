import Foundation
public import Observation

/// Reports reads and changes of properties to `withObservationTracking`. A change may come from code, from the other
/// side of a relationship, or from reading the row again.
///
/// Observers identify a property by its slot, because some changes know only the slot.
extension ModelStorage: Observable {
  fileprivate subscript(observed slot: ObservedSlot) -> Int { slot.number }

  func noteAccess(to slot: Int) {
    guard isObservable else { return }
    let path = ObservedSlots.path(slot)
    if observers == nil, TrackedReads.areKnown, let reads = TrackedReads.ofThread {
      observers = reads.observers { $0.access(self, keyPath: path) }
    } else {
      let observers = observers ?? ModelObservers()
      self.observers = observers
      observers.registrar.access(self, keyPath: path)
    }
  }

  func noteWillChange(_ slot: Int) {
    observers?.registrar.willSet(self, keyPath: ObservedSlots.path(slot))
  }

  func noteDidChange(_ slot: Int) {
    observers?.registrar.didSet(self, keyPath: ObservedSlots.path(slot))
  }

  /// Runs `change` and reports a change of every property.
  func announcingAllChanges(_ change: () -> Void) {
    guard observers != nil else { return change() }
    for slot in descriptor.properties.indices { noteWillChange(slot) }
    change()
    for slot in descriptor.properties.indices { noteDidChange(slot) }
  }
}

/// The observers of one model's properties.
///
/// An object, because the size of the registrar is not known until run time: in a storage it would make each access to
/// the variables behind it slower.
final class ModelObservers {
  let registrar = ObservationRegistrar()
}

/// Finds out which reads of a thread are tracked, so that only models that somebody observes get a registrar: making
/// one takes as long as reading a row.
///
/// Observation does not tell whether it tracks a read. But it hashes the key path of a tracked read, and the hash of a
/// key path includes its argument (`ObservedSlot`). So a read goes to a registrar that waits. If it was tracked, this
/// is the registrar of the model from then on.
private final class TrackedReads {
  private var waiting = ModelObservers()
  fileprivate var hasHashed = false

  private static let key: pthread_key_t? = {
    var key = pthread_key_t()
    let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { reads in
      if let reads { Unmanaged<TrackedReads>.fromOpaque(reads).release() }
    }
    return pthread_key_create(&key, release) == 0 ? key : nil
  }()

  /// Those of this thread; `nil` if the process has no key left.
  static var ofThread: TrackedReads? {
    guard let key else { return nil }
    if let known = pthread_getspecific(key) {
      return Unmanaged<TrackedReads>.fromOpaque(known).takeUnretainedValue()
    }
    let new = TrackedReads()
    pthread_setspecific(key, Unmanaged.passRetained(new).toOpaque())
    return new
  }

  /// Whether Observation hashes the path of a read that it tracks.
  static let areKnown: Bool = {
    guard let reads = ofThread else { return false }
    let registrar = ObservationRegistrar()
    return withObservationTracking {
      reads.hasHashed = false
      registrar.access(Sample(), keyPath: \Sample.[observed: ObservedSlot(number: 0)])
      return reads.hasHashed
    } onChange: {
    }
  }()

  /// Calls `read` with a registrar.
  ///
  /// - Returns: The observers with that registrar, if the read was tracked.
  func observers(of read: (ObservationRegistrar) -> Void) -> ModelObservers? {
    hasHashed = false
    read(waiting.registrar)
    guard hasHashed else { return nil }
    defer { waiting = ModelObservers() }
    return waiting
  }

  private final class Sample: Observable {
    subscript(observed slot: ObservedSlot) -> Int { slot.number }
  }
}

private struct ObservedSlot: Hashable, Sendable {
  let number: Int

  static func == (left: ObservedSlot, right: ObservedSlot) -> Bool { left.number == right.number }

  func hash(into hasher: inout Hasher) {
    hasher.combine(number)
    TrackedReads.ofThread?.hasHashed = true
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
    \ModelStorage.[observed: ObservedSlot(number: slot)]
  }
}
