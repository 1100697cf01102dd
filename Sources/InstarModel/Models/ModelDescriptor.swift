public import InstarSchema
import Synchronization

/// Describes a model class: its properties by slot, and the inverses of its relationships. There is one instance for
/// each class, created at the first use and never changed.
public final class ModelDescriptor: @unchecked Sendable {
  // Everything is immutable except `inverses` and `cachedEntity`, which have locks. It is unchecked only because
  // metatypes and key paths are not Sendable.

  /// The name of the entity: the class's own name, without the types around it.
  public let name: String
  let type: any PersistentModel.Type
  /// The model the class inherits from.
  let superclass: ModelDescriptor?
  /// The properties, those of the superclass first, in the same slots.
  let properties: [Schema.PropertyMetadata]
  let slotsByKeyPath: [AnyKeyPath: Int]
  /// The groups of the class's own `#Unique` and `#Index`.
  let uniqueness: [[AnyKeyPath]]
  let indices: [[AnyKeyPath]]
  /// The indexes of `#Index` with a name.
  let namedIndices: [NamedIndex]
  /// The name of the entity in the previous version; `nil` if it was not renamed.
  let originalName: String?
  /// The arguments of `@Table`; `nil` without one.
  let table: Schema.Table?

  /// The inverse of each relationship; filled at the first use, because it needs the descriptors of other classes.
  private let inverses = Mutex<[Inverse?]?>(nil)

  private let cachedEntity = Mutex<Schema.Entity?>(nil)

  /// The entity of the class. All schemas share it, because a default such as `UUID()` would differ each time and make
  /// schemas of the same models unequal.
  var entity: Schema.Entity {
    if let entity = cachedEntity.withLock({ $0 }) { return entity }
    let new = Schema.Entity(self)
    return cachedEntity.withLock { made in
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

  /// Creates the descriptor of a class. Only the code that `@Model` emits calls it.
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
    // Key paths to an inherited property may start at either class.
    slotsByKeyPath = Dictionary(
      properties.enumerated().map { ($1.keyPath, $0) }, uniquingKeysWith: { first, _ in first }
    ).merging(self.superclass?.slotsByKeyPath ?? [:]) { own, _ in own }
  }

  /// Returns the number of slots of a class, which is the number of the first own slot of its subclasses.
  public static func slotCount(of type: any PersistentModel.Type) -> Int {
    type._modelDescriptor.properties.count
  }

  /// The slots of the class's own properties.
  var ownSlots: Range<Int> { (superclass?.properties.count ?? 0)..<properties.count }

  /// The type's name with the types around it: "NotesSchemaV1.Note".
  var qualifiedName: String {
    fullName.split(separator: ".", maxSplits: 1).last.map(String.init) ?? fullName
  }

  /// The type's name with its module and the types around it: no other class has it.
  private var fullName: String { String(reflecting: type) }

  /// The names of two classes of one name: with the types around them, or with their modules where those are not
  /// enough.
  static func names(of one: ModelDescriptor, and other: ModelDescriptor) -> (String, String) {
    let areNested = one.qualifiedName != one.name && other.qualifiedName != other.name
    return areNested && one.qualifiedName != other.qualifiedName
      ? (one.qualifiedName, other.qualifiedName) : (one.fullName, other.fullName)
  }

  /// The slots of each unique group, including inherited groups.
  var uniqueSlots: [[Int]] { (superclass?.uniqueSlots ?? []) + ownUniqueSlots }

  /// The slots of the class's own unique groups: those of `#Unique`, and each property that alone is unique.
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

  /// The superclass, and the models that the relationships reference.
  var neighbours: [any PersistentModel.Type] {
    let related = properties.compactMap { property -> (any PersistentModel.Type)? in
      guard case .relationship(let relationship) = property.kind else { return nil }
      return relationship.destination
    }
    return (superclass.map { [$0.type] } ?? []) + related
  }

  /// Returns whether the slot is an ordered to-many relationship.
  func isOrdered(_ slot: Int) -> Bool {
    guard case .relationship(let relationship) = properties[slot].kind else { return false }
    return !relationship.isToOne && relationship.metadata.options.contains(.ordered)
  }

  /// Returns the inverse of the relationship in `slot`; `nil` without one.
  func inverse(ofSlot slot: Int) -> Inverse? {
    inverses.withLock { cached in
      if let cached { return cached[slot] }
      let found = properties.indices.map { inverseUncached(ofSlot: $0) }
      cached = found
      return found[slot]
    }
  }

  /// The inverse is the property that `inverse:` names on either side. Without `inverse:`, two relationships pair up
  /// if they are the only ones between the two classes and at least one of them is to-one. Two arrays stay unpaired:
  /// see `unpairedManyToMany`.
  private func inverseUncached(ofSlot slot: Int) -> Inverse? {
    // An inherited relationship has the same inverse as in the superclass.
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

  /// Returns whether one of the relationships names the slot of another class as its inverse. The key path may start
  /// at a subclass, because inherited properties have the same slots.
  private func names(_ slot: Int, asInverse inverse: Int, of descriptor: ModelDescriptor) -> Bool {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return false }
    let destination = relationship.destination._modelDescriptor
    return destination.inherits(from: descriptor) && destination.slotsByKeyPath[named] == inverse
  }

  /// Returns whether the class is the given one or inherits from it.
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
    let here = slotsWithoutNamedInverse(referencing: other).filter { other !== self || $0 != slot }
    let there = other.slotsWithoutNamedInverse(referencing: self)
      .filter { other !== self || $0 != slot }
    guard there.count == 1, other === self || here == [slot] else { return nil }
    return there[0]
  }

  private func slotsWithoutNamedInverse(referencing destination: ModelDescriptor) -> [Int] {
    ownSlots.filter { slot in
      guard case .relationship(let relationship) = properties[slot].kind,
        relationship.metadata.inverse == nil,
        !relationship.metadata.options.contains(.withoutInverse),
        !relationship.metadata.options.contains(.ownInverse),
        relationship.destination._modelDescriptor === destination
      else { return false }
      // A property that the other side names as an inverse is already paired.
      return !destination.properties.indices.contains {
        destination.names($0, asInverse: slot, of: self)
      }
    }
  }

  /// Returns the error in the `inverse:` of a relationship; `nil` if the two pair up.
  func inverseProblem(ofSlot slot: Int) -> String? {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return nil }
    let path = "\(name).\(properties[slot].name)"
    guard let inverse = inverse(ofSlot: slot) else {
      return
        "the inverse of \(path), `\(named)`, is not a relationship of \(relationship.destination)"
    }
    let other = "\(inverse.descriptor.name).\(inverse.descriptor.properties[inverse.slot].name)"
    guard let back = inverse.descriptor.inverse(ofSlot: inverse.slot) else {
      return "\(path) names \(other) as its inverse, which does not reference \(name)"
    }
    return back.slot == slot && inherits(from: back.descriptor)
      ? nil
      : "\(path) names \(other) as its inverse, which is already the inverse of \(back.descriptor.name).\(back.descriptor.properties[back.slot].name)"
  }

  /// Returns the array of the other class that would be the inverse of this one if `inverse:` named it. The missing
  /// `inverse:` is the mistake behind Core Data's "Expected only Arrays for Relationships".
  func unpairedManyToMany(ofSlot slot: Int) -> String? {
    guard case .relationship(let relationship) = properties[slot].kind, !relationship.isToOne,
      inverse(ofSlot: slot) == nil, let candidate = inferredInverse(ofSlot: slot)
    else { return nil }
    return relationship.destination._modelDescriptor.properties[candidate].name
  }
}
