/// A set of models in the order of their insertion. A model is in at most one set of its context, and knows its
/// position, so that neither inserting nor removing one costs a hash.
struct OrderedModels {
  private var models: [(any PersistentModel)?] = []
  private(set) var count = 0
  /// The number of models of each entity, by its position.
  private var counts: [Int] = []

  var isEmpty: Bool { count == 0 }
  var all: [any PersistentModel] { models.compactMap { $0 } }

  func contains(_ model: any PersistentModel) -> Bool {
    let position = model._modelStorage.position
    return models.indices.contains(position) && models[position] === model
  }

  /// Whether one of the models is of this entity.
  func contains(_ entity: ModelEntity) -> Bool {
    counts.indices.contains(entity.position) && counts[entity.position] > 0
  }

  mutating func insert(_ model: any PersistentModel) {
    guard !contains(model) else { return }
    let storage = model._modelStorage
    storage.position = models.count
    models.append(model)
    add(1, to: storage.entity)
  }

  mutating func remove(_ model: any PersistentModel) {
    guard contains(model) else { return }
    let storage = model._modelStorage
    models[storage.position] = nil
    storage.position = -1
    add(-1, to: storage.entity)
    if isEmpty { models.removeAll() }
  }

  mutating func removeAll() {
    models.removeAll()
    counts.removeAll()
    count = 0
  }

  mutating func removeAll(where isGone: (any PersistentModel) -> Bool) {
    let kept = all.filter { !isGone($0) }
    removeAll()
    for model in kept { insert(model) }
  }

  /// Counts the models again after they got other entities.
  mutating func recount() {
    let all = all
    removeAll()
    for model in all { insert(model) }
  }

  private mutating func add(_ number: Int, to entity: ModelEntity?) {
    count += number
    guard let position = entity?.position else { return }
    while counts.count <= position { counts.append(0) }
    counts[position] += number
  }
}
