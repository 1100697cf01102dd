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
  /// Whether the objects of the class have nothing in memory but their storage.
  let isStorageOnly: Bool
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

    var property: Schema.PropertyMetadata { descriptor.properties[slot] }
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
    isStorageOnly = StorageOnlyObject.describes(type)
    properties = type.schemaMetadata
    // Key paths to an inherited property may start at either class.
    slotsByKeyPath = Dictionary(
      firstOf: properties.enumerated().compactMap { slot, property in
        property.keyPath.map { ($0, slot) }
      }
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

  /// The type's name with its module and the types around it, which is unique.
  ///
  /// As `String(reflecting:)`, which asks first whether the type describes itself: for each new type the runtime then
  /// searches all conformances of the process, half a millisecond in a worker for a plan of ten models.
  private var fullName: String { _typeName(type, qualified: true) }

  /// The name of the types around the class: "Notes.NotesSchemaV1". The types of one version usually have the same.
  var scope: String { String(fullName.dropLast(name.count)) }

  /// Returns different names for two classes of the same name: with the types around them, or also with their modules.
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

  /// The same groups, by the names of the properties.
  var uniqueProperties: [[String]] { uniqueSlots.map { $0.map { properties[$0].name } } }

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

  /// Returns the inverse of the relationship in `slot`, between the classes as the relationships declare them; `nil`
  /// without one.
  func inverse(ofSlot slot: Int) -> Inverse? {
    inverses.withLock { cached in
      if let cached { return cached[slot] }
      let found = properties.indices.map { inverse(ofSlot: $0, in: ModelSet()) }
      cached = found
      return found[slot]
    }
  }

  /// Returns the inverse of the relationship in `slot` among the models of a schema; `nil` without one.
  ///
  /// The inverse is the property that `inverse:` names on either side. Without `inverse:`, two relationships pair up
  /// if they are the only ones between the two classes and at least one of them is to-one. SwiftData infers no inverse
  /// between two arrays, which therefore keep links of their own: see `Schema.SeparateArrays`.
  func inverse(ofSlot slot: Int, in models: ModelSet) -> Inverse? {
    // An inherited relationship has the same inverse as in the superclass.
    if let superclass, slot < ownSlots.lowerBound {
      return superclass.inverse(ofSlot: slot, in: models)
    }
    guard case .relationship(let relationship) = properties[slot].kind else { return nil }
    let other = models.destination(of: relationship)
    if relationship.metadata.options.contains(.withoutInverse) { return nil }
    if relationship.metadata.options.contains(.ownInverse), other === self {
      return inverseValue(ofSlot: slot)
    }
    if let named = relationship.metadata.inverse {
      return other.slot(of: named).flatMap { other.inverseValue(ofSlot: $0) }
    }
    for candidate in other.properties.indices
    where other.names(candidate, asInverse: slot, of: self, in: models) {
      return other.inverseValue(ofSlot: candidate)
    }
    guard let candidate = inferredInverse(ofSlot: slot, in: models),
      case .relationship(let back) = other.properties[candidate].kind,
      relationship.isToOne || back.isToOne
    else { return nil }
    return other.inverseValue(ofSlot: candidate)
  }

  /// Returns the slot of a key path, which may start at another version's class of the same entity.
  func slot(of keyPath: AnyKeyPath) -> Int? {
    if let slot = slotsByKeyPath[keyPath] { return slot }
    guard let root = Swift.type(of: keyPath).rootType as? any PersistentModel.Type,
      let slot = root._modelDescriptor.slotsByKeyPath[keyPath],
      sequence(first: self, next: \.superclass).contains(where: {
        $0.name == root._modelDescriptor.name
      })
    else { return nil }
    let name = root._modelDescriptor.properties[slot].name
    return properties.firstIndex { $0.name == name }
  }

  /// Returns the text of a key path with the name of the model's property, of which Swift only knows the address of the
  /// getter: "\Note.<computed 0x5562 (Address)>.city".
  static func text(of keyPath: AnyKeyPath) -> String {
    let root = Swift.type(of: keyPath).rootType
    guard let model = root as? any PersistentModel.Type else { return "\(keyPath)" }
    let descriptor = model._modelDescriptor
    let known =
      descriptor.slotsByKeyPath.map { (path: $0.key, name: descriptor.properties[$0.value].name) }
      + model.namedMembers
    if let own = known.first(where: { $0.path == keyPath }) { return "\\\(root).\(own.name)" }
    // Equal key paths that two source files wrote can have getters at two addresses, so only the types tell how this
    // one begins.
    func withoutAddresses(_ path: AnyKeyPath) -> String {
      "\(path)".replacing(/0x[0-9a-f]+/, with: "")
    }
    let text = withoutAddresses(keyPath)
    let beginnings = known.filter { text.hasPrefix(withoutAddresses($0.path)) }
    let exact = beginnings.filter { "\(keyPath)".hasPrefix("\($0.path)") }
    let names = Set((exact.isEmpty ? beginnings : exact).map(\.name))
    guard names.count == 1, let beginning = beginnings.first, let name = names.first else {
      return "\(keyPath)"
    }
    return "\\\(root).\(name)" + text.dropFirst(withoutAddresses(beginning.path).count)
  }

  /// Returns whether one of the relationships names the slot of another class as its inverse. The key path may start
  /// at a subclass, because inherited properties have the same slots.
  private func names(
    _ slot: Int, asInverse inverse: Int, of descriptor: ModelDescriptor, in models: ModelSet
  ) -> Bool {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return false }
    let destination = models.destination(of: relationship)
    return destination.inherits(from: descriptor) && destination.slot(of: named) == inverse
  }

  /// Returns whether the class is the given one or inherits from it.
  func inherits(from descriptor: ModelDescriptor) -> Bool {
    self === descriptor || superclass?.inherits(from: descriptor) == true
  }

  /// Returns whether a property belongs to a class that another one is or inherits from. Then both have the same slot
  /// for it.
  func shares(_ slot: Int, with other: ModelDescriptor) -> Bool {
    properties.indices.contains(slot)
      && (other.inherits(from: self) || superclass?.shares(slot, with: other) == true)
  }

  private func inverseValue(ofSlot slot: Int) -> Inverse? {
    guard case .relationship(let relationship) = properties[slot].kind else { return nil }
    return Inverse(descriptor: self, slot: slot, isToOne: relationship.isToOne)
  }

  private func inferredInverse(ofSlot slot: Int, in models: ModelSet) -> Int? {
    guard case .relationship(let relationship) = properties[slot].kind,
      !relationship.metadata.options.contains(.withoutInverse)
    else { return nil }
    let other = models.destination(of: relationship)
    let here = slotsWithoutNamedInverse(referencing: other, in: models)
      .filter { other !== self || $0 != slot }
    let there = other.slotsWithoutNamedInverse(referencing: self, in: models)
      .filter { other !== self || $0 != slot }
    guard there.count == 1, other === self || here == [slot] else { return nil }
    return there[0]
  }

  private func slotsWithoutNamedInverse(
    referencing destination: ModelDescriptor, in models: ModelSet
  ) -> [Int] {
    ownSlots.filter { slot in
      guard case .relationship(let relationship) = properties[slot].kind,
        relationship.metadata.inverse == nil,
        !relationship.metadata.options.contains(.withoutInverse),
        !relationship.metadata.options.contains(.ownInverse),
        models.destination(of: relationship) === destination
      else { return false }
      // A property that the other side names as an inverse is already paired.
      return !destination.properties.indices.contains {
        destination.names($0, asInverse: slot, of: self, in: models)
      }
    }
  }

  /// Returns the error in the `inverse:` of a relationship; `nil` if the two pair up.
  func inverseProblem(ofSlot slot: Int, in models: ModelSet) -> String? {
    guard case .relationship(let relationship) = properties[slot].kind,
      let named = relationship.metadata.inverse
    else { return nil }
    let path = "\(name).\(properties[slot].name)"
    guard let inverse = inverse(ofSlot: slot, in: models) else {
      let destination = models.destination(of: relationship)
      guard
        let root = (Swift.type(of: named).rootType as? any PersistentModel.Type)?._modelDescriptor,
        let property = root.slotsByKeyPath[named].map({ root.properties[$0].name })
      else {
        return
          "the inverse of \(path), `\(named)`, is not a relationship of \(destination.name)"
      }
      let (one, other) =
        root !== destination && root.name == destination.name
        ? Self.names(of: root, and: destination) : (root.name, destination.name)
      return "the inverse of \(path), \(one).\(property), is not a relationship of \(other)"
    }
    let other = "\(inverse.descriptor.name).\(inverse.descriptor.properties[inverse.slot].name)"
    guard let back = inverse.descriptor.inverse(ofSlot: inverse.slot, in: models) else {
      return "\(path) names \(other) as its inverse, which does not reference \(name)"
    }
    return back.slot == slot && inherits(from: back.descriptor)
      ? nil
      : "\(path) names \(other) as its inverse, which is already the inverse of \(back.descriptor.name).\(back.descriptor.properties[back.slot].name)"
  }
}
