/// A set of models in the order of their insertion.
struct OrderedModels {
  private var models: [(any PersistentModel)?] = []
  private var positions: [ObjectIdentifier: Int] = [:]

  var isEmpty: Bool { positions.isEmpty }
  var all: [any PersistentModel] { models.compactMap { $0 } }

  func contains(_ model: any PersistentModel) -> Bool {
    positions[ObjectIdentifier(model)] != nil
  }

  mutating func insert(_ model: any PersistentModel) {
    guard !contains(model) else { return }
    positions[ObjectIdentifier(model)] = models.count
    models.append(model)
  }

  mutating func remove(_ model: any PersistentModel) {
    guard let position = positions.removeValue(forKey: ObjectIdentifier(model)) else { return }
    models[position] = nil
    if positions.isEmpty { models.removeAll() }
  }

  mutating func removeAll() {
    models.removeAll()
    positions.removeAll()
  }

  mutating func removeAll(where isGone: (any PersistentModel) -> Bool) {
    let kept = all.filter { !isGone($0) }
    removeAll()
    for model in kept { insert(model) }
  }
}
