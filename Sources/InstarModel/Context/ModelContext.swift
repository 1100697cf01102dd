import Foundation
import InstarSchema
import InstarStore

/// The models of one container that one piece of code works with: fetched, inserted, changed, deleted, then saved together.
///
/// One row is one object within a context. A context belongs to the thread that uses it. Nothing is written before
/// `save()`, which writes everything in one transaction.
///
/// Invariants: `registered` holds, unretained, the storage of every living model of this context that has a row; a
/// storage takes itself out when its model goes away. Models with unsaved changes are held by `inserted`, `changed`,
/// `deleted` and `held`, so that no change is lost with the last reference to its object.
public final class ModelContext {
  /// The container the context was made for.
  public var container: ModelContainer {
    if let container = owner ?? ownerOfMain { return container }
    // The main context has outlived its container: here is another one of the same store.
    let container = ModelContainer(
      schema: store.schema, store: store, configurations: configurations)
    owner = container
    return container
  }

  /// Accepted as in SwiftData. There is no run loop that would save by itself on Linux: call `save()`.
  public var autosaveEnabled = false

  let store: ModelStore
  private let configurations: Set<ModelConfiguration>
  private var owner: ModelContainer?
  /// The container of a main context, which that container holds in turn.
  private weak var ownerOfMain: ModelContainer?
  /// The newest save and commit of others that this context knows of.
  var lastSeenSave: Int
  var lastSeenCommitOfOthers: Int
  /// By the position of the root entity, then by key.
  private(set) var registered: [[Int64: Unmanaged<ModelStorage>]]
  private(set) var inserted = OrderedModels()
  private var changed = OrderedModels()
  private var deleted = OrderedModels()
  /// Models that are unchanged themselves, but know of a change made from the other side of a relationship.
  private var held = OrderedModels()
  private var lastTemporaryKey: Int64 = .min
  /// An error met where nothing could be thrown (a getter); thrown by the next fetch or save.
  private var deferredError: (any Error)?
  /// The closure this context was made for ("willMigrate"), as errors name it.
  let phase: String?

  /// A context without models, of the container's store.
  public convenience init(_ container: ModelContainer) {
    self.init(container, phase: nil, isMain: false)
  }

  init(_ container: ModelContainer, phase: String?, isMain: Bool = false) {
    store = container.store
    configurations = container.configurations
    if isMain { ownerOfMain = container } else { owner = container }
    self.phase = phase
    registered = Array(repeating: [:], count: container.store.entities.count)
    lastSeenSave = store.connection.saves.addListener()
    lastSeenCommitOfOthers = store.connection.commitCountOfOthers
  }

  deinit {
    store.connection.saves.removeListener()
    // Models may outlive their context: they keep the values they have. Their relationships are cut, which also frees
    // objects that refer to each other.
    for model in inserted.all { Self.detach(model._modelStorage) }
    let storages = registered.flatMap { $0.values.map { $0.takeUnretainedValue() } }
    for storage in storages {
      storage.context = nil
      storage.state = .gone
    }
    for storage in storages {
      for slot in storage.slots.indices {
        switch storage.slots[slot] {
        case .model, .key: storage.slots[slot] = .null
        case .models, .unloaded: storage.slots[slot] = .models([])
        case .null, .integer, .real, .text, .blob, .composite: break
        }
      }
    }
  }

  /// Whether `save()` would write anything.
  public var hasChanges: Bool { !inserted.isEmpty || !changed.isEmpty || !deleted.isEmpty }

  public var insertedModelsArray: [any PersistentModel] { inserted.all }
  public var changedModelsArray: [any PersistentModel] {
    changed.all.filter { $0._modelStorage.state == .loaded }
  }
  public var deletedModelsArray: [any PersistentModel] { deleted.all }

  // MARK: Insert and delete

  /// Adds a new model, and every new model it is related to. `save()` writes their rows.
  ///
  /// A model with a unique value that a row has already takes that row's place when it is saved (upsert).
  public func insert<T: PersistentModel>(_ model: T) {
    insertAny(model)
  }

  func insertAny(_ model: any PersistentModel) {
    var waiting = [model]
    while let model = waiting.popLast() {
      let storage = model._modelStorage
      if storage.context === self {
        if storage.state == .deleted {
          deleted.remove(model)
          storage.state = .loaded
          if storage.hasChanges { changed.insert(model) }
        }
        continue
      }
      guard storage.state == .detached else {
        note(
          InstarError(
            .invalidModel, "cannot insert a \(storage.descriptor.name)",
            cause: storage.state == .gone
              ? "it was deleted, or the context it belonged to is gone"
              : "it belongs to another context",
            next: "make a new one"))
        continue
      }
      storage.context = self
      storage.model = model
      storage.state = .inserted
      if let error = storage.encodingError {
        note(error)
        storage.encodingError = nil
      }
      lastTemporaryKey += 1
      storage.key = lastTemporaryKey
      inserted.insert(model)
      waiting += adoptRelationships(of: model, storage)
    }
  }

  /// Values set by an initializer reach the storage without their inverse: it is set now. Returns the models that have to
  /// be inserted too.
  private func adoptRelationships(
    of model: any PersistentModel, _ storage: ModelStorage
  ) -> [any PersistentModel] {
    var related: [any PersistentModel] = []
    for slot in storage.slots.indices {
      let others: [any PersistentModel]
      switch storage.slots[slot] {
      case .model(let other): others = [other]
      case .models(let models): others = models
      default: continue
      }
      let inverse = storage.descriptor.inverse(ofSlot: slot)
      for other in others {
        if other._modelStorage.context == nil { related.append(other) }
        if let inverse {
          other._modelStorage.link(
            model, at: inverse.slot, isToOne: inverse.isToOne, of: other, forwardSlot: slot)
        }
      }
    }
    return related
  }

  /// Marks a model for deletion. Its row goes, and its relationships' delete rules run, at the next `save()`.
  public func delete<T: PersistentModel>(_ model: T) {
    deleteAny(model)
  }

  private func deleteAny(_ model: any PersistentModel) {
    let storage = model._modelStorage
    guard storage.context === self else { return }
    switch storage.state {
    case .inserted:
      inserted.remove(model)
      Self.detach(storage)
    case .fault, .loaded:
      storage.fill()
      storage.state = .deleted
      changed.remove(model)
      deleted.insert(model)
    case .detached, .deleted, .gone: break
    }
  }

  static func detach(_ storage: ModelStorage) {
    storage.context = nil
    storage.state = .gone
  }

  func noteChange(of model: any PersistentModel) { changed.insert(model) }

  func hold(_ model: any PersistentModel) { held.insert(model) }

  // MARK: Registered models

  private func root(of entity: ModelEntity) -> Int {
    entity.layout.superNumber == 0
      ? entity.position : store.entity(named: entity.layout.root)?.position ?? entity.position
  }

  func entity(of storage: ModelStorage) -> ModelEntity? {
    store.entity(named: storage.descriptor.name)
  }

  private func register(_ storage: ModelStorage, _ entity: ModelEntity) {
    registered[root(of: entity)][storage.key] = Unmanaged.passUnretained(storage)
  }

  /// Called by a storage whose model goes away.
  func forget(_ storage: ModelStorage) {
    guard storage.key.isRowKey, let entity = entity(of: storage) else { return }
    let root = root(of: entity)
    if registered[root][storage.key]?.toOpaque() == Unmanaged.passUnretained(storage).toOpaque() {
      registered[root][storage.key] = nil
    }
  }

  /// The storages of all living models with a row, by the position of their root entity.
  var registeredStorages: [[ModelStorage]] {
    registered.map { $0.values.map { $0.takeUnretainedValue() } }
  }

  func registeredStorage(_ entity: ModelEntity, _ key: Int64) -> ModelStorage? {
    registered[root(of: entity)][key]?.takeUnretainedValue()
  }

  /// The model of a row: the living one, or a new one as a fault.
  func model(of entity: ModelEntity, key: Int64) -> any PersistentModel {
    if let model = registeredStorage(entity, key)?.model { return model }
    let reader = store.reader(of: entity)
    // Only the row says of which class its model is.
    if reader.isPolymorphic {
      do {
        if let model = try rows(reader.rowStatement, reader, [.key(key)]).first { return model }
      } catch {
        note(error)
      }
    }
    let storage = ModelStorage(entity.descriptor)
    storage.key = key
    storage.state = .fault
    return makeModel(storage, entity)
  }

  private func makeModel(_ storage: ModelStorage, _ entity: ModelEntity) -> any PersistentModel {
    let model = entity.descriptor.type.init(_modelStorage: storage)
    storage.model = model
    storage.context = self
    register(storage, entity)
    return model
  }

  // MARK: Fetching

  /// The models that a descriptor asks for.
  ///
  /// SQL finds, sorts and limits the rows. Where models have unsaved changes, and the descriptor includes them, those are
  /// judged and sorted in memory, by the predicate itself.
  ///
  /// - Throws: `modelNotInSchema` for a model of another version; `unsupportedPredicate`, naming the part that has no
  ///   counterpart in SQL; `sqlFailed`; an error met by a getter before.
  public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    try throwDeferredError()
    try seeSavesOfOthers()
    let models = try fetchModels(descriptor)
    return try seeCommitsOfOthers() ? fetchModels(descriptor) : models
  }

  private func fetchModels<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    let entity = try store.entity(for: T.self, action: "fetched", phase: phase)
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, store: store)
    let isPending = descriptor.includePendingChanges && hasPendingChanges(statement.entities)
    let reader = store.reader(of: entity, slots: try slots(of: descriptor, entity))
    var models: [T]
    if !isPending, statement.order != nil {
      let sql = statement.sql(
        selecting: reader.columns(), limit: descriptor.fetchLimit, offset: descriptor.fetchOffset)
      models = try rows(sql, reader, statement.parameters).compactMap { $0 as? T }
    } else {
      if isPending {
        models = try modelsWithPendingChanges(descriptor.predicate, statement)
      } else {
        let reader = store.reader(of: entity)
        let sql = statement.sql(selecting: reader.columns())
        models = try rows(sql, reader, statement.parameters).compactMap { $0 as? T }
      }
      models.sort(using: descriptor.sortBy)
      let start = min(max(descriptor.fetchOffset ?? 0, 0), models.count)
      let count = min(descriptor.fetchLimit ?? Int.max, models.count - start)
      models = Array(models[start..<(start + max(count, 0))])
    }
    try prefetch(descriptor.relationshipKeyPathsForPrefetching, of: models, entity)
    return models
  }

  /// How many models a descriptor asks for.
  ///
  /// - Throws: as `fetch(_:)` does.
  public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
    try throwDeferredError()
    let entity = try store.entity(for: T.self, action: "counted", phase: phase)
    let statement = try FetchStatement(descriptor.predicate, entity: entity, store: store)
    if descriptor.includePendingChanges, hasPendingChanges(statement.entities) {
      return try fetch(descriptor).count
    }
    let isLimited = descriptor.fetchLimit != nil || descriptor.fetchOffset != nil
    let sql =
      isLimited
      ? "SELECT COUNT(*) FROM ("
        + statement.sql(
          selecting: "1", limit: descriptor.fetchLimit, offset: descriptor.fetchOffset) + ")"
      : statement.sql(selecting: "COUNT(*)")
    return try store.connection.perform { session in
      let counting = try session.statement(sql)
      counting.bind(statement.parameters)
      defer { counting.reset() }
      return try counting.step() ? Int(counting.integer(at: 0)) : 0
    }
  }

  /// What a fetch finds when memory differs from the store: the models with changes are judged as they are in memory.
  private func modelsWithPendingChanges<T: PersistentModel>(
    _ predicate: Predicate<T>?, _ statement: FetchStatement
  ) throws -> [T] {
    let entity = statement.entity
    // Where the predicate looks at other entities too, a change there may decide about any row.
    let isDecidedByRow =
      statement.entities.allSatisfy { $0 === entity }
      || !hasPendingChanges(statement.entities.filter { $0 !== entity })
    let source =
      isDecidedByRow
      ? statement
      : try FetchStatement(
        nil as Predicate<T>?, entity: entity, store: store)
    let reader = store.reader(of: entity)
    let found = try rows(source.sql(selecting: reader.columns()), reader, source.parameters)
    var models: [T] = []
    for model in found where !isDecidedByRow || !model.hasChanges {
      guard model._modelStorage.state != .deleted, let model = model as? T else { continue }
      if isDecidedByRow || predicate == nil || matches(model, predicate) { models.append(model) }
    }
    let pending = isDecidedByRow ? inserted.all + changedModelsArray : inserted.all
    for case let model as T in pending where matches(model, predicate) { models.append(model) }
    try throwDeferredError()
    return models
  }

  /// A predicate that unwraps a `nil` by `!` does not match, in memory as in SQL.
  private func matches<T: PersistentModel>(_ model: T, _ predicate: Predicate<T>?) -> Bool {
    guard let predicate else { return true }
    do {
      return try predicate.evaluate(model)
    } catch let error as PredicateError where error == .forceUnwrapFailure {
      return false
    } catch {
      note(error)
      return false
    }
  }

  /// Whether memory differs from the store for one of these entities.
  func hasPendingChanges(_ entities: [ModelEntity]) -> Bool {
    guard hasChanges else { return false }
    let numbers = Set(entities.flatMap(\.layout.numbers))
    return (inserted.all + changed.all + deleted.all).contains { model in
      entity(of: model._modelStorage).map { numbers.contains($0.layout.number) } ?? false
    }
  }

  /// The models of the rows that a statement finds. Its columns are those of the reader, then any others.
  ///
  /// - Parameter each: called for each row with its model, to read the other columns; the number is that of the first one.
  func rows(
    _ sql: String, _ reader: RowReader, _ parameters: [Slot],
    each: (any PersistentModel, SQLStatement, Int32) -> Void = { _, _, _ in }
  ) throws -> [any PersistentModel] {
    try store.connection.perform { session in
      let statement = try session.statement(sql)
      statement.bind(parameters)
      defer { statement.reset() }
      var models: [any PersistentModel] = []
      while try statement.step() {
        let model = try model(at: statement, reader.part(of: statement))
        each(model, statement, reader.endColumn)
        models.append(model)
      }
      return models
    }
  }

  /// The model of the current row. What a living model holds is kept: it may have changes.
  private func model(
    at statement: SQLStatement, _ part: RowReader.Part
  ) throws -> any PersistentModel {
    let key = statement.integer(at: 0)
    if let storage = registeredStorage(part.entity, key), let model = storage.model {
      if storage.state == .fault { try read(statement, into: storage, part) }
      return model
    }
    let storage = ModelStorage(part.entity.descriptor)
    storage.key = key
    try read(statement, into: storage, part)
    return makeModel(storage, part.entity)
  }

  private func read(
    _ statement: SQLStatement, into storage: ModelStorage, _ part: RowReader.Part
  ) throws {
    let entity = part.entity
    if part.slots.count < entity.columnSlots.count {
      for slot in entity.columnSlots { storage.slots[slot] = .unloaded }
    }
    for (slot, column) in zip(part.slots, part.firstColumns) {
      switch entity.slots[slot] {
      case .attribute(let stored, let isOptional):
        var value = statement.slot(at: column)
        if stored.mayBeExternal, case .blob(let bytes) = value {
          switch ExternalValues.Form(stored: bytes) {
          case .inline(let bytes), .bare(let bytes): value = .blob(Data(bytes))
          case .file:
            storage.slots[slot] = .unloaded
            continue
          }
        }
        if case .null = value, !isOptional, !mayLackValues {
          throw InstarError(
            .missingRequiredValues, "cannot read \(entity.layout.name) \(storage.key)",
            cause:
              "required attribute '\(entity.descriptor.properties[slot].name)' has no value (column \(stored.name))",
            next: "make the property optional in this version of the schema")
        }
        if !value.isNull, !entity.accepts(value, at: slot) {
          throw Self.unreadable(storage, slot)
        }
        storage.slots[slot] = value
      case .composite(let columns, let isOptional):
        let leaves = columns.indices.map { statement.slot(at: column + Int32($0)) }
        storage.slots[slot] = try composite(leaves, isOptional, storage, slot, entity)
      case .toOne:
        storage.slots[slot] =
          statement.storageClass(at: column) == .integer
          ? .key(statement.integer(at: column)) : .null
      case .toMany, .none: break
      }
    }
    for slot in entity.slots.indices {
      switch entity.slots[slot] {
      case .toMany: storage.slots[slot] = .unloaded
      case .none: storage.slots[slot] = storage.descriptor.properties[slot].valueInMemory
      case .attribute, .composite, .toOne: break
      }
    }
    storage.state = .loaded
  }

  /// In `didMigrate` a required property that is new, or has another type, has no value in the rows yet: the closure is there to
  /// set it. One that is read before is an error, and one that stays empty is found when the store is verified.
  private var mayLackValues: Bool { phase == "didMigrate" }

  /// A composite from its columns. Where all are NULL there is no value: `nil`, or the property's initial value where it
  /// has to have one, as in the rows that were there before the property.
  private func composite(
    _ leaves: [Slot], _ isOptional: Bool, _ storage: ModelStorage, _ slot: Int,
    _ entity: ModelEntity
  ) throws -> Slot {
    guard leaves.allSatisfy(\.isNull) else {
      guard entity.accepts(.composite(leaves), at: slot) else {
        throw Self.unreadable(storage, slot)
      }
      return .composite(leaves)
    }
    if isOptional { return .null }
    if entity.accepts(.composite(leaves), at: slot) { return .composite(leaves) }
    if case .attribute(let kind) = entity.descriptor.properties[slot].kind,
      let initial = kind.defaultSlot()
    {
      return initial
    }
    if mayLackValues { return .null }
    throw Self.unreadable(storage, slot)
  }

  private static func unreadable(_ storage: ModelStorage, _ slot: Int) -> InstarError {
    InstarError(
      .missingRequiredValues, "cannot read \(storage.descriptor.name) \(storage.key)",
      cause: "'\(storage.descriptor.properties[slot].name)' holds no value of its type")
  }

  // MARK: Faults

  func fill(_ storage: ModelStorage) {
    guard storage.state == .fault, let entity = entity(of: storage) else { return }
    do {
      if try readRow(of: storage, entity, into: storage) { return }
      note(missingRow(of: storage, entity))
    } catch {
      note(error)
    }
    storage.state = .gone
  }

  /// Returns whether there is such a row.
  private func readRow(
    of storage: ModelStorage, _ entity: ModelEntity, into target: ModelStorage
  ) throws -> Bool {
    let reader = store.reader(of: entity)
    return try store.connection.perform { session in
      let statement = try session.statement(reader.rowStatement)
      statement.bind(storage.key, at: 1)
      defer { statement.reset() }
      guard try statement.step() else { return false }
      try read(statement, into: target, reader.part(of: statement))
      return true
    }
  }

  /// Reads the values that a fetch of some properties only left out.
  func fillUnloadedValues(of storage: ModelStorage) {
    guard let entity = entity(of: storage) else { return }
    let whole = ModelStorage(entity.descriptor)
    whole.key = storage.key
    do {
      _ = try readRow(of: storage, entity, into: whole)
    } catch {
      note(error)
    }
    for slot in entity.columnSlots {
      guard case .unloaded = storage.slots[slot] else { continue }
      storage.slots[slot] = whole.slots[slot]
      guard case .unloaded = whole.slots[slot] else { continue }
      do {
        storage.slots[slot] = try externalValue(at: slot, of: storage, entity)
      } catch {
        storage.slots[slot] = .null
        note(error)
      }
    }
  }

  /// A value that lies in a file.
  private func externalValue(
    at slot: Int, of storage: ModelStorage, _ entity: ModelEntity
  ) throws -> Slot {
    guard case .attribute(let column, _) = entity.slots[slot] else { return .null }
    let value = try store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(column.name) FROM \(entity.layout.table) AS t0 "
          + "WHERE \(entity.layout.key.condition("t0", equals: "?1"))")
      statement.bind(storage.key, at: 1)
      defer { statement.reset() }
      return try statement.step() ? statement.slot(at: 0) : .null
    }
    guard case .blob(let stored) = value else { return value }
    let file = Slot.blob(try store.connection.externalValues.read(stored))
    guard entity.accepts(file, at: slot) else { throw Self.unreadable(storage, slot) }
    return file
  }

  func noteUnreadableValue(of storage: ModelStorage, slot: Int) {
    guard storage.state == .gone else { return note(Self.unreadable(storage, slot)) }
    note(
      InstarError(
        .missingRequiredValues, "cannot read \(storage.descriptor.name) \(storage.key)",
        cause: "'\(storage.descriptor.properties[slot].name)' was asked for, but the row is gone"))
  }

  func note(_ error: any Error) {
    if deferredError == nil { deferredError = error }
  }

  func throwDeferredError() throws {
    try store.throwDeferredError()
    guard let error = deferredError else { return }
    deferredError = nil
    throw error
  }

  // MARK: Relationships

  /// The object at the other end of a to-one relationship.
  func model(at slot: Int, of storage: ModelStorage, key: Int64) -> (any PersistentModel)? {
    guard let entity = entity(of: storage),
      case .toOne(_, let destination, _) = entity.slots[slot],
      let target = store.entity(named: destination)
    else { return nil }
    return model(of: target, key: key)
  }

  /// The members of a to-many relationship: those in the store, as changed in memory from the other side.
  func members(of storage: ModelStorage, slot: Int) -> [any PersistentModel] {
    guard let entity = entity(of: storage), case .toMany(let relationship) = entity.slots[slot],
      let target = store.entity(named: relationship.relationship.destination)
    else { return [] }
    let reader = store.reader(of: target)
    let columns = reader.columns(alias: "t")
    let table = target.layout.table
    let key = target.layout.key.reading.sql("t")
    do {
      let models: [any PersistentModel]
      switch relationship.place {
      case .column: return []
      case .foreignKey(let reference):
        models = try rows(
          "SELECT \(columns) FROM \(table) AS t WHERE \(reference.condition("t", equals: "?1")) "
            + relationship.order("t", key: key),
          reader, [.key(storage.key)])
      case .joinTable(let name, let own, let other):
        models = try rows(
          "SELECT \(columns) FROM \(name) AS j JOIN \(table) AS t ON \(other.condition("j", refersTo: "t")) "
            + "WHERE \(own.condition("j", equals: "?1")) \(relationship.order("j", key: key))",
          reader, [.key(storage.key)])
      }
      return membersAsInMemory(models, of: storage, slot: slot, relationship.place)
    } catch {
      note(error)
      return []
    }
  }

  /// The members read from the store, as changed in memory from the other side.
  func membersAsInMemory(
    _ stored: [any PersistentModel], of storage: ModelStorage, slot: Int,
    _ place: EntityLayout.RelationshipStorage.Place
  ) -> [any PersistentModel] {
    var models = stored
    let isSavedFromHere =
      if case .foreignKey = place { storage.descriptor.inverse(ofSlot: slot) == nil } else { true }
    if isSavedFromHere { storage.savedMembers[slot] = Self.keys(of: models) }
    // Kept until they are saved: the members may have to be read again before that.
    if let pending = storage.pendingMembers[slot] {
      models.removeAll { pending.removed.contains(ObjectIdentifier($0)) }
      let present = Set(models.map { ObjectIdentifier($0) })
      models += pending.added.filter { !present.contains(ObjectIdentifier($0)) }
    }
    models.removeAll { $0._modelStorage.state == .deleted }
    return models
  }

  private static func keys(of models: [any PersistentModel]) -> Set<Int64> {
    Set(models.map { $0._modelStorage.key })
  }

  // MARK: Saving

  /// Writes all changes in one transaction.
  ///
  /// - Throws: an error met by a getter before; `modelValidationFailure` for a required relationship without a value or a
  ///   `deny` rule; `sqlFailed`. Nothing is then written, and all changes are still pending.
  public func save() throws {
    try throwDeferredError()
    guard hasChanges else { return }
    try seeSavesOfOthers()
    try applyDeleteRules()
    try validateCounts()
    try throwDeferredError()
    let save = try ModelSave(
      context: self, inserted: inserted.all, changed: changedModelsArray, deleted: deleted.all)
    let rows = try save.run()
    if store.connection.saves.hasOthers {
      store.connection.saves.note(rows, by: ObjectIdentifier(self))
    }
    // The inserted ones first: one of them may have taken the place of a changed one.
    for model in inserted.all { settle(model) }
    for model in changedModelsArray { settle(model) }
    for model in held.all { model._modelStorage.pendingMembers.removeAll() }
    for model in deleted.all {
      forget(model._modelStorage)
      Self.detach(model._modelStorage)
    }
    inserted.removeAll()
    changed.removeAll()
    deleted.removeAll()
    held.removeAll()
  }

  /// After a save: the store holds what the model holds.
  private func settle(_ model: any PersistentModel) {
    let storage = model._modelStorage
    storage.state = .loaded
    storage.changedSlots.removeAll()
    storage.pendingMembers.removeAll()
    guard let entity = entity(of: storage) else { return }
    for slot in entity.generatedSlots { storage.slots[slot] = .unloaded }
    for slot in entity.slots.indices {
      guard case .toMany = entity.slots[slot] else { continue }
      switch storage.slots[slot] {
      case .models(let models): storage.savedMembers[slot] = Self.keys(of: models)
      // Never set by the initializer: empty.
      case .null:
        storage.slots[slot] = .models([])
        storage.savedMembers[slot] = []
      default: break
      }
    }
    if let other = registeredStorage(entity, storage.key), other !== storage {
      // The model took the place of a row by a unique value: another object of that row reads it anew.
      other.state = .fault
      other.changedSlots.removeAll()
      if let model = other.model { changed.remove(model) }
    }
    register(storage, entity)
  }

  private func applyDeleteRules() throws {
    var waiting = deleted.all
    while let model = waiting.popLast() {
      let storage = model._modelStorage
      for slot in storage.descriptor.properties.indices {
        guard case .relationship(let relationship) = storage.descriptor.properties[slot].kind
        else { continue }
        let members =
          relationship.isToOne
          ? storage.toOne(at: slot).map { [$0] } ?? [] : storage.toMany(at: slot)
        let living = members.filter { !$0._modelStorage.isDeleted }
        switch relationship.metadata.deleteRule {
        case .noAction: continue
        case .deny:
          if !living.isEmpty {
            throw SwiftDataError.validation(
              "cannot delete \(storage.descriptor.name) \(storage.key)",
              "its relationship '\(storage.descriptor.properties[slot].name)' denies deletion while it has \(living.count) models"
            )
          }
        case .cascade:
          for member in living {
            deleteAny(member)
            if deleted.contains(member) { waiting.append(member) }
          }
        case .nullify:
          guard let inverse = storage.descriptor.inverse(ofSlot: slot) else { continue }
          for member in living {
            member._modelStorage.unlink(
              model, at: inverse.slot, isToOne: inverse.isToOne, of: member)
          }
        }
      }
    }
  }

  /// Runs `block`, then saves; when either throws, the changes in memory are undone.
  public func transaction(block: () throws -> Void) throws {
    do {
      try block()
      try save()
    } catch {
      rollback()
      throw error
    }
  }

  /// Forgets all changes since the last `save()`.
  public func rollback() {
    deferredError = nil
    for model in inserted.all { Self.detach(model._modelStorage) }
    for model in changed.all + deleted.all {
      let storage = model._modelStorage
      storage.announcingAllChanges {
        storage.state = .fault
        storage.changedSlots.removeAll()
      }
    }
    // Arrays changed from the other side are read again, too. All storages are held first: an array may be what keeps
    // models of other entities alive.
    let living = registeredStorages
    for storage in living.joined() {
      storage.pendingMembers.removeAll()
      guard storage.state == .loaded else { continue }
      for slot in storage.slots.indices {
        if case .models = storage.slots[slot] { storage.slots[slot] = .unloaded }
      }
    }
    // All are held until here: letting go of members may end models, of any entity.
    withExtendedLifetime(living) {}
    inserted.removeAll()
    changed.removeAll()
    deleted.removeAll()
    held.removeAll()
  }
}
