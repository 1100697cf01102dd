import Foundation
import InstarSchema
import InstarStore

/// Fetches, inserts, changes and deletes models of a container, and saves the changes together.
///
/// A context has one object for each row. Only if a new model takes a row, the app may still have the former object of
/// that row too. Use a context from one thread at a time. Nothing is written before `save()`, which writes all changes
/// in one transaction for each store.
///
/// Keep a context as long as its models. Models without their context keep the values in memory, and have no
/// relationships. If a value was not read before, such as a large one in a file, its getter returns an empty value, and
/// the next fetch or save of another context throws the error. Reading a required relationship is the same error, even
/// if it was read before. A model that is being freed reports no such error.
public final class ModelContext {
  // Invariants: `registered` has an unretained reference to the storage of every living model with a row, except those
  // in `formerModels`; a storage removes itself when its model is deallocated. `inserted`, `changed`, `deleted` and
  // `held` retain models with unsaved changes, so releasing the last other reference loses no change.

  /// The container of the context.
  public var container: ModelContainer {
    if let container = owner ?? ownerOfMain { return container }
    // The main context has outlived its container, so this creates another one for the same stores.
    let container = ModelContainer(stores: stores, configurations: configurations)
    owner = container
    return container
  }

  /// Who makes the changes: `save()` writes it into the store's history.
  public var author: String?

  /// Has no effect, because Linux has no run loop that could save. Call `save()`.
  public var autosaveEnabled = false

  #if !canImport(Darwin)
    /// Has no effect: Instar does not record changes for undoing. To discard unsaved changes, call `rollback()`.
    @available(
      *, deprecated, message: "'undoManager' has no effect; call 'rollback()' to discard changes"
    )
    public var undoManager: UndoManager?
  #endif

  /// In the closure of a stage, another version's classes may replace those of the version.
  var stores: ModelStores { didSet { adoptEntities() } }
  private let configurations: Set<ModelConfiguration>
  private var owner: ModelContainer?
  /// The container of a main context. It is weak because the container retains its main context.
  private weak var ownerOfMain: ModelContainer?
  /// For each store, the newest save and commit of others that this context has processed.
  var lastSeenSaves: [Int]
  var lastSeenCommitsOfOthers: [Int]
  /// By the position of the root entity. Unchecked, like the slots of a storage: no other code runs during an access.
  @exclusivity(unchecked) private(set) var registered: [RegisteredModels]
  var inserted = OrderedModels()
  var changed = OrderedModels()
  var deleted = OrderedModels()
  /// Models whose only pending change was made from the other side of a relationship.
  var held: [ObjectIdentifier: any PersistentModel] = [:]
  /// Members of new models that were deleted, for the next save.
  var orphans = Orphans()
  /// The owners of new models by relationships without inverse; `nil` until a new model is deleted. From then to the
  /// save each change of such a relationship adds to it.
  var oneSidedOwners: OneSidedOwners?
  /// While the delete rules of a save run, the models that they have read or changed, as they were before.
  var beforeRules: UnsavedChanges?
  /// The former objects of rows that new models took, and changed models whose rows others have deleted.
  var formerModels: [FormerModel] = []
  /// An error from code that cannot throw, such as a getter. The next fetch or save throws it.
  var deferredError: (any Error)?
  /// Whether a relationship may retain models since `enumerate` last released them.
  var hasRelatedModels = false
  /// In the closure of a stage, the save that `enumerate` or a large fetch has begun.
  var openSave: OpenSave?
  /// The number of changed models up to which `writeBatch` does not try again to write them.
  var unwritableCount = 0
  /// In the closure of a stage, the number of a failed save whose changes are still pending.
  var failedSave: Int?
  /// Whether a property that is set to the value that it has counts as changed, so that a save writes it.
  package var savesEqualValues = false
  /// Called before each row that a save or a statement of the plan writes; an error that it throws fails that. Only
  /// tests of plans set it.
  package var beforeWrite: (@Sendable () throws -> Void)?
  /// The closure that got this context; `nil` outside a stage, in its check, and in contexts that a closure creates.
  let closure: StageClosure?
  /// In the closure of a stage, how many rows of an entity a fetch without a limit returned: of all entities whose rows
  /// were fetched without a condition, or more than `enumerate` has in memory at once.
  package private(set) var wholeFetches: [String: Int] = [:]
  /// In the closure of a stage, the newest fetch of more than `modelsInMemory` rows.
  var largeFetch: LargeFetch?
  /// The rows that were read for large fetches and whose models did not become faults again.
  var filled: Set<FilledRow> = []
  /// The number of these at which they are released.
  lazy var filledLimit = modelsInMemory
  /// The number of models that a fetch in the closure of a stage reads at once. Only tests set it.
  package var modelsInMemory = WholeFetch.batchSize
  /// Whether a function of the context runs that must find the models as they are.
  var isWorking = false
  /// Whether a row is read because the app's code sets a property.
  var isFillingForChange = false
  /// In a bridge, the entity here that has the rows of each entity of the other version.
  package var counterparts: [String: String]?
  /// The scratchpad of the run; `nil` outside a run.
  let keptValues: ScratchpadStore?
  /// Measures the work of the closure of a stage; `nil` elsewhere, also in contexts that the closure creates.
  let meter: WorkMeter?

  /// Creates a context for the container's stores. It has no models in memory yet.
  public convenience init(_ container: ModelContainer) {
    self.init(container, closure: nil, isMain: false)
  }

  init(
    _ container: ModelContainer, closure: StageClosure?, keptValues: ScratchpadStore? = nil,
    meter: WorkMeter? = nil, isMain: Bool = false
  ) {
    stores = container.stores
    configurations = container.configurations
    if isMain { ownerOfMain = container } else { owner = container }
    self.closure = closure
    self.keptValues = keptValues
    self.meter = meter
    registered = Array(repeating: RegisteredModels(), count: stores.entities.count)
    lastSeenSaves = stores.all.map { $0.connection.saves.addListener() }
    lastSeenCommitsOfOthers = stores.all.map(\.connection.commitCountOfOthers)
  }

  deinit {
    for store in stores.all { store.connection.saves.removeListener() }
    // Models may outlive their context and keep their values. Clearing their relationships breaks reference cycles.
    for model in inserted.all { Self.detach(model._modelStorage) }
    let storages = storagesOfRows
    // One array for all models of a class.
    var unloaded: [ObjectIdentifier: ContiguousArray<Slot>] = [:]
    for storage in storages {
      // Without values, so that reading one is an error, also of an optional.
      if storage.state == .fault, storage.slots.allSatisfy(\.isNull) {
        let known = unloaded[ObjectIdentifier(storage.descriptor)]
        storage.slots = known ?? ContiguousArray(all: .unloaded, count: storage.slots.count)
        unloaded[ObjectIdentifier(storage.descriptor)] = storage.slots
      }
      storage.context = nil
      storage.state = .gone
      storage.hasLostContext = true
    }
    for storage in storages {
      for slot in storage.slots.indices {
        switch storage.slots[slot] {
        case .model, .key: storage.slots[slot] = .null
        case .models: storage.slots[slot] = .models(Members())
        case .null, .integer, .real, .text, .blob, .composite, .unloaded: break
        }
      }
    }
  }

  /// Counts what a fetch of the plan's code returned, if it has no limit.
  func noteFetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>, count: Int) {
    // One row is as much as a fetch must return.
    guard closure != nil, descriptor.fetchLimit == nil, count > 1,
      descriptor.predicate == nil || count > WholeFetch.batchSize
    else { return }
    let entity = T._modelDescriptor.name
    wholeFetches[entity] = max(wholeFetches[entity] ?? 0, count)
  }

  /// Whether `save()` would write or commit a change.
  public var hasChanges: Bool { openSave != nil || hasUnwrittenChanges }

  /// Whether models in memory differ from the store.
  var hasUnwrittenChanges: Bool {
    !inserted.isEmpty || !changed.isEmpty || !deleted.isEmpty || !orphans.isEmpty
  }

  /// The models that the next `save()` inserts, in the order of `insert(_:)`.
  public var insertedModelsArray: [any PersistentModel] { inserted.all }
  /// The models with a row whose values or relationships the next `save()` writes. In a stage, without those of earlier
  /// batches of `enumerate` or a large fetch.
  public var changedModelsArray: [any PersistentModel] {
    changed.all.filter { $0._modelStorage.state == .loaded }
  }
  /// The models whose rows the next `save()` deletes. Delete rules may add others.
  public var deletedModelsArray: [any PersistentModel] { deleted.all }

  /// Gives the models in memory the entities of other stores, which are in the same order.
  private func adoptEntities() {
    let new = (inserted.all + deleted.all).map(\._modelStorage)
    for storage in new + storagesOfRows {
      storage.entity = stores.entity(of: storage.descriptor)
    }
    inserted.recount()
  }

  /// Whether this is the context of a stage's closure or check, or one that a closure created.
  var isInStage: Bool { stores.isInStage }

  // MARK: Insert and delete

  /// Adds a new model, and every new model that its relationships reference. `save()` writes their rows.
  ///
  /// If a row already has a unique value of the model, `save()` updates that row (upsert): it writes all attributes and
  /// to-one relationships of the model, and adds the members of its to-many relationships to those of the row. Of
  /// several new models with one unique value, the last one is written. If several rows have unique values of the
  /// model, `save()` deletes all but one, and the model gets their members too: the row with its primary key stays, or
  /// else the one with the first `#Unique` or `@Attribute(.unique)`. In a table without rowid only a row with its
  /// primary key stays. A model that was deleted, or that belongs to another context, cannot be inserted: the next
  /// fetch or save throws `invalidModel`.
  public func insert<T: PersistentModel>(_ model: T) {
    insertAny(model)
  }

  func insertAny(_ model: any PersistentModel) {
    var waiting = [model]
    while let model = waiting.popLast() {
      let storage = model._modelStorage
      if storage.context === self, storage.state == .deleted, storage.hasLostRow {
        deleted.remove(model)
        Self.detach(storage)
      }
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
              ? "the model was deleted, or its context was released"
              : "the model belongs to another context",
            next: "create a new model and insert that one"))
        continue
      }
      storage.context = self
      storage.entity = stores.entity(of: storage.descriptor)
      storage.isObservable = !isInStage
      storage.model = model
      storage.state = .inserted
      if let error = storage.encodingError {
        note(error)
        storage.encodingError = nil
      }
      storage.takeTemporaryKey()
      inserted.insert(model)
      waiting += adoptRelationships(of: model, storage)
    }
  }

  /// Sets the inverses of relationships that an initializer set, and returns the related models that need inserting
  /// too.
  private func adoptRelationships(
    of model: any PersistentModel, _ storage: ModelStorage
  ) -> [any PersistentModel] {
    var related: [any PersistentModel] = []
    for slot in storage.slots.indices {
      let others: [any PersistentModel]
      switch storage.slots[slot] {
      case .model(let other): others = [other]
      case .models(let members): others = members.all
      default: continue
      }
      let inverse = storage.inverse(ofSlot: slot)
      for other in others {
        if isOfAnotherContext(other) {
          storage.removeForeign(other, at: slot)
          continue
        }
        if other._modelStorage.context == nil { related.append(other) }
        if let inverse {
          other._modelStorage.link(
            model, at: inverse.slot, isToOne: inverse.isToOne, of: other, forwardSlot: slot)
        }
      }
      if inverse == nil {
        oneSidedOwners?.note(others.filter { !isOfAnotherContext($0) }, of: (model, slot))
      }
    }
    return related
  }

  /// Marks a model for deletion. The next `save()` deletes its row and applies the delete rules of its relationships.
  ///
  /// A model that was never saved leaves the context and all relationships at once. The next `save()` then applies
  /// those delete rules that delete its members, unless these have another owner by then. Saved members of a
  /// relationship without inverse stay. A model that is gone already, or has no context, is ignored. A model of another
  /// context stays, and the next fetch or save throws `invalidModel`.
  public func delete<T: PersistentModel>(_ model: T) {
    let storage = model._modelStorage
    if storage.context === self, storage.state == .fault { storage.fillForCode() }
    deleteAny(model)
  }

  func deleteAny(_ model: any PersistentModel) {
    let storage = model._modelStorage
    if isOfAnotherContext(model) {
      note(
        InstarError(
          .invalidModel, "cannot delete \(storage.title)",
          cause: "\(storage.title) belongs to another context",
          next: counterparts == nil
            ? "fetch the model with this context, and delete that one"
            : "find the model of this context with counterpart(of:as:), and delete that one"))
    }
    guard storage.context === self else { return }
    switch storage.state {
    case .inserted:
      inserted.remove(model)
      withdraw(model)
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

  func isOfAnotherContext(_ model: any PersistentModel) -> Bool {
    model._modelStorage.context.map { $0 !== self } ?? false
  }

  func noteChange(of model: any PersistentModel) { changed.insert(model) }

  func hold(_ model: any PersistentModel) { held[ObjectIdentifier(model)] = model }

  // MARK: Registered models

  func root(of entity: ModelEntity) -> Int { stores.rootPositions[entity.position] }

  func entity(of storage: ModelStorage) -> ModelEntity? {
    storage.entity ?? stores.entity(named: storage.descriptor.name)
  }

  /// The identifier of a model's store.
  func storeIdentifier(of storage: ModelStorage) -> String? {
    stores.all.count == 1 ? stores.all[0].uuid : entity(of: storage)?.store.uuid
  }

  func register(_ storage: ModelStorage, _ entity: ModelEntity) {
    registered[root(of: entity)].insert(storage)
  }

  /// Called by a storage whose model is deallocated.
  func forget(_ storage: ModelStorage) {
    guard storage.hasRow, let entity = entity(of: storage) else { return }
    // After an upsert the row may be that of another model, which stays.
    registered[root(of: entity)].remove(storage)
  }

  /// The storages of all living models with a row, by the position of their root entity.
  var registeredStorages: [[ModelStorage]] {
    registered.map(\.storages)
  }

  /// The same with `formerModels`.
  var storagesOfRows: [ModelStorage] {
    registeredStorages.joined() + formerModels.compactMap(\.storage)
  }

  /// All living models with a row, by the position of their root entity. A loop that clears relationships retains
  /// these until its end: a relationship may be the last reference to a model, and the `deinit` of another must not
  /// find the storage of a freed model.
  var registeredModels: [[any PersistentModel]] {
    registered.map { $0.storages.compactMap(\.model) }
  }

  /// The same with `formerModels`.
  var modelsOfRows: [any PersistentModel] { storagesOfRows.compactMap(\.model) }

  func registeredStorage(_ entity: ModelEntity, _ key: Int64) -> ModelStorage? {
    registered[root(of: entity)].storage(key)
  }

  /// Returns the model of a row: the living one, or a new fault.
  func model(of entity: ModelEntity, key: Int64) -> any PersistentModel {
    if let model = registeredStorage(entity, key)?.model { return model }
    let reader = stores.reader(of: entity)
    // Only the row has the class of its model.
    if reader.isPolymorphic {
      do {
        if let model = try rows(reader.rowStatement, reader, [.key(key)]).first { return model }
      } catch {
        note(error)
      }
    }
    return modelOrFault(of: entity, key: key)
  }

  /// Returns the model of a row of the entity itself: the living one, or a new one that reads the row at the first
  /// access.
  func modelOrFault(of entity: ModelEntity, key: Int64) -> any PersistentModel {
    if let model = registeredStorage(entity, key)?.model { return model }
    let storage = ModelStorage(entity, key: key, slots: entity.emptySlots.slots)
    storage.state = .fault
    let model = RowObject.make(storage)
    adopt(storage, of: model, entity)
    return model
  }

  /// Takes a new model of a row into the context.
  func adopt(_ storage: ModelStorage, of model: any PersistentModel, _ entity: ModelEntity) {
    storage.model = model
    storage.context = self
    storage.isObservable = !isInStage
    register(storage, entity)
  }
}
