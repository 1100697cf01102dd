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
    if observers == nil, let reads = TrackedReads.ofProcess {
      observers = reads.observers(ofRead: slot, self)
    } else {
      let observers = observers ?? ModelObservers()
      self.observers = observers
      observers.registrar.access(self, keyPath: ObservedSlots.shared.path(slot))
    }
  }

  func noteWillChange(_ slot: Int) {
    observers?.registrar.willSet(self, keyPath: ObservedSlots.shared.path(slot))
  }

  func noteDidChange(_ slot: Int) {
    observers?.registrar.didSet(self, keyPath: ObservedSlots.shared.path(slot))
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
  /// Whether Observation has hashed the path of a read while these observers waited for one.
  fileprivate var hasTrackedRead = false
}

/// Finds out which reads are tracked, so that only models that somebody observes get a registrar: making one takes as
/// long as reading a row.
///
/// Observation does not tell whether it tracks a read. But it hashes the key path of a tracked read, and the hash of a
/// key path includes its argument (`ObservedSlot`). So a read goes to the registrar that waits in its thread. If it was
/// tracked, this is the registrar of the model from then on.
///
/// Every read of a property comes here, so what it needs is together in one constant.
private struct TrackedReads {
  /// Holds the observers that wait in a thread.
  private let key: pthread_key_t
  private let slots = ObservedSlots.shared

  /// `nil` if the process has no key left, or Observation does not hash the path of a read that it tracks.
  static let ofProcess: TrackedReads? = {
    guard let key else { return nil }
    let reads = TrackedReads(key: key)
    return withObservationTracking {
      reads.observers(of: Sample(), \Sample.[observed: ObservedSlot(number: 0)]) != nil
    } onChange: {
    } ? reads : nil
  }()

  private static let key: pthread_key_t? = {
    var key = pthread_key_t()
    let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { waiting in
      if let waiting { Unmanaged<ModelObservers>.fromOpaque(waiting).release() }
    }
    return pthread_key_create(&key, release) == 0 ? key : nil
  }()

  /// Reports the read of a slot to the registrar that waits.
  ///
  /// - Returns: The observers with that registrar, if the read was tracked.
  func observers(ofRead slot: Int, _ storage: ModelStorage) -> ModelObservers? {
    observers(of: storage, slots.path(slot))
  }

  private func observers<Subject: Observable>(
    of subject: Subject, _ path: KeyPath<Subject, Int>
  ) -> ModelObservers? {
    let waiting = waitingObservers
    let isTracked = waiting._withUnsafeGuaranteedRef { waiting in
      waiting.hasTrackedRead = false
      waiting.registrar.access(subject, keyPath: path)
      return waiting.hasTrackedRead
    }
    guard isTracked else { return nil }
    pthread_setspecific(key, nil)
    return waiting.takeRetainedValue()
  }

  /// Those of this thread.
  private var waitingObservers: Unmanaged<ModelObservers> {
    if let known = pthread_getspecific(key) { return Unmanaged.fromOpaque(known) }
    let new = Unmanaged.passRetained(ModelObservers())
    pthread_setspecific(key, new.toOpaque())
    return new
  }

  /// Notes that Observation has hashed the path of a read.
  static func noteHash() {
    guard let key, let waiting = pthread_getspecific(key) else { return }
    Unmanaged<ModelObservers>.fromOpaque(waiting).takeUnretainedValue().hasTrackedRead = true
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
    TrackedReads.noteHash()
  }
}

private struct ObservedSlots {
  static let shared = ObservedSlots()

  /// Created once, because each key path with an argument takes memory.
  private let first = (0..<64).map(make)

  func path(_ slot: Int) -> KeyPath<ModelStorage, Int> {
    if slot < first.count { return first[slot] }
    return Self.make(slot)
  }

  private static func make(_ slot: Int) -> any KeyPath<ModelStorage, Int> & Sendable {
    \ModelStorage.[observed: ObservedSlot(number: slot)]
  }
}
