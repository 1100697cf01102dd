import Foundation
import InstarSchema

/// The state of one model object: its values by slot, and its place in a context.
///
/// States:
/// - `detached`: made by an initializer; in no context.
/// - `inserted`: in a context; `save()` will write its row.
/// - `fault`: the row exists; its values are read at the first access.
/// - `loaded`: the row exists and its values are here; changed slots are marked.
/// - `deleted`: `save()` will delete the row.
/// - `gone`: the row was deleted, or the context is gone.
///
/// Invariants: a storage belongs to exactly one model, which alone keeps it alive, so `model` is valid as long as the
/// storage is. `context` is not nil exactly in the states inserted, fault, loaded and deleted, and is cleared by the
/// context before it goes away. Used by one thread at a time, as its context is.
public final class ModelStorage {
  enum State {
    case detached, inserted, fault, loaded, deleted, gone
  }

  let descriptor: ModelDescriptor
  var slots: ContiguousArray<Slot>
  var state: State = .detached
  /// `Z_PK`; negative until the row is written.
  var key: Int64 = 0
  var changedSlots = SlotSet()
  /// The keys a to-many relationship had in the store, by slot: what a save compares with.
  var savedMembers: [Int: Set<Int64>] = [:]
  /// Changes made from the other side of a many-to-many relationship that was not read here yet.
  var pendingMembers: [Int: PendingMembers] = [:]
  unowned(unsafe) var context: ModelContext?
  unowned(unsafe) var model: (any PersistentModel)?

  struct PendingMembers {
    var added: [any PersistentModel] = []
    var removed: Set<ObjectIdentifier> = []
  }

  /// Called by the code that `@Model` emits, as the first step of a model's initializer.
  public init(_ descriptor: ModelDescriptor) {
    self.descriptor = descriptor
    slots = ContiguousArray(repeating: .null, count: descriptor.properties.count)
  }

  deinit { context?.forget(self) }

  var hasChanges: Bool {
    switch state {
    case .inserted, .deleted: true
    case .loaded: !changedSlots.isEmpty
    case .detached, .fault, .gone: false
    }
  }

  var isDeleted: Bool { state == .deleted || state == .gone }

  var persistentIdentifier: PersistentIdentifier {
    PersistentIdentifier(
      entityName: descriptor.name, key: key,
      storeIdentifier: key > 0 ? context?.container.store.uuid : nil)
  }

  // MARK: Attributes

  public func initialize(slot: Int, to value: some PersistentAttribute) {
    slots[slot] = value.slot
  }

  public func value<Value: PersistentAttribute>(at slot: Int) -> Value {
    if state == .fault { fill() }
    if let value = Value(slot: slots[slot]) { return value }
    if case .unloaded = slots[slot] {
      context?.fillUnloadedValues(of: self)
      if let value = Value(slot: slots[slot]) { return value }
    }
    context?.noteUnreadableValue(of: self, slot: slot)
    return Value.placeholder
  }

  public func setValue(
    _ value: some PersistentAttribute, at slot: Int, of model: any PersistentModel
  ) {
    if state == .fault { fill() }
    let new = value.slot
    guard state == .loaded else {
      slots[slot] = new
      return
    }
    // An equal value is no change: only dirty columns are written.
    if slots[slot].isSameValue(as: new) { return }
    slots[slot] = new
    markChanged(slot, of: model)
  }

  func markChanged(_ slot: Int, of model: any PersistentModel) {
    guard state == .loaded else { return }
    if changedSlots.isEmpty { context?.noteChange(of: model) }
    changedSlots.insert(slot)
  }

  /// Reads the row of a fault.
  func fill() {
    context?.fill(self)
  }

  // MARK: To-one relationships

  public func initialize<Destination: PersistentModel>(slot: Int, to value: Destination) {
    slots[slot] = .model(value)
  }

  public func initialize<Destination: PersistentModel>(slot: Int, to value: Destination?) {
    slots[slot] = value.map { .model($0) } ?? .null
  }

  public func value<Destination: PersistentModel>(at slot: Int) -> Destination? {
    toOne(at: slot) as? Destination
  }

  public func value<Destination: PersistentModel>(at slot: Int) -> Destination {
    if let model = toOne(at: slot) as? Destination { return model }
    context?.noteUnreadableValue(of: self, slot: slot)
    return Destination(_modelStorage: ModelStorage(Destination._modelDescriptor))
  }

  public func setValue<Destination: PersistentModel>(
    _ value: Destination?, at slot: Int, of model: any PersistentModel
  ) {
    setToOne(value, at: slot, of: model)
  }

  public func setValue<Destination: PersistentModel>(
    _ value: Destination, at slot: Int, of model: any PersistentModel
  ) {
    setToOne(value, at: slot, of: model)
  }

  // MARK: To-many relationships

  public func initialize<Destination: PersistentModel>(slot: Int, to value: [Destination]) {
    slots[slot] = .models(value)
  }

  public func initialize<Destination: PersistentModel>(slot: Int, to value: [Destination]?) {
    slots[slot] = .models(value ?? [])
  }

  public func value<Destination: PersistentModel>(at slot: Int) -> [Destination] {
    toMany(at: slot).compactMap { $0 as? Destination }
  }

  public func value<Destination: PersistentModel>(at slot: Int) -> [Destination]? {
    toMany(at: slot).compactMap { $0 as? Destination }
  }

  public func setValue<Destination: PersistentModel>(
    _ value: [Destination], at slot: Int, of model: any PersistentModel
  ) {
    setToMany(value, at: slot, of: model)
  }

  public func setValue<Destination: PersistentModel>(
    _ value: [Destination]?, at slot: Int, of model: any PersistentModel
  ) {
    setToMany(value ?? [], at: slot, of: model)
  }
}

/// The backing property that `@Model` puts beside each persisted one; the value itself is in the model's storage.
@frozen
public struct PersistedProperty: Sendable {
  public init() {}
}

/// Which slots of a model changed.
struct SlotSet {
  private var low: UInt64 = 0
  /// Slots from 64 on; few models have them.
  private var high: Set<Int> = []

  var isEmpty: Bool { low == 0 && high.isEmpty }

  func contains(_ slot: Int) -> Bool {
    slot < 64 ? low & (1 << UInt64(slot)) != 0 : high.contains(slot)
  }

  mutating func insert(_ slot: Int) {
    if slot < 64 { low |= 1 << UInt64(slot) } else { high.insert(slot) }
  }

  mutating func removeAll() {
    low = 0
    high.removeAll()
  }
}
