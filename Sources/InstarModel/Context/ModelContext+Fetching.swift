import Foundation
import InstarSchema
import InstarStore

/// Finding models: SQL finds, sorts and limits the rows; what is not saved yet is judged in memory.
extension ModelContext {
  /// The models that a descriptor asks for.
  ///
  /// SQL finds, sorts and limits the rows. Where models have unsaved changes, and the descriptor includes them, those
  /// are judged and sorted in memory, by the predicate itself.
  ///
  /// - Throws: `modelNotInSchema` for a model of another version; `unsupportedPredicate`, naming the part that has no
  ///   counterpart in SQL; `sqlFailed`; an error met by a getter before.
  public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    try failingStage {
      try throwDeferredError()
      try seeSavesOfOthers()
      let models = try fetchModels(descriptor)
      return try seeCommitsOfOthers() ? fetchModels(descriptor) : models
    }
  }

  private func fetchModels<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    let entity = try stores.entity(for: T.self, action: "fetched", phase: phase)
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, stores: stores)
    let isPending = descriptor.includePendingChanges && hasPendingChanges(statement.entities)
    let reader = stores.reader(of: entity, slots: try slots(of: descriptor, entity))
    var models: [T]
    if !isPending, statement.order != nil {
      let sql = statement.sql(
        selecting: reader.columns(), limit: descriptor.fetchLimit, offset: descriptor.fetchOffset)
      models = try rows(sql, reader, statement.parameters).compactMap { $0 as? T }
    } else {
      if isPending {
        models = try modelsWithPendingChanges(descriptor.predicate, statement)
      } else {
        let reader = stores.reader(of: entity)
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
    try failingStage { try count(descriptor) }
  }

  private func count<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
    try throwDeferredError()
    let entity = try stores.entity(for: T.self, action: "counted", phase: phase)
    let statement = try FetchStatement(descriptor.predicate, entity: entity, stores: stores)
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
    return try entity.store.connection.perform { session in
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
    // Where the predicate depends on other entities too, a change there may decide about any row.
    let isDecidedByRow =
      statement.entities.allSatisfy { $0 === entity }
      || !hasPendingChanges(statement.entities.filter { $0 !== entity })
    let source =
      isDecidedByRow
      ? statement
      : try FetchStatement(
        nil as Predicate<T>?, entity: entity, stores: stores)
    let reader = stores.reader(of: entity)
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
    return (inserted.all + changed.all + deleted.all).contains { model in
      guard let own = entity(of: model._modelStorage) else { return false }
      return entities.contains { own.isInFamily(of: $0) }
    }
  }
}
