import Foundation
import InstarSchema
import Observation

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
/// storage is. `context` is not nil exactly in the states inserted, fault, loaded and deleted, as long as the context
/// lives. Used by one thread at a time, as its context is.
public final class ModelStorage {
  enum State {
    case detached, inserted, fault, loaded, deleted, gone
  }

  let descriptor: ModelDescriptor
  var slots: ContiguousArray<Slot>
  var state: State = .detached
  /// The row's key (`isRowKey`), once the row is written.
  var key: Int64 = .min
  var changedSlots = SlotSet()
  /// The keys a to-many relationship had in the store, by slot: what a save compares with.
  var savedMembers: [Int: Set<Int64>] = [:]
  /// Set by an initializer that was given a value its type cannot encode; thrown once the model is in a context.
  var encodingError: (any Error)?
  /// Who watches the model's properties; made when a property is first read.
  var observers: ObservationRegistrar?
  /// Changes made from the other side of a relationship that were not saved yet.
  var pendingMembers: [Int: PendingMembers] = [:]
  weak var context: ModelContext?
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

  /// Called by a model that inherits from another one, with the storage that the initializer of the superclass filled.
  /// Its values, once it is done, are taken over into this storage, which alone is used from then on.
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

  var persistentIdentifier: PersistentIdentifier {
    PersistentIdentifier(
      entityName: descriptor.name, key: key,
      storeIdentifier: key.isRowKey ? context?.storeIdentifier(of: self) : nil)
  }

  // MARK: Attributes

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize(slot: Int, to value: some PersistentAttribute) {
    slots[slot] = value.slot
  }

  /// The value of a slot, read from the store when first asked for. Where it cannot be read, a placeholder, and the
  /// context's next save or fetch throws.
  public func value<Value: PersistentAttribute>(at slot: Int) -> Value {
    noteAccess(to: slot)
    if state == .fault { fill() }
    if let value = Value(slot: slots[slot]) { return value }
    if case .unloaded = slots[slot] {
      context?.fillUnloadedValues(of: self)
      if let value = Value(slot: slots[slot]) { return value }
    }
    context?.noteUnreadableValue(of: self, slot: slot)
    return Value.placeholder
  }

  /// Sets a slot, and notes the change in the context; an equal value is none.
  public func setValue(
    _ value: some PersistentAttribute, at slot: Int, of model: any PersistentModel
  ) {
    set(value.slot, at: slot, of: model)
  }

  private func set(_ new: Slot, at slot: Int, of model: any PersistentModel) {
    if state == .fault { fill() }
    // An equal value is no change: only dirty columns are written.
    if state == .loaded, slots[slot].isSameValue(as: new) { return }
    noteWillChange(slot)
    slots[slot] = new
    markChanged(slot, of: model)
    noteDidChange(slot)
  }

  /// What is in a slot as it is, whatever it is.
  func value(inSlot slot: Int) -> Slot { slots[slot] }

  func markChanged(_ slot: Int, of model: any PersistentModel) {
    guard state == .loaded else { return }
    if changedSlots.isEmpty { context?.noteChange(of: model) }
    changedSlots.insert(slot)
  }

  /// Reads the row of a fault.
  func fill() {
    context?.fill(self)
  }

  // MARK: Attributes of types with a raw value

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Value: RawRepresentable>(slot: Int, to value: Value)
  where Value.RawValue: PersistentAttribute {
    slots[slot] = value.rawValue.slot
  }

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Value: RawRepresentable>(slot: Int, to value: Value?)
  where Value.RawValue: PersistentAttribute {
    slots[slot] = value?.rawValue.slot ?? .null
  }

  /// The value of a slot, read from the store when first asked for. Where it cannot be read, a placeholder, and the
  /// context's next save or fetch throws.
  public func value<Value: RawRepresentable>(at slot: Int) -> Value
  where Value.RawValue: PersistentAttribute {
    value(at: slot) { Value.RawValue(slot: $0).flatMap(Value.init(rawValue:)) }
  }

  /// The value of a slot, read from the store when first asked for. Where it cannot be read, a placeholder, and the
  /// context's next save or fetch throws.
  public func value<Value: RawRepresentable>(at slot: Int) -> Value?
  where Value.RawValue: PersistentAttribute {
    value(at: slot) { slot -> Value?? in
      slot.isNull
        ? .some(nil) : Value.RawValue(slot: slot).flatMap(Value.init(rawValue:)).map { $0 }
    }
  }

  /// Sets a slot, and notes the change in the context; an equal value is none.
  public func setValue<Value: RawRepresentable>(
    _ value: Value, at slot: Int, of model: any PersistentModel
  ) where Value.RawValue: PersistentAttribute {
    set(value.rawValue.slot, at: slot, of: model)
  }

  /// Sets a slot, and notes the change in the context; an equal value is none.
  public func setValue<Value: RawRepresentable>(
    _ value: Value?, at slot: Int, of model: any PersistentModel
  ) where Value.RawValue: PersistentAttribute {
    set(value?.rawValue.slot ?? .null, at: slot, of: model)
  }

  // MARK: Attributes of Codable types, and optional ones of them

  /// Sets a slot in a model's initializer: no change is noted.
  @_disfavoredOverload
  public func initialize<Value: Codable>(slot: Int, to value: Value) {
    slots[slot] = encoded(value, at: slot)
  }

  /// The value of a slot, read from the store when first asked for. Where it cannot be read, a placeholder, and the
  /// context's next save or fetch throws.
  @_disfavoredOverload
  public func value<Value: Codable>(at slot: Int) -> Value {
    guard let form = attribute(at: slot)?.form else { return value(at: slot) { _ in nil } }
    return value(at: slot) { form.value(of: $0, asOptional: Value.self) }
  }

  /// Sets a slot, and notes the change in the context; an equal value is none.
  @_disfavoredOverload
  public func setValue<Value: Codable>(
    _ value: Value, at slot: Int, of model: any PersistentModel
  ) {
    set(encoded(value, at: slot), at: slot, of: model)
  }

  private func attribute(at slot: Int) -> Schema.PropertyMetadata.AttributeKind? {
    if case .attribute(let kind) = descriptor.properties[slot].kind { kind } else { nil }
  }

  private func encoded<Value: Codable>(_ value: Value, at slot: Int) -> Slot {
    encoded(at: slot) { try attribute(at: slot)?.form?.slot(ofOptional: value) ?? .null }
  }

  /// A value that its type cannot encode is kept as NULL; the context's next fetch or save throws.
  private func encoded(at slot: Int, _ encode: () throws -> Slot) -> Slot {
    do {
      return try encode()
    } catch {
      let error = unstorable(error, at: slot)
      if let context { context.note(error) } else { encodingError = encodingError ?? error }
      return .null
    }
  }

  private func unstorable(_ error: any Error, at slot: Int) -> InstarError {
    let cause = (error as? InstarError)?.cause ?? "\(error)"
    return InstarError(
      .invalidModel,
      "cannot store '\(descriptor.properties[slot].name)' of \(descriptor.name) \(key)",
      cause: cause, next: (error as? InstarError)?.next)
  }

  private func value<Value>(at slot: Int, _ convert: (Slot) -> Value?) -> Value {
    noteAccess(to: slot)
    if state == .fault { fill() }
    if case .unloaded = slots[slot] { context?.fillUnloadedValues(of: self) }
    if let value = convert(slots[slot]) { return value }
    // Rows are checked when they are read, so there is none: it was deleted, or never was.
    context?.noteUnreadableValue(of: self, slot: slot)
    if let value = attribute(at: slot)?.defaultSlot().flatMap(convert)
      ?? Placeholder.value(of: Value.self)
    {
      return value
    }
    var error = unreadable(slot)
    error.next = "set it before it is read, give it an initial value, or make it optional"
    UnansweredRead.end(with: error)
  }

  /// Why a property cannot be read: the row is gone, has no value, or a value that is not of the property's type.
  ///
  /// - Parameter stored: The stored value, where it is not in the slot.
  func unreadable(_ slot: Int, stored: Slot? = nil) -> InstarError {
    let name = descriptor.properties[slot].name
    var error = InstarError(
      .missingRequiredValues, "cannot read \(descriptor.name) \(key)",
      cause: "'\(name)' has no value")
    let stored = stored ?? slots[slot]
    if state == .gone {
      error.cause = "'\(name)' was read after the row was deleted"
    } else if let kind = attribute(at: slot),
      let value = UnknownEnumValue(in: stored, of: kind.valueType)
    {
      error.cause =
        "'\(name)\(value.path)' holds \(value.stored); \(value.type) accepts \(value.accepted)"
      error.next = "add the stored value to \(value.type) in this version of the models"
    } else if let kind = attribute(at: slot), !stored.isNull {
      error.cause = "the value stored in '\(name)' is not of type \(kind.valueType)"
      if let reason = kind.refusal?(stored) { error.cause += ": \(reason)" }
    }
    return error
  }

  // MARK: Attributes stored by a value transformer

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Value>(slot: Int, toTransformable value: Value) {
    slots[slot] = transformed(value, at: slot)
  }

  /// The value of a slot, read from the store when first asked for. Where it cannot be read, a placeholder, and the
  /// context's next save or fetch throws.
  public func transformableValue<Value>(at slot: Int) -> Value {
    let transformation = attribute(at: slot)?.transformation
    return value(at: slot) { transformation?.value(of: $0, as: Value.self) }
  }

  /// Sets a slot, and notes the change in the context; a value stored as equal bytes is none.
  public func setTransformableValue<Value>(
    _ value: Value, at slot: Int, of model: any PersistentModel
  ) {
    set(transformed(value, at: slot), at: slot, of: model)
  }

  private func transformed<Value>(_ value: Value, at slot: Int) -> Slot {
    encoded(at: slot) { try attribute(at: slot)?.transformation?.slot(of: value) ?? .null }
  }

  // MARK: Types that cannot be stored

  // Chosen where no other overload fits. Such a model does not compile, because the description of the property does not
  // (`Schema.PropertyMetadata`); these keep the compiler from saying so at each access, too.

  @_disfavoredOverload
  public func initialize<Value>(slot: Int, to value: Value) {
    initialize(slot: slot, toTransformable: value)
  }

  @_disfavoredOverload
  public func value<Value>(at slot: Int) -> Value { transformableValue(at: slot) }

  @_disfavoredOverload
  public func setValue<Value>(_ value: Value, at slot: Int, of model: any PersistentModel) {
    setTransformableValue(value, at: slot, of: model)
  }

  // MARK: To-one relationships

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Destination: PersistentModel>(slot: Int, to value: Destination) {
    slots[slot] = .model(value)
  }

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Destination: PersistentModel>(slot: Int, to value: Destination?) {
    slots[slot] = value.map { .model($0) } ?? .null
  }

  /// The model of a to-one relationship; `nil` where there is none.
  public func value<Destination: PersistentModel>(at slot: Int) -> Destination? {
    toOne(at: slot) as? Destination
  }

  /// The model of a required to-one relationship. Where the row has none, an empty one, and the context's next
  /// save or fetch throws.
  public func value<Destination: PersistentModel>(at slot: Int) -> Destination {
    if let model = toOne(at: slot) as? Destination { return model }
    context?.noteUnreadableValue(of: self, slot: slot)
    return Destination(_modelStorage: ModelStorage(Destination._modelDescriptor))
  }

  /// Sets a relationship, and its inverse at the other end; notes the change in the context.
  public func setValue<Destination: PersistentModel>(
    _ value: Destination?, at slot: Int, of model: any PersistentModel
  ) {
    setToOne(value, at: slot, of: model)
  }

  /// Sets a relationship, and its inverse at the other end; notes the change in the context.
  public func setValue<Destination: PersistentModel>(
    _ value: Destination, at slot: Int, of model: any PersistentModel
  ) {
    setToOne(value, at: slot, of: model)
  }

  // MARK: To-many relationships

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Destination: PersistentModel>(slot: Int, to value: [Destination]) {
    slots[slot] = .models(value)
  }

  /// Sets a slot in a model's initializer: no change is noted.
  public func initialize<Destination: PersistentModel>(slot: Int, to value: [Destination]?) {
    slots[slot] = .models(value ?? [])
  }

  /// The models of a to-many relationship, read from the store when first asked for.
  public func value<Destination: PersistentModel>(at slot: Int) -> [Destination] {
    toMany(at: slot).compactMap { $0 as? Destination }
  }

  /// The models of a to-many relationship, read from the store when first asked for.
  public func value<Destination: PersistentModel>(at slot: Int) -> [Destination]? {
    toMany(at: slot).compactMap { $0 as? Destination }
  }

  /// Sets a relationship, and its inverse at the other end; notes the change in the context.
  public func setValue<Destination: PersistentModel>(
    _ value: [Destination], at slot: Int, of model: any PersistentModel
  ) {
    setToMany(value, at: slot, of: model)
  }

  /// Sets a relationship, and its inverse at the other end; notes the change in the context.
  public func setValue<Destination: PersistentModel>(
    _ value: [Destination]?, at slot: Int, of model: any PersistentModel
  ) {
    setToMany(value ?? [], at: slot, of: model)
  }
}

/// The backing property that `@Model` puts beside each persisted one; the value itself is in the model's storage.
@frozen
public struct PersistedProperty: Sendable {
  /// Holds nothing.
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
