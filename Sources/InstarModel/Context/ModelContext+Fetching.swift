import Foundation
import InstarSchema
import InstarStore

/// Fetches models. SQL finds, sorts and limits the rows; the predicate itself tests unsaved models in memory.
extension ModelContext {
  /// Returns the models that match a descriptor, including those with unsaved changes if the descriptor does.
  ///
  /// - Throws: `modelNotInSchema` for a model of another version; `unsupportedPredicate` with the part that cannot be
  ///   expressed in SQL; `sqlFailed`; an earlier error of a getter.
  ///
  /// In the closure of a stage, the rows of the first 5,000 models are read at once. The others are objects without
  /// values, whose rows are read in batches when code uses a property. The changed rows of earlier batches are then
  /// written in the transaction of the next save, as `enumerate` does. So an array of many models takes much less
  /// memory than their rows. A fetch with `propertiesToFetch` or `relationshipKeyPathsForPrefetching`, with a sort
  /// order that SQL cannot express, in a bridge, in the block of `enumerate`, or while other changes are pending reads
  /// all. A model that retains related models keeps its values. Before a statement of `sql(_:)` writes the table of
  /// such an array, all its rows are read: the statement may delete them. They are released when code then reads one.
  public func fetch<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> [T] {
    let models = try fetchAtOnce(descriptor, readingAtMost: fetchLimitInMemory)
    noteFetch(descriptor, count: models.count)
    return models
  }

  /// As `fetch(_:)`, for functions that need all models in memory.
  ///
  /// - Parameter limit: The number of models that are read at once; more become faults.
  func fetchAtOnce<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, readingAtMost limit: Int = .max
  ) throws -> [T] {
    try failingStage {
      try throwDeferredError()
      try seeSavesOfOthers()
      let models = try fetchModels(descriptor, readingAtMost: limit)
      return try seeCommitsOfOthers()
        ? fetchModels(descriptor, readingAtMost: limit) : models
    }
  }

  /// Returns the models that match by values that their types can decode.
  func fetchToDelete<T: PersistentModel>(_ predicate: Predicate<T>?) throws -> [T] {
    try failingStage {
      try throwDeferredError()
      try seeSavesOfOthers()
      let descriptor = FetchDescriptor(predicate: predicate)
      let models = try fetchModels(descriptor, matchesUndecodable: false)
      return try seeCommitsOfOthers()
        ? fetchModels(descriptor, matchesUndecodable: false) : models
    }
  }

  private func fetchModels<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, readingAtMost limit: Int = .max,
    matchesUndecodable: Bool = true
  ) throws -> [T] {
    let entity = try self.entity(for: T.self, to: "fetch")
    let statement = try FetchStatement(
      descriptor.predicate, sortBy: descriptor.sortBy, entity: entity, stores: stores,
      matchesUndecodable: matchesUndecodable)
    var isPending = descriptor.includePendingChanges && hasPendingChanges(statement.entities)
    // Changes of another large fetch would have all models in memory.
    if isPending, largeFetch != nil, limit < .max, try rowCount(descriptor, entity) > limit {
      writeBatch()
      isPending = hasPendingChanges(statement.entities)
    }
    let reader = stores.reader(of: entity, slots: try slots(of: descriptor, entity))
    var models: [T]
    if !isPending, statement.order != nil {
      let sql = statement.sql(
        selecting: reader.columns(), limit: descriptor.fetchLimit, offset: descriptor.fetchOffset)
      let readsAll =
        !descriptor.propertiesToFetch.isEmpty
        || !descriptor.relationshipKeyPathsForPrefetching.isEmpty
      models = try self.models(
        sql, reader, statement.parameters, limit: readsAll ? .max : limit)
      if !readsAll { beginLargeFetch(of: models, entity, reader, limit) }
    } else {
      if isPending {
        models = try modelsWithPendingChanges(descriptor.predicate, statement)
      } else {
        let reader = stores.reader(of: entity)
        let sql = statement.sql(selecting: reader.columns())
        models = try self.models(sql, reader, statement.parameters)
      }
      models.sort(using: descriptor.sortBy)
      let start = min(max(descriptor.fetchOffset ?? 0, 0), models.count)
      let count = min(descriptor.fetchLimit ?? Int.max, models.count - start)
      models = Array(models[start..<(start + max(count, 0))])
    }
    try prefetch(descriptor.relationshipKeyPathsForPrefetching, of: models, entity)
    return models
  }

  /// Returns the number of models that match a descriptor.
  ///
  /// - Throws: The errors of `fetch(_:)`.
  public func fetchCount<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
    try failingStage { try count(descriptor) }
  }

  func count<T: PersistentModel>(_ descriptor: FetchDescriptor<T>) throws -> Int {
    try throwDeferredError()
    let entity = try self.entity(for: T.self, to: "count")
    let statement = try FetchStatement(descriptor.predicate, entity: entity, stores: stores)
    if descriptor.includePendingChanges, hasPendingChanges(statement.entities) {
      return try fetchAtOnce(descriptor).count
    }
    return try rowCount(descriptor, entity)
  }

  /// Counts in the store alone, and makes no models.
  func rowCount<T: PersistentModel>(
    _ descriptor: FetchDescriptor<T>, _ entity: ModelEntity
  ) throws -> Int {
    let statement = try FetchStatement(descriptor.predicate, entity: entity, stores: stores)
    let isLimited = descriptor.fetchLimit != nil || descriptor.fetchOffset != nil
    let sql =
      isLimited
      ? "SELECT COUNT(*) FROM ("
        + statement.sql(
          selecting: "1", limit: descriptor.fetchLimit, offset: descriptor.fetchOffset) + ")"
      : statement.sql(selecting: "COUNT(*)")
    return try integers(sql, statement.parameters, entity).first.map { Int($0) } ?? 0
  }

  /// Returns the models that match if memory differs from the store. Models with changes are tested in memory.
  private func modelsWithPendingChanges<T: PersistentModel>(
    _ predicate: Predicate<T>?, _ statement: FetchStatement
  ) throws -> [T] {
    let entity = statement.entity
    // If the predicate also depends on other entities, a change of those may affect any row.
    let isDecidedByRow =
      statement.entities.allSatisfy { $0 === entity }
      || !hasPendingChanges(statement.entities.filter { $0 !== entity })
    let source =
      isDecidedByRow
      ? statement
      : try FetchStatement(nil as Predicate<T>?, entity: entity, stores: stores)
    let reader = stores.reader(of: entity)
    let found = try rows(source.sql(selecting: reader.columns()), reader, source.parameters)
    var models: [T] = []
    for model in found where !isDecidedByRow || !model.hasChanges {
      guard model._modelStorage.state != .deleted, let model: T = Self.cast(model) else { continue }
      if isDecidedByRow || predicate == nil || matches(model, predicate) { models.append(model) }
    }
    // Others have deleted the rows of lost models, whose values nobody can read.
    let living = changedModelsArray.filter { !$0._modelStorage.hasLostRow }
    let pending = isDecidedByRow ? inserted.all + living : inserted.all
    for case let model as T in pending where matches(model, predicate) { models.append(model) }
    try throwDeferredError()
    return models
  }

  /// Returns whether a model matches. If a predicate unwraps `nil` with `!`, it does not match, as in SQL.
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

  /// Returns whether models of these entities have unsaved changes.
  func hasPendingChanges(_ entities: [ModelEntity]) -> Bool {
    guard hasUnwrittenChanges else { return false }
    return stores.entities.contains { entity in
      (inserted.contains(entity) || changed.contains(entity) || deleted.contains(entity))
        && entities.contains { entity.isInFamily(of: $0) }
    }
  }
}
