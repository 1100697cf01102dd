import Foundation
import InstarSchema
import InstarStore

/// The models of one container that one piece of code works with: fetched, inserted, changed, deleted, then saved together.
///
/// One row is one object within a context. A context belongs to the thread that uses it. Nothing is written before
/// `save()`, which writes everything in one transaction of each store.
///
/// Invariants: `registered` holds, unretained, the storage of every living model of this context that has a row; a
/// storage takes itself out when its model goes away. Models with unsaved changes are held by `inserted`, `changed`,
/// `deleted` and `held`, so that no change is lost with the last reference to its object.
public final class ModelContext {
  /// The container the context was made for.
  public var container: ModelContainer {
    if let container = owner ?? ownerOfMain { return container }
    // The main context has outlived its container: here is another one of the same stores.
    let container = ModelContainer(stores: stores, configurations: configurations)
    owner = container
    return container
  }

  /// Accepted as in SwiftData, which notes it in a store's history. Instar writes no history.
  public var author: String?

  /// Accepted as in SwiftData. There is no run loop that would save by itself on Linux: call `save()`.
  public var autosaveEnabled = false

  let stores: ModelStores
  private let configurations: Set<ModelConfiguration>
  private var owner: ModelContainer?
  /// The container of a main context, which that container holds in turn.
  private weak var ownerOfMain: ModelContainer?
  /// Of each store, the newest save and commit of others that this context knows of.
  var lastSeenSaves: [Int]
  var lastSeenCommitsOfOthers: [Int]
  /// By the position of the root entity, then by key.
  private(set) var registered: [[Int64: Unmanaged<ModelStorage>]]
  var inserted = OrderedModels()
  var changed = OrderedModels()
  var deleted = OrderedModels()
  /// Models that are unchanged themselves, but know of a change made from the other side of a relationship.
  var held = OrderedModels()
  private var lastTemporaryKey: Int64 = .min
  /// An error met where nothing could be thrown (a getter); thrown by the next fetch or save.
  var deferredError: (any Error)?
  /// In the closure of a stage, the number of a failed save whose changes are still pending.
  var failedSave: Int?
  /// The closure this context was made for ("willMigrate"), as errors name it.
  let phase: String?
  /// What the closures of a run keep for each other; `nil` outside of one.
  let keptValues: ScratchpadStore?

  /// A context without models, of the container's stores.
  public convenience init(_ container: ModelContainer) {
    self.init(container, phase: nil, isMain: false)
  }

  init(
    _ container: ModelContainer, phase: String?, keptValues: ScratchpadStore? = nil,
    isMain: Bool = false
  ) {
    stores = container.stores
    configurations = container.configurations
    if isMain { ownerOfMain = container } else { owner = container }
    self.phase = phase
    self.keptValues = keptValues
    registered = Array(repeating: [:], count: stores.entities.count)
    lastSeenSaves = stores.all.map { $0.connection.saves.addListener() }
    lastSeenCommitsOfOthers = stores.all.map(\.connection.commitCountOfOthers)
  }

  deinit {
    for store in stores.all { store.connection.saves.removeListener() }
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

  func deleteAny(_ model: any PersistentModel) {
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
      ? entity.position : stores.entity(named: entity.layout.root)?.position ?? entity.position
  }

  func entity(of storage: ModelStorage) -> ModelEntity? {
    stores.entity(named: storage.descriptor.name)
  }

  /// What tells the rows of a model's store from those of others.
  func storeIdentifier(of storage: ModelStorage) -> String? {
    stores.all.count == 1 ? stores.all[0].uuid : entity(of: storage)?.store.uuid
  }

  func register(_ storage: ModelStorage, _ entity: ModelEntity) {
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
    let reader = stores.reader(of: entity)
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

  func makeModel(_ storage: ModelStorage, _ entity: ModelEntity) -> any PersistentModel {
    let model = entity.descriptor.type.init(_modelStorage: storage)
    storage.model = model
    storage.context = self
    register(storage, entity)
    return model
  }
}
