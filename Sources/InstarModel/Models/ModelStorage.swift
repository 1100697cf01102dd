internal import CInstar
import Foundation
import InstarSchema
import Observation
import Synchronization

/// The values of one model by slot, and its state in a context.
///
/// States:
/// - `detached`: created by an initializer, without a context.
/// - `inserted`: in a context; `save()` will write its row.
/// - `fault`: the row exists; the first access reads its values.
/// - `loaded`: the row exists and its values are in memory; changed slots are marked.
/// - `deleted`: `save()` will delete the row.
/// - `gone`: the row was deleted, or the context was released.
///
/// Invariants: only the model retains its storage, so `model` is valid as long as the storage exists. Code that retains
/// storages while relationships change retains their models too, unless the context is gone. `context` is not nil
/// exactly in the states inserted, fault, loaded and deleted, as long as the context exists. Only one thread at a time
/// uses a storage, as its context.
public final class ModelStorage {
  enum State {
    case detached, inserted, fault, loaded, deleted, gone
  }

  let descriptor: ModelDescriptor
  // The checks that accesses of a variable do not overlap would take as long as the accesses themselves. Other code
  // runs during one only if a slot loses the last reference to an object: a model, whose `deinit` may use this storage,
  // or data with a deallocator of the app's. By then the new value is in the slot.
  @exclusivity(unchecked) var slots: ContiguousArray<Slot>
  var state: State = .detached
  /// Whether a row has been written for the model, whose key is `key`. The key itself cannot tell, because in ordinary
  /// tables any integer is one.
  private(set) var hasRow = false
  /// Whether reads are reported to observers. In the closure of a stage nothing observes.
  var isObservable = true
  /// Whether the model became a fault only to save memory (`LargeFetch`).
  var isOfLargeFetch = false
  /// Whether the context was released while it had the row.
  var hasLostContext = false
  /// Whether another context deleted the row while the model had changes, so that a save of it throws. Another row may
  /// have its key, so nothing is read or written by it any more.
  var hasLostRow = false
  /// Whether another context saved after the app assigned members. These are read again after the save.
  var hasOutdatedMembers = false
  /// The row's key; without meaning before there is a row.
  @exclusivity(unchecked) private(set) var key: Int64 = 0
  /// The key in the identifier until there is a row; 0 until something asks for it.
  private(set) var temporaryKey: Int64 = 0
  var changedSlots = SlotSet()
  /// The keys of a to-many relationship in the store, by slot. A save compares with them.
  var savedMembers: [Int: Set<Int64>] = [:]
  /// The error of an initializer whose argument cannot be encoded. The context throws it after the model is inserted.
  var encodingError: (any Error)?
  /// The observers of the model's properties; created when a property is first read while reads are tracked.
  var observers: ModelObservers?
  /// Unsaved changes from the other side of a relationship.
  var pendingMembers: [Int: PendingMembers] = [:]
  weak var context: ModelContext?
  /// The entity of the model in the context's stores; `nil` without a context, or if they do not have the class.
  var entity: ModelEntity?
  /// Where the model is in the context's list of inserted, changed or deleted models.
  var position = -1
  private unowned(unsafe) var unretainedModel: (any PersistentModel)?

  /// The model; `nil` while it is freed: its `deinit` must not find it, because retaining it would not keep it.
  var model: (any PersistentModel)? {
    get {
      guard let model = unretainedModel, !isDeallocating(model) else { return nil }
      return model
    }
    set { unretainedModel = newValue }
  }

  final class PendingMembers {
    let added: Members
    let removed: Members

    init() {
      added = Members()
      removed = Members()
    }

    init(copying other: PendingMembers) {
      added = Members(other.added.all)
      removed = Members(other.removed.all)
    }
  }

  /// Creates an empty storage. The code that `@Model` emits calls it first in a model's initializer.
  public init(_ descriptor: ModelDescriptor) {
    self.descriptor = descriptor
    slots =
      RowObject.isFirstStorage(descriptor)
      ? [] : ContiguousArray(all: .null, count: descriptor.properties.count)
  }

  /// Creates the storage of a row.
  init(_ entity: ModelEntity, key: Int64, slots: ContiguousArray<Slot>) {
    descriptor = entity.descriptor
    self.slots = slots
    self.key = key
    hasRow = true
    self.entity = entity
  }

  /// Moves the values that the superclass's initializer set into this storage. From then on only this one is used.
  public func joined(with inherited: ModelStorage) -> ModelStorage {
    if inherited === self || inherited.slots.isEmpty { return self }
    for slot in inherited.slots.indices where slots.indices.contains(slot) {
      slots[slot] = inherited.slots[slot]
    }
    inherited.slots = []
    return self
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

  /// Whether the slots are those of a row, with unsaved changes.
  var hasRowInMemory: Bool { state == .loaded || state == .deleted }

  var persistentIdentifier: PersistentIdentifier {
    guard hasRow else {
      return PersistentIdentifier(
        entityName: descriptor.name, key: takeTemporaryKey(), storeIdentifier: nil)
    }
    let store = entity?.store.uuid ?? context?.storeIdentifier(of: self)
    return PersistentIdentifier(
      entityName: descriptor.name, key: key, storeIdentifier: store ?? "")
  }

  // MARK: Keys

  /// Notes the row that a save writes for the model.
  func setRow(_ key: Int64) {
    self.key = key
    hasRow = true
  }

  /// Forgets the row that a failed save was to write. The identifier is the temporary one again.
  func removeRow() { hasRow = false }

  /// The key that a reference to the model is stored as; `nil` if it references nothing.
  var referenceKey: Int64? { isDeleted || !hasRow ? nil : key }

  /// What errors call the model: by its key, which a new one does not have yet.
  var title: String {
    hasRow && state != .inserted ? "\(descriptor.name) \(key)" : "a new \(descriptor.name)"
  }

  /// Begins at a random number: an identifier that another process encoded must not name a model of this one.
  private static let lastTemporaryKey = Atomic<Int64>(.random(in: 1...Int64.max / 2))

  /// Returns the temporary key, which no other model of the process has.
  @discardableResult
  func takeTemporaryKey() -> Int64 {
    if temporaryKey == 0 {
      temporaryKey = Self.lastTemporaryKey.wrappingAdd(1, ordering: .relaxed).newValue
    }
    return temporaryKey
  }

  // MARK: Attributes

  /// Sets a slot in a model's initializer, without marking a change.
  public func initialize(slot: Int, to value: some PersistentAttribute) {
    if slots.isEmpty { return }
    slots[slot] = value.slot
  }

  /// Returns the value of a slot and reads the row at the first access. If the value cannot be read, returns a
  /// placeholder, and the context's next fetch or save throws.
  @_specialize(where Value == String)
  @_specialize(where Value == Int)
  @_specialize(where Value == Double)
  @_specialize(where Value == Bool)
  @_specialize(where Value == Date)
  @_specialize(where Value == String?)
  @_specialize(where Value == Int?)
  @_specialize(where Value == Double?)
  @_specialize(where Value == Date?)
  public func value<Value: PersistentAttribute>(at slot: Int) -> Value {
    noteAccess(to: slot)
    if state == .fault { fillForCode() }
    return convertedValue(at: slot)
  }

  // Not inlined: a function with an optional of a type that it does not know looks that type up at each call.
  @inline(never) private func convertedValue<Value: PersistentAttribute>(at slot: Int) -> Value {
    if let value = Value(slot: slots[slot]) { return value }
    if case .unloaded = slots[slot] {
      context?.fillUnloadedValues(of: self)
      if let value = Value(slot: slots[slot]) { return value }
    }
    noteUnreadable(slot)
    return Value.placeholder
  }

  /// Sets a slot and marks the change in the context. An equal value is not a change.
  public func setValue(
    _ value: some PersistentAttribute, at slot: Int, of model: any PersistentModel
  ) {
    set(value.slot, at: slot, of: model)
  }

  private func set(_ new: Slot, at slot: Int, of model: any PersistentModel) {
    fillForChange()
    // A save writes only changed columns.
    if state == .loaded, slots[slot].isSameValue(as: new) {
      if context?.savesEqualValues == true { markChanged(slot, of: model) }
      return
    }
    noteWillChange(slot)
    slots[slot] = new
    markChanged(slot, of: model)
    noteDidChange(slot)
  }

  /// Returns the content of a slot without reading the row.
  func value(inSlot slot: Int) -> Slot { slots[slot] }

  func markChanged(_ slot: Int, of model: any PersistentModel) {
    guard hasRowInMemory else { return }
    // If a deleted model is inserted again, `save()` writes what was changed meanwhile.
    // A model that its own `deinit` changes is not saved: nothing can keep it.
    if state == .loaded, changedSlots.isEmpty, self.model != nil { context?.noteChange(of: model) }
    changedSlots.insert(slot)
  }

  /// Makes a model with a row changeable whose values cannot be read now.
  func awaitValues() {
    slots = ContiguousArray(all: .unloaded, count: slots.count)
    for slot in entity?.slotsInMemory ?? [] {
      slots[slot] = descriptor.properties[slot].valueInMemory
    }
    state = .loaded
  }

  /// Reads the row of a fault.
  func fill() {
    context?.fill(self)
  }

  /// Reads the row of a fault because the app's code uses a property. Only accessors call it.
  func fillForCode() {
    context?.fillForCode(self)
  }

  /// Reads the row of a fault because the app's code sets a property.
  private func fillForChange() {
    if state == .fault { context?.fillForChange(self) }
    // Reading a property before may have found that the row does not exist.
    if state == .gone { context?.keepChanges(ofMissing: self) }
  }

  // MARK: Attributes of types with a raw value

  /// Sets a slot in a model's initializer, without marking a change.
  public func initialize<Value: RawRepresentable>(slot: Int, to value: Value)
  where Value.RawValue: PersistentAttribute {
    if slots.isEmpty { return }
    slots[slot] = value.rawValue.slot
  }

  /// Sets a slot in a model's initializer, without marking a change.
  public func initialize<Value: RawRepresentable>(slot: Int, to value: Value?)
  where Value.RawValue: PersistentAttribute {
    if slots.isEmpty { return }
    slots[slot] = value?.rawValue.slot ?? .null
  }

  /// Returns the value of a slot and reads the row at the first access. If the value cannot be read, returns a
  /// placeholder, and the context's next fetch or save throws.
  public func value<Value: RawRepresentable>(at slot: Int) -> Value
  where Value.RawValue: PersistentAttribute {
    value(at: slot) { Value.RawValue(slot: $0).flatMap(Value.init(rawValue:)) }
  }

  /// Returns the value of a slot and reads the row at the first access. If the value cannot be read, returns a
  /// placeholder, and the context's next fetch or save throws.
  public func value<Value: RawRepresentable>(at slot: Int) -> Value?
  where Value.RawValue: PersistentAttribute {
    value(at: slot) { slot -> Value?? in
      slot.isNull
        ? .some(nil) : Value.RawValue(slot: slot).flatMap(Value.init(rawValue:)).map { $0 }
    }
  }

  /// Sets a slot and marks the change in the context. An equal value is not a change.
  public func setValue<Value: RawRepresentable>(
    _ value: Value, at slot: Int, of model: any PersistentModel
  ) where Value.RawValue: PersistentAttribute {
    set(value.rawValue.slot, at: slot, of: model)
  }

  /// Sets a slot and marks the change in the context. An equal value is not a change.
  public func setValue<Value: RawRepresentable>(
    _ value: Value?, at slot: Int, of model: any PersistentModel
  ) where Value.RawValue: PersistentAttribute {
    set(value?.rawValue.slot ?? .null, at: slot, of: model)
  }

  // MARK: All other types

  // The description of the property says how its values are stored. The overloads above are faster, and `@Model` calls
  // the methods below by their own names for attributes with a value transformer, which can be of any type.

  /// Sets a slot in a model's initializer, without marking a change.
  @_disfavoredOverload
  public func initialize<Value>(slot: Int, to value: Value) {
    initialize(slot: slot, toDescribed: value)
  }

  /// Sets a slot in a model's initializer, without marking a change.
  public func initialize<Value>(slot: Int, toDescribed value: Value) {
    if slots.isEmpty { return }
    guard case .relationship(let relationship) = descriptor.properties[slot].kind else {
      slots[slot] = encoded(value, at: slot)
      return
    }
    if relationship.isToOne {
      slots[slot] = (value as? any PersistentModel).map { .model($0) } ?? .null
    } else {
      let models = (value as? any ModelArray)?.models ?? []
      slots[slot] = .models(Members(Members.withoutRepetition(models)))
    }
  }

  /// Returns the value of a slot and reads the row at the first access. If the value cannot be read, returns a
  /// placeholder, and the context's next fetch or save throws.
  @_disfavoredOverload
  public func value<Value>(at slot: Int) -> Value { describedValue(at: slot) }

  /// Returns the value of a slot and reads the row at the first access. If the value cannot be read, returns a
  /// placeholder, and the context's next fetch or save throws.
  public func describedValue<Value>(at slot: Int) -> Value {
    switch descriptor.properties[slot].kind {
    case .attribute(let kind): value(at: slot) { kind.value(of: $0, as: Value.self) }
    case .relationship(let kind): related(kind.destination, at: slot, isToOne: kind.isToOne)
    }
  }

  /// Sets a slot and marks the change in the context. An equal value is not a change. Setting a relationship also sets
  /// its inverse.
  @_disfavoredOverload
  public func setValue<Value>(_ value: Value, at slot: Int, of model: any PersistentModel) {
    setDescribedValue(value, at: slot, of: model)
  }

  /// Sets a slot and marks the change in the context. An equal value is not a change. Setting a relationship also sets
  /// its inverse.
  public func setDescribedValue<Value>(
    _ value: Value, at slot: Int, of model: any PersistentModel
  ) {
    guard case .relationship(let relationship) = descriptor.properties[slot].kind else {
      return set(encoded(value, at: slot), at: slot, of: model)
    }
    fillForChange()
    func setRelationship() {
      if relationship.isToOne {
        setToOne(value as? any PersistentModel, at: slot, of: model)
      } else {
        let models = value as? any ModelArray
        setToMany(models ?? MixedModels([]), at: slot, of: model)
      }
    }
    // A model that loses its owner may be freed, and its `deinit` may read others while one side is set.
    if let context { context.working(setRelationship) } else { setRelationship() }
  }

  /// - Parameter type: The class of the related models. `Value` is this class, its optional, an array or its optional.
  private func related<Destination: PersistentModel, Value>(
    _ type: Destination.Type, at slot: Int, isToOne: Bool
  ) -> Value {
    // Generic, because a cast of a `nil` whose type is known to be an optional always fails.
    func cast<Source>(_ source: Source) -> Value? { source as? Value }
    func declared(_ model: any PersistentModel) -> Destination? { self.declared(model, at: slot) }
    if state == .fault { fillForCode() }
    let one = isToOne ? toOne(at: slot) : nil
    let found =
      isToOne ? cast(one.flatMap(declared)) : cast(toMany(type, at: slot))
    if let found { return found }
    // The row of a required relationship has none, unless `declared` has noted another error.
    if one == nil { noteUnreadable(slot) }
    let empty = RowObject.make(ModelStorage(Destination._modelDescriptor))
    if let empty = empty as? Value { return empty }
    UnansweredRead.end(with: unreadable(slot))
  }

  func attribute(at slot: Int) -> Schema.PropertyMetadata.AttributeKind? {
    if case .attribute(let kind) = descriptor.properties[slot].kind { kind } else { nil }
  }

  /// Returns the encoded value, or NULL if encoding fails. The context's next fetch or save then throws.
  private func encoded<Value>(_ value: Value, at slot: Int) -> Slot {
    do {
      return try attribute(at: slot)?.slot(of: value) ?? .null
    } catch {
      let error = unstorable(error, at: slot)
      if let context { context.note(error) } else { encodingError = encodingError ?? error }
      return .null
    }
  }

  private func value<Value>(at slot: Int, _ convert: (Slot) -> Value?) -> Value {
    noteAccess(to: slot)
    if state == .fault { fillForCode() }
    if case .unloaded = slots[slot] { context?.fillUnloadedValues(of: self) }
    // A copy, because the code of a type may use other models, and then this one may become a fault.
    let stored = slots[slot]
    if let value = convert(stored) { return value }
    // Reading a row checks its values, except in the closure of a stage. Otherwise the row was deleted or never had a
    // value.
    noteUnreadable(slot)
    if let value = attribute(at: slot)?.defaultSlot().flatMap(convert)
      ?? Placeholder.value(of: Value.self)
    {
      return value
    }
    UnansweredRead.end(with: unreadable(slot))
  }
}

/// Whether an object is being freed.
private func isDeallocating(_ object: AnyObject) -> Bool {
  swift_isDeallocating(Unmanaged.passUnretained(object).toOpaque())
}
