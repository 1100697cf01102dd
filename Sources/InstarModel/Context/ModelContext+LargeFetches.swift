import InstarSchema
import InstarStore

/// A fetch of more rows than the closure of a stage has in memory at once: all its models exist, and most are faults.
///
/// The array of the models keeps the objects alive, not their values. When code asks for a value of the next model, the
/// context reads a batch of rows. Before that it writes the changes and turns the models that it read earlier into
/// faults again. So memory grows by the objects alone. The changes are in an open save, as those of `enumerate` are.
///
/// Code must not notice. A model that retains others stays as it is: the array may be all that keeps these alive.
/// Models that outlive the closure are read before it ends, and those of a table before a statement of the plan writes
/// it: they must have the values of their time.
struct LargeFetch {
  private let entity: ModelEntity
  private let reader: RowReader
  /// The keys of the rows, in the order of the fetch.
  private let keys: [Int64]
  /// The first row in this order that no batch has read.
  private var next: Int
  /// The number of rows that are read at once.
  private let batchSize: Int

  /// - Parameter readCount: The number of models at the beginning whose values are in memory.
  init(
    _ models: [some PersistentModel], readCount: Int, _ entity: ModelEntity, _ reader: RowReader
  ) {
    self.entity = entity
    self.reader = reader
    keys = models.map(\._modelStorage.key)
    next = readCount
    batchSize = max(readCount / 10, 1)
  }

  /// Reads the batch that begins with a model. Reads nothing if another model is the next one: code that takes the
  /// models in an order of its own would have to wait for rows that it does not use. Nor does it if another version's
  /// class took the place of the model's class.
  ///
  /// - Returns: The models of the batch.
  mutating func readBatch(
    from storage: ModelStorage, _ context: ModelContext
  ) throws -> [any PersistentModel] {
    guard next < keys.count, keys[next] == storage.key,
      storage.entity?.isInFamily(of: entity) == true,
      context.stores.entity(of: entity.descriptor) === entity
    else { return [] }
    let batch = keys[next...].prefix(batchSize)
    next += batch.count
    return Array(try context.modelsByKey(batch, reader, entity).values)
  }
}

/// A row that was read for large fetches. Its model may be freed meanwhile: a loop may be done with it.
struct FilledRow: Hashable {
  let entity: ModelEntity
  let key: Int64

  static func == (one: FilledRow, other: FilledRow) -> Bool {
    one.key == other.key && one.entity === other.entity
  }

  func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

extension ModelContext {
  /// The number of rows up to which a fetch reads all rows at once. In the block of `enumerate` nothing is released,
  /// and what a bridge reads through `old` cannot be read after it.
  var fetchLimitInMemory: Int {
    switch closure {
    case .willMigrate, .didMigrate: isWorking ? .max : modelsInMemory
    case .bridge, nil: .max
    }
  }

  /// Keeps the memory of a fetch bounded, if it returned more models than it has read.
  func beginLargeFetch(
    of models: [some PersistentModel], _ entity: ModelEntity, _ reader: RowReader, _ limit: Int
  ) {
    guard models.count > limit else { return }
    for model in models.prefix(limit) { noteFilled(model._modelStorage) }
    largeFetch = LargeFetch(models, readCount: limit, entity, reader)
  }

  /// Reads the row of a fault because the app's code uses one of its properties.
  ///
  /// Only then may other models become faults: all functions of the context are between two steps of that code. In
  /// their middle, `isWorking` is true.
  func fillForCode(_ storage: ModelStorage) {
    guard var fetch = largeFetch, !isWorking else { return fill(storage) }
    if filled.count >= filledLimit { working(releaseFilled) }
    // A row of the batch that cannot be read must not fail code that uses another one.
    if let batch = try? working({ try fetch.readBatch(from: storage, self) }) {
      for model in batch { noteFilled(model._modelStorage) }
    }
    largeFetch = fetch
    if storage.state == .fault {
      fill(storage)
      noteFilled(storage)
    }
  }

  private func noteFilled(_ storage: ModelStorage) {
    if let entity = storage.entity { filled.insert(FilledRow(entity: entity, key: storage.key)) }
  }

  /// Writes the changes, and turns the models that were read for large fetches into faults.
  private func releaseFilled() {
    writeBatch()
    filled = filled.filter { !release($0) }
    // Models that cannot be released now are not tried again for each fault.
    filledLimit = max(modelsInMemory, 2 * filled.count)
  }

  /// - Returns: Whether no model has the values of the row in memory now.
  private func release(_ row: FilledRow) -> Bool {
    guard let known = stores.entity(of: row.entity.descriptor),
      let storage = registeredStorage(known, row.key), let entity = storage.entity
    else { return true }
    switch storage.state {
    case .detached, .inserted, .deleted: return false
    case .gone: return true
    // After a statement of the plan, a fault still has its former values.
    case .fault, .loaded: break
    }
    guard storage.changedSlots.isEmpty, storage.pendingMembers.isEmpty, !storage.hasLostRow,
      !storage.hasOutdatedMembers, entity.slotsInMemory.isEmpty, !storage.hasRelatedModels
    else { return false }
    storage.isOfLargeFetch = true
    storage.state = .fault
    storage.slots = entity.emptySlots.slots
    return true
  }

  /// Reads the living models of large fetches that have no values in memory.
  ///
  /// - Parameter tables: The tables whose rows are read, in lower case; `nil` for all.
  func readLargeFetches(in tables: Set<String>? = nil) {
    guard largeFetch != nil else { return }
    var faults: [ModelStorage] = []
    for (root, models) in zip(stores.entities, registered)
    where tables?.contains(SQLIdentifier.name(ofSQL: root.layout.table).lowercased()) ?? true {
      // Before a statement, also those that have the values from before an earlier one.
      faults += models.storages.filter {
        $0.state == .fault && (tables != nil || $0.isOfLargeFetch)
      }
    }
    for storages in Dictionary(grouping: faults, by: { $0.entity?.position }).values {
      guard let entity = storages[0].entity, stores.entity(of: entity.descriptor) === entity
      else { continue }
      for start in stride(from: 0, to: storages.count, by: WholeFetch.batchSize) {
        let batch = storages[start...].prefix(WholeFetch.batchSize)
        _ = try? modelsByKey(batch.map(\.key), stores.reader(of: entity), entity)
        // A row that cannot be read: its error fails the stage.
        for storage in batch {
          if storage.state == .fault { fill(storage) }
          noteFilled(storage)
        }
      }
    }
  }

  /// Runs a function of the context that calls code of the app, or reads its models.
  func working<Value>(_ body: () throws -> Value) rethrows -> Value {
    let wasWorking = isWorking
    isWorking = true
    defer { isWorking = wasWorking }
    return try body()
  }
}

extension ModelStorage {
  /// Whether a slot retains another model.
  fileprivate var hasRelatedModels: Bool {
    slots.contains { slot in
      switch slot {
      case .model, .models: true
      case .null, .integer, .real, .text, .blob, .key, .unloaded, .composite: false
      }
    }
  }
}
