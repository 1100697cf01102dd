import InstarSchema
import InstarStore

/// The open stores of one container, and its models mapped to their tables.
///
/// Invariants: there is at least one store; each entity is in exactly one store, together with the entities that it
/// inherits from or has relationships with. Transactions over several stores begin in the order of `all`.
final class ModelStores: Sendable {
  let all: [ModelStore]
  /// The schema of the models in all stores.
  let schema: Schema
  /// The entities of the first store, then those of the next.
  let entities: [ModelEntity]
  /// Whether a relationship has a minimum or maximum number of members.
  let hasCountLimits: Bool
  /// The readers of whole rows, by the position of the entity.
  private let readers: [RowReader]
  /// The position of the entity whose keys each entity shares, by the position of the entity.
  let rootPositions: [Int]
  private let positionsByType: [ObjectIdentifier: Int]
  private let positionsByName: [String: Int]
  /// The inverses of each class; empty if the classes themselves know them.
  private let inverses: [ObjectIdentifier: [ModelDescriptor.Inverse?]]
  /// The errors in a stage; `nil` elsewhere.
  let stageFailures: StageFailures?
  /// In the closure of a stage, the classes of the stage's other version, which it must not use; `nil` elsewhere.
  let excludedTypes: Set<ObjectIdentifier>?
  /// The classes of other versions that replace those of the schema, by the name of the entity.
  let replacements: [String: any PersistentModel.Type]

  /// Whether a stage of a migration works on clones of the stores: its closures, or its checks.
  var isInStage: Bool { stageFailures != nil }

  init(
    _ all: [ModelStore], schema: Schema, stageFailures: StageFailures? = nil,
    excludedTypes: Set<ObjectIdentifier>? = nil,
    replacements: [String: any PersistentModel.Type] = [:]
  ) throws(InstarError) {
    self.all = all
    self.schema = schema
    self.stageFailures = stageFailures
    self.excludedTypes = excludedTypes
    self.replacements = replacements
    var entities: [ModelEntity] = []
    var types: [ObjectIdentifier: Int] = [:]
    for store in all {
      for entity in store.layout.entityLayouts {
        guard
          let type = store.schema.modelTypes.byEntityName[entity.name] as? any PersistentModel.Type
        else {
          throw InstarError(
            .internalError, "cannot use schema \(schema.version)",
            cause: "the schema has no Swift type for \(entity.name)")
        }
        let used = replacements[entity.name] ?? type
        types[ObjectIdentifier(used)] = entities.count
        entities.append(
          ModelEntity(
            descriptor: used._modelDescriptor, unique: type._modelDescriptor.uniqueProperties,
            layout: entity, store: store, position: entities.count))
      }
    }
    self.entities = entities
    hasCountLimits = entities.contains { !$0.countLimits.isEmpty }
    inverses =
      replacements.isEmpty
      ? schema.modelSet.inverses : ModelSet(entities.map(\.descriptor.type)).inverses
    readers = entities.map { entity in
      RowReader(entity, family: entities.filter { $0.isInFamily(of: entity) })
    }
    positionsByType = types
    let positions = Dictionary(firstOf: entities.map { ($0.layout.name, $0.position) })
    positionsByName = positions
    rootPositions = entities.map { positions[$0.layout.root] ?? $0.position }
  }

  /// Returns the entity of a model type.
  ///
  /// - Throws: `modelNotInSchema` with the type, the store's version and the closure. In a stage, some of a container's
  ///   stores may be missing, so their models are in the schema but not in a store.
  func entity(
    for type: any PersistentModel.Type, to verb: String, in closure: StageClosure?
  ) throws(InstarError) -> ModelEntity {
    if let position = positionsByType[ObjectIdentifier(type)] { return entities[position] }
    let name = type._modelDescriptor.qualifiedName
    let what = "cannot \(verb) \(name)" + (closure.map { " in \($0.rawValue)" } ?? "")
    if let own = schema.modelTypes.byEntityName[type._modelDescriptor.name], own == type {
      throw InstarError(
        .modelNotInSchema, what,
        cause:
          "the store with its rows is not at \(schema.version), so it takes no part in this stage",
        next:
          "check first whether the context has the model: if context.container.schema.entity(for: \(name).self) != nil { … }"
      )
    }
    let cause: String
    if let other = schema.modelTypes.byEntityName[type._modelDescriptor.name]
      as? any PersistentModel.Type
    {
      let (own, asked) = ModelDescriptor.names(
        of: other._modelDescriptor, and: type._modelDescriptor)
      cause =
        "the store is at \(schema.version), whose \(type._modelDescriptor.name) is \(own), not \(asked)"
    } else {
      cause = "the store is at \(schema.version), whose models do not include \(name)"
    }
    throw InstarError(
      .modelNotInSchema, what, cause: cause,
      next: Self.advice(on: verb, in: closure) ?? "use the models of \(schema.version)")
  }

  /// What to write in a closure in place of the class of the stage's other version; `nil` elsewhere.
  private static func advice(on verb: String, in closure: StageClosure?) -> String? {
    switch (verb, closure) {
    case (_, nil): nil
    case ("save", .willMigrate):
      "insert models of the new version in didMigrate, and keep the values for them in context.scratchpad"
    case ("save", _): "insert models of the new version"
    case (_, .bridge):
      "`old` has only the models of the old version, `new` only those of the new one"
    case (_, .willMigrate), (_, .didMigrate):
      "willMigrate sees only the models of the old version, didMigrate only those of the new one"
    }
  }

  /// Returns the entity of a class; `nil` if the stores have none, or another class of that name.
  func entity(of descriptor: ModelDescriptor) -> ModelEntity? {
    entity(named: descriptor.name).flatMap { $0.descriptor === descriptor ? $0 : nil }
  }

  func entity(named name: String) -> ModelEntity? {
    positionsByName[name].map { entities[$0] }
  }

  /// Whether an identifier is that of a row, if it exists, in a store.
  ///
  /// A store without a UUID is identified by its file. A stage works on a clone of the file, and there its rows have to
  /// be found by the identifiers that an app has kept.
  func mayHave(_ identifier: PersistentIdentifier, in store: ModelStore) -> Bool {
    guard let other = identifier.storeIdentifier, other != store.uuid else {
      return !identifier.id.isTemporary
    }
    return isInStage && [other, store.uuid].allSatisfy { $0.hasPrefix("file:") }
  }

  /// Returns the inverse of a relationship among the models of the container; `nil` without one.
  func inverse(of descriptor: ModelDescriptor, slot: Int) -> ModelDescriptor.Inverse? {
    guard let own = inverses[ObjectIdentifier(descriptor)] else {
      return descriptor.inverse(ofSlot: slot)
    }
    return own[slot]
  }

  /// Returns an entity and its subentities, whose rows a fetch of the entity finds too.
  func family(of entity: ModelEntity) -> [ModelEntity] {
    entities.filter { $0.isInFamily(of: entity) }
  }

  /// Returns a reader for the rows of an entity and its subentities.
  ///
  /// - Parameter slots: The slots to read; `nil` for all.
  func reader(of entity: ModelEntity, slots: [Int]? = nil) -> RowReader {
    guard let slots else { return readers[entity.position] }
    return RowReader(entity, slots: slots, family: family(of: entity))
  }

  // MARK: Errors of code that cannot throw

  /// Keeps an error for the next fetch or save of any context.
  func note(_ error: any Error) {
    stageFailures?.note(error)
    all[0].note(error)
  }

  func throwDeferredError() throws {
    try stageFailures.watching {
      for store in all { try store.throwDeferredError() }
    }
  }
}

extension ModelEntity {
  /// Whether this is the given entity or one of its subentities. Their numbers follow without a gap (Core Data layout,
  /// section 2.2). Numbers of different stores are unrelated.
  func isInFamily(of entity: ModelEntity) -> Bool {
    store === entity.store && entity.layout.numbers.contains(layout.number)
  }
}
