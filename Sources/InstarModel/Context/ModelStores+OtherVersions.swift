import InstarSchema
import InstarStore

// Many plans write `typealias Note = NotesSchemaV3.Note`, and fetch `Note` in the stage from version 1 to version 2.
// SwiftData finds the entity by its name, and that works if version 2 has the properties that the closure uses. So in
// the closure of a stage another version's class can take the place of the version's own. The class of the stage's
// other version cannot: the closure would see the store as it is not.

extension ModelContext {
  /// Returns the entity of a model type. In the closure of a stage the type may be the class of another version.
  ///
  /// - Throws: `modelNotInSchema`.
  func entity(
    for type: any PersistentModel.Type, to verb: String
  ) throws(InstarError) -> ModelEntity {
    do {
      return try stores.entity(for: type, to: verb, in: closure)
    } catch {
      guard let others = try stores.replacing(with: type, inUse: classesInUse, error) else {
        throw error
      }
      stores = others
      return try stores.entity(for: type, to: verb, in: closure)
    }
  }

  /// The classes of the living models and of those with unsaved changes.
  private var classesInUse: [ModelDescriptor] {
    registeredStorages.joined().map(\.descriptor)
      + (inserted.all + deleted.all).map(\._modelStorage.descriptor)
  }
}

extension ModelStores {
  /// Returns the same stores with the class of another version, and with those that its relationships reference, where
  /// they fit. `nil` if there is no entity of that name, or outside a stage.
  ///
  /// - Parameters:
  ///   - inUse: The classes of the context's models. A row has one object, so none of them can be replaced.
  ///   - error: What `entity(for:to:in:)` says of the class.
  /// - Throws: The error, with the reason why the class does not fit.
  fileprivate func replacing(
    with type: any PersistentModel.Type, inUse: [ModelDescriptor], _ error: InstarError
  ) throws(InstarError) -> ModelStores? {
    guard let excludedTypes, !excludedTypes.contains(ObjectIdentifier(type)),
      let entity = entity(named: type._modelDescriptor.name)
    else { return nil }
    if let reason = entity.reasonAgainst(type._modelDescriptor) {
      throw error.adding(
        "\(type._modelDescriptor.qualifiedName) cannot replace \(entity.descriptor.qualifiedName): \(reason)"
      )
    }
    var types = replacements
    for type in [type] + Schema.reachedByName(from: [type]) {
      let descriptor = type._modelDescriptor
      guard !excludedTypes.contains(ObjectIdentifier(type)),
        let entity = self.entity(named: descriptor.name), entity.descriptor !== descriptor,
        entity.reasonAgainst(descriptor) == nil
      else { continue }
      if inUse.contains(where: { $0 === entity.descriptor }) {
        throw error.adding(
          "the closure already has models of \(entity.descriptor.qualifiedName), "
            + "and a row cannot be an object of both classes")
      }
      types[descriptor.name] = type
    }
    return try ModelStores(
      all, schema: schema, stageFailures: stageFailures, excludedTypes: excludedTypes,
      replacements: types)
  }
}

extension InstarError {
  fileprivate func adding(_ reason: String) -> InstarError {
    var error = self
    error.cause += "; \(reason)"
    return error
  }
}

extension ModelEntity {
  /// Returns why rows of the entity cannot be objects of another version's class; `nil` if they can. Properties that
  /// the entity does not have are in memory only.
  fileprivate func reasonAgainst(_ other: ModelDescriptor) -> String? {
    if sharesTable || other.superclass != nil {
      return "\(descriptor.name) shares its table with other models"
    }
    for property in other.properties {
      let attribute = layout.attributes.first { $0.attribute.name == property.name }?.attribute
      let relationship = layout.relationships.first { $0.relationship.name == property.name }?
        .relationship
      let fits =
        switch property.kind {
        case .attribute(let kind):
          relationship == nil
            && (kind.leaves.map {
              hasColumns($0.map { "\(property.name).\($0.name)" }, property.name)
            }
              ?? (attribute?.type ?? kind.type == kind.type))
        case .relationship(let kind):
          attribute == nil
            && relationship.map {
              $0.isToOneRelationship == kind.isToOne
                && $0.destination == kind.destination._modelDescriptor.name
            } ?? true
        }
      if !fits { return "'\(property.name)' has another type" }
    }
    return nil
  }

  /// Whether the entity has all of the columns of a composite, or neither these nor another column of its name.
  private func hasColumns(_ columns: [String], _ property: String) -> Bool {
    let own = layout.attributes.map(\.attribute.name).filter {
      $0 == property || $0.hasPrefix("\(property).")
    }
    return own.isEmpty || Set(own) == Set(columns)
  }
}

extension ModelSave.Change {
  /// Checks that no value is lost because the class is another version's.
  ///
  /// - Throws: `modelValidationFailure` for a value of a property that the entity does not have.
  func requireColumns(_ schema: Schema) throws {
    for (slot, place) in entity.slots.enumerated() {
      guard place.isInMemory, storage.hasValueToSave(at: slot) else { continue }
      let (name, version) = (entity.descriptor.qualifiedName, schema.version)
      let property = entity.descriptor.properties[slot].name
      throw SwiftDataError.validation(
        "cannot save \(name)",
        "'\(property)' has a value, but the \(entity.layout.name) of \(version) has no '\(property)'",
        next: "set '\(property)' in the stage whose version adds it")
    }
  }
}

extension ModelStorage {
  /// Whether a slot has a value that a new model of its class does not have.
  fileprivate func hasValueToSave(at slot: Int) -> Bool {
    guard state == .inserted else { return changedSlots.contains(slot) }
    switch (slots[slot], descriptor.properties[slot].kind) {
    case (.null, _), (.unloaded, _): return false
    case (.models(let models), _): return !models.isEmpty
    case (let value, .attribute(let kind)):
      // The cheaper question first: this is asked for each row.
      return (kind.defaultSlot().map { !$0.isSameValue(as: value) } ?? true)
        && kind.hasConstantDefault
    case (_, .relationship): return true
    }
  }
}
