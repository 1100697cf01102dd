import InstarSchema

/// The models of one schema, by which a relationship finds its destination.
///
/// A model that several versions share declares its relationships with the classes of one of them. In the others the
/// class of the same entity takes the place of the declared one, because a store knows entities by name. The empty set
/// takes each relationship as it is declared.
struct ModelSet: Sendable {
  private let byName: [String: ModelDescriptor]

  init(_ models: [any PersistentModel.Type] = []) {
    byName = Dictionary(firstOf: models.map { ($0._modelDescriptor.name, $0._modelDescriptor) })
  }

  func destination(
    of relationship: Schema.PropertyMetadata.RelationshipKind
  ) -> ModelDescriptor {
    let declared = relationship.destination._modelDescriptor
    return byName[declared.name] ?? declared
  }

  /// The relationships whose declared class another one of the same entity replaces: the class, and the slot.
  var replacements: [(descriptor: ModelDescriptor, slot: Int)] {
    byName.values.sorted { $0.name < $1.name }.flatMap { descriptor in
      descriptor.ownSlots.filter { slot in
        guard case .relationship(let kind) = descriptor.properties[slot].kind else { return false }
        return destination(of: kind) !== kind.destination._modelDescriptor
      }.map { (descriptor, $0) }
    }
  }

  /// The inverse of each slot of each class, if a class is replaced; else empty, because then the classes know them.
  var inverses: [ObjectIdentifier: [ModelDescriptor.Inverse?]] {
    guard !replacements.isEmpty else { return [:] }
    return Dictionary(
      firstOf: byName.values.map { descriptor in
        (
          ObjectIdentifier(descriptor),
          descriptor.properties.indices.map { descriptor.inverse(ofSlot: $0, in: self) }
        )
      })
  }
}
