public import InstarSchema
import Synchronization

/// What the SDK knows of one model class: its properties by slot, and how its relationships pair up with those of other
/// classes. One instance for each class, made when the class is first used, never changed.
public final class ModelDescriptor: @unchecked Sendable {
  // Everything but `inverses` and `madeEntity` is immutable; these have their own locks. Not marked Sendable only because
  // metatypes and key paths are not.

  /// The name of the entity: the class's own name, without the types around it.
  public let name: String
  let type: any PersistentModel.Type
  /// The model the class inherits from.
  let superclass: ModelDescriptor?
  /// Those of the superclass first, in the same slots as there.
  let properties: [Schema.PropertyMetadata]
  let slotsByKeyPath: [AnyKeyPath: Int]
  /// The groups of `#Unique` and of `#Index` of the class itself.
  let uniqueness: [[AnyKeyPath]]
  let indices: [[AnyKeyPath]]
  /// Those of `#Index` that have a name of their own.
  let namedIndices: [NamedIndex]
  /// The name of the entity in the version before; `nil` where it was not renamed.
  let originalName: String?
  /// What `@Table` says; `nil` for a model without.
  let table: Schema.Table?

  /// The inverse of each relationship; filled on first use, since it needs the descriptors of other classes.
  private let inverses = Mutex<[Inverse?]?>(nil)

  private let madeEntity = Mutex<Schema.Entity?>(nil)

  /// The entity of the class in every schema. One for all: a default such as `UUID()` would be another one each time, and
  /// two schemas of the same models not equal.
  var entity: Schema.Entity {
    if let entity = madeEntity.withLock({ $0 }) { return entity }
    let new = Schema.Entity(self)
    return madeEntity.withLock { made in
      if let made { return made }
      made = new
      return new
    }
  }

  struct NamedIndex {
    let name: String
    let elements: [(property: AnyKeyPath, isAscending: Bool)]
    let condition: String?
  }

  struct Inverse: Sendable {
    let descriptor: ModelDescriptor
    let slot: Int
    let isToOne: Bool
  }

  public init<Model: PersistentModel>(
    _ type: Model.Type, name: String, originalName: String? = nil,
    superclass: (any PersistentModel.Type)? = nil,
    uniqueness: [[PartialKeyPath<Model>]] = [], indices: [[PartialKeyPath<Model>]] = [],
    namedIndices: [Schema.Index<Model>] = [], table: Schema.Table? = nil
  ) {
    self.originalName = originalName
    self.namedIndices = namedIndices.compactMap { index in
      index.name.map { name in
        NamedIndex(
          name: name, elements: index.elements.map { ($0.property, $0.isAscending) },
          condition: index.condition)
      }
    }
    self.superclass = superclass?._modelDescriptor
    self.table = table
    self.uniqueness = uniqueness
    self.indices = indices
    self.name = name
    self.type = type
    properties = type.schemaMetadata
    // An inherited property is named by a path from either class.
    slotsByKeyPath = Dictionary(
      properties.enumerated().map { ($1.keyPath, $0) }, uniquingKeysWith: { first, _ in first }
    ).merging(self.superclass?.slotsByKeyPath ?? [:]) { own, _ in own }
  }

  /// How many slots the models of a class have: the number of the first own one of a class that inherits from it.
  public static func slotCount(of type: any PersistentModel.Type) -> Int {
    type._modelDescriptor.properties.count
  }

  /// The slots of the properties that the class does not inherit.
  var ownSlots: Range<Int> { (superclass?.properties.count ?? 0)..<properties.count }

  /// The type's name with the types around it: "NotesSchemaV1.Note".
  var qualifiedName: String {
    fullName.split(separator: ".", maxSplits: 1).last.map(String.init) ?? fullName
  }

  /// The type's name with its module and the types around it: no other class has it.
  private var fullName: String { String(reflecting: type) }

  /// The names of two classes of one name: with the types around them, or with their modules where those are not enough.
  static func names(of one: ModelDescriptor, and other: ModelDescriptor) -> (String, String) {
    let areNested = one.qualifiedName != one.name && other.qualifiedName != other.name
    return areNested && one.qualifiedName != other.qualifiedName
      ? (one.qualifiedName, other.qualifiedName) : (one.fullName, other.fullName)
  }

  /// The slots of each group that has to be unique, the inherited ones included.
  var uniqueSlots: [[Int]] { (superclass?.uniqueSlots ?? []) + ownUniqueSlots }

  /// The slots of each group that the class itself says is unique: those of `#Unique`, and each property that is unique by
  /// itself.
  var ownUniqueSlots: [[Int]] {
    var groups = ownSlots.filter { properties[$0].isUnique }.map { [$0] }
    for group in slots(of: uniqueness) where !groups.contains(group) { groups.append(group) }
    return groups
  }

  /// The slots of each group of `#Index`.
  var indexSlots: [[Int]] { slots(of: indices) }

  private func slots(of groups: [[AnyKeyPath]]) -> [[Int]] {
    groups.map { group in group.compactMap { slotsByKeyPath[$0] } }.filter { !$0.isEmpty }
  }

  /// The model that the class inherits from, and those that its relationships lead to.
  var neighbours: [any PersistentModel.Type] {
    let related = properties.compactMap { property -> (any PersistentModel.Type)? in
      guard case .relationship(let relationship) = property.kind else { return nil }
      return relationship.destination
    }
    return (superclass.map { [$0.type] } ?? []) + related
  }

  /// Whether the slot is a to-many relationship whose models have an order.
  func isOrdered(_ slot: Int) -> Bool {
    guard case .relationship(let relationship) = properties[slot].kind else { return false }
    return !relationship.isToOne && relationship.metadata.options.contains(.ordered)
  }

  /// The relationship that is kept in step with the one in `slot`; `nil` where there is none.
  func inverse(ofSlot slot: Int) -> Inverse? {
    inverses.withLock { cached in
      if let cached { return cached[slot] }
      let found = properties.indices.map { inverseUncached(ofSlot: $0) }
      cached = found
      return found[slot]
    }
  }

  /// An inverse is the property named by `inverse:` on either side; else the only property of the other class that leads
  /// here, if this is also the only one that leads there and at least one of them is to-one. Two arrays without a named
  /// inverse stay unpaired: see `unpairedManyToMany`.
  private func inverseUncached(ofSlot slot: Int) -> Inverse? {
    // An inherited relationship has the inverse it has in the superclass.
    if let superclass, slot < ownSlots.lowerBound { return superclass.inverse(ofSlot: slot) }
    guard case .relationship(let relationship) = properties[slot].kind else { return nil }
    let other = relationship.destination._modelDescriptor
    if relationship.metadata.options.contains(.withoutInverse) { return nil }
    if relationship.metadata.options.contains(.ownInverse), other === self {
      return inverseValue(ofSlot: slot)
    }
    if let named = relationship.metadata.inverse {
      return other.slotsByKeyPath[named].flatMap { other.inverseValue(ofSlot: $0) }
    }
    for candidate in other.properties.indices
    where other.names(candidate, asInverse: slot, of: self) {
      return other.inverseValue(ofSlot: candidate)
    }
    guard let candidate = inferredInverse(ofSlot: slot),
      case .relationship(let back) = other.properties[candidate].kind,
      relationship.isToOne || back.isToOne
    else { return nil }
    return other.inverseValue(ofSlot: candidate)
  }

  /// Whether one of the own relationships names that slot of a class as its inverse, by a path from that class or from one
  /// that inherits from it: inherited properties have the same slots.
  private func names(_ slot: Int, asInverse inverse: Int, of descriptor: ModelDescriptor) -> Bool {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return false }
    let destination = relationship.destination._modelDescriptor
    return destination.inherits(from: descriptor) && destination.slotsByKeyPath[named] == inverse
  }

  /// Whether the class is that one, or inherits from it.
  func inherits(from descriptor: ModelDescriptor) -> Bool {
    self === descriptor || superclass?.inherits(from: descriptor) == true
  }

  private func inverseValue(ofSlot slot: Int) -> Inverse? {
    guard case .relationship(let relationship) = properties[slot].kind else { return nil }
    return Inverse(descriptor: self, slot: slot, isToOne: relationship.isToOne)
  }

  private func inferredInverse(ofSlot slot: Int) -> Int? {
    guard case .relationship(let relationship) = properties[slot].kind,
      !relationship.metadata.options.contains(.withoutInverse)
    else { return nil }
    let other = relationship.destination._modelDescriptor
    let here = slotsWithoutNamedInverse(leadingTo: other).filter { other !== self || $0 != slot }
    let there = other.slotsWithoutNamedInverse(leadingTo: self)
      .filter { other !== self || $0 != slot }
    guard there.count == 1, other === self || here == [slot] else { return nil }
    return there[0]
  }

  private func slotsWithoutNamedInverse(leadingTo destination: ModelDescriptor) -> [Int] {
    ownSlots.filter { slot in
      guard case .relationship(let relationship) = properties[slot].kind,
        relationship.metadata.inverse == nil,
        !relationship.metadata.options.contains(.withoutInverse),
        !relationship.metadata.options.contains(.ownInverse),
        relationship.destination._modelDescriptor === destination
      else { return false }
      // A property that the other side names as its inverse is taken.
      return !destination.properties.indices.contains {
        destination.names($0, asInverse: slot, of: self)
      }
    }
  }

  /// What is wrong with the inverse that a relationship names; `nil` where the two are kept in step.
  func inverseProblem(ofSlot slot: Int) -> String? {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return nil }
    let path = "\(name).\(properties[slot].name)"
    guard let inverse = inverse(ofSlot: slot) else {
      return "the inverse of \(path), `\(named)`, is no relationship of \(relationship.destination)"
    }
    let other = "\(inverse.descriptor.name).\(inverse.descriptor.properties[inverse.slot].name)"
    guard let back = inverse.descriptor.inverse(ofSlot: inverse.slot) else {
      return "\(path) names \(other) as its inverse, which does not lead to \(name)"
    }
    return back.slot == slot && inherits(from: back.descriptor)
      ? nil
      : "\(path) names \(other) as its inverse, which is that of \(back.descriptor.name).\(back.descriptor.properties[back.slot].name)"
  }

  /// The properties of the other class that this array could be the inverse of, were it named: the mistake behind Core
  /// Data's "Expected only Arrays for Relationships".
  func unpairedManyToMany(ofSlot slot: Int) -> String? {
    guard case .relationship(let relationship) = properties[slot].kind, !relationship.isToOne,
      inverse(ofSlot: slot) == nil, let candidate = inferredInverse(ofSlot: slot)
    else { return nil }
    return relationship.destination._modelDescriptor.properties[candidate].name
  }
}
