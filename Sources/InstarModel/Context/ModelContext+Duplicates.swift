public import Foundation
import InstarSchema
import InstarStore

/// Finds models with equal values: what a property must not have before it becomes unique.
extension ModelContext {
  /// Calls `block` with each model whose values an earlier one has too, and with that one, which is to stay.
  ///
  /// ```swift
  /// willMigrate: { context in
  ///   try context.enumerateDuplicates(of: \NotesV1.Note.title) { kept, duplicate in
  ///     context.delete(duplicate)
  ///   }
  /// }
  /// ```
  ///
  /// Of the models with equal values, the first one in the order of `sortBy` is kept. Among equals in that order, and
  /// without `sortBy`, it is the one with the lowest key. `block` gets each of the others, with the kept one. If
  /// `block` deletes the kept model, the next one takes its place. Models that the next save deletes are left out.
  ///
  /// Values are equal if a unique index over the properties' columns would refuse them: stored values are compared, and
  /// texts with the collation of their column, such as `NOCASE`. `nil` is equal to nothing, also where it is one value
  /// of several.
  ///
  /// The rows are read once, which takes 16 bytes of memory for each. Only models with equal values are created, in
  /// batches. All models with the same values follow each other. Rows are compared again before a batch is created, so
  /// that a row that was changed and written meanwhile is left out. A value that `block` sets is compared by the next
  /// call only.
  ///
  /// In the closure of a stage, the changed rows of a batch are written before the next one is read, as in
  /// ``enumerate(_:batchSize:allowEscapingMutations:block:)``. Deleted models stay in memory until the save, and so do
  /// changed models while others are deleted or inserted. In an app, all changes do.
  ///
  /// - Parameters:
  ///   - property: A property with one column, or a to-one relationship.
  ///   - others: Further properties. Models are then equal if they are equal in each of them.
  ///   - sortBy: Which of the models with equal values is kept.
  ///   - batchSize: The number of models in memory at once.
  ///   - allowEscapingMutations: In the closure of a stage, whether all changes stay pending in the context until they
  ///     are saved. In an app they always do.
  /// - Throws: Rethrows an error of `block`; `unsupportedKeyPath` for a property without a column of its own;
  ///   `includePendingChangesWithBatchSize` if the context has inserted models, or changed values of these properties
  ///   or of those in `sortBy`, and cannot write them before the save: call `save()` first. Otherwise the errors of
  ///   `fetch(_:)`. What `block` changed before an error stays pending.
  public func enumerateDuplicates<T: PersistentModel>(
    of property: PartialKeyPath<T>, _ others: PartialKeyPath<T>...,
    sortBy: [SortDescriptor<T>] = [],
    batchSize: Int = 5_000, allowEscapingMutations: Bool = false,
    block: (_ kept: T, _ duplicate: T) throws -> Void
  ) throws {
    try failingStageUnlessInBlock {
      try visitDuplicates(
        of: [property] + others, sortBy, batchSize: max(batchSize, 1),
        writesBatches: !allowEscapingMutations
      ) { kept, duplicate in
        try callBlock { try block(kept, duplicate) }
      }
    }
  }

  private func visitDuplicates<T: PersistentModel>(
    of properties: [PartialKeyPath<T>], _ sortBy: [SortDescriptor<T>], batchSize: Int,
    writesBatches: Bool, _ block: (T, T) throws -> Void
  ) throws {
    try throwDeferredError()
    try seeSavesOfOthers()
    let search = try DuplicateSearch(of: properties, sortBy, self)
    if writesBatches { writeBatch() }
    try requireSaved(search)
    let found = try search.repeatedRows(self)
    let piece = meter?.begin("rows of \(search.entity.layout.name) with repeated values") {
      found.count
    }
    defer { if let piece { meter?.end(piece) } }
    var done = 0
    while case let page = found.nextPage(of: batchSize), !page.isEmpty {
      let rows = try search.rows(among: page, self)
      // In its own scope, so that the models are released before the next ones are created.
      var group: (number: Int64, kept: T)?
      for start in stride(from: 0, to: rows.count, by: batchSize) {
        // In an app a canceled task goes on, as in `enumerate`.
        if isInStage { try progress.checkCancellation() }
        let batch = rows[start..<min(start + batchSize, rows.count)]
        try visit(batch, search, &group, block)
        if writesBatches { writeBatch() }
        releaseRelationships()
        if let piece { meter?.advance(piece, to: done + start + batch.count) }
      }
      done += page.count
      if let piece { meter?.advance(piece, to: done) }
    }
  }

  /// - Parameter group: The group of the row before, and its kept model.
  private func visit<T: PersistentModel>(
    _ rows: ArraySlice<DuplicateSearch<T>.Row>, _ search: DuplicateSearch<T>,
    _ group: inout (number: Int64, kept: T)?, _ block: (T, T) throws -> Void
  ) throws {
    let models = try search.models(rows, self)
    for row in rows {
      // A row may have been deleted meanwhile, by `block` or another process.
      guard let model: T = models[row.key].flatMap({ Self.cast($0) }), !model.isDeleted else {
        continue
      }
      if let group, group.number == row.group, !group.kept.isDeleted {
        try block(group.kept, model)
      } else {
        group = (row.group, model)
      }
    }
  }

  /// Refuses unsaved values that would have to be compared: SQLite compares those in the store.
  private func requireSaved(_ search: DuplicateSearch<some PersistentModel>) throws {
    let isChanged = changed.all.contains { model in
      let storage = model._modelStorage
      return entity(of: storage)?.isInFamily(of: search.entity) ?? false
        && search.slots.contains { storage.changedSlots.contains($0) }
    }
    guard isChanged || stores.family(of: search.entity).contains(where: { inserted.contains($0) })
    else { return }
    throw SwiftDataError(
      .includePendingChangesWithBatchSize,
      InstarError(
        .unsupported, "cannot find duplicates of \(search.names)",
        cause: "the context has unsaved values of these properties",
        next: "call save() first"))
  }
}

/// The rows of an entity whose values of some columns repeat, as SQLite compares them.
struct DuplicateSearch<T: PersistentModel> {
  let entity: ModelEntity
  /// The slots whose values are compared, and those that the rows are sorted by.
  let slots: [Int]
  /// The compared properties, as errors name them.
  let names: String
  private let statement: FetchStatement
  private let reader: RowReader
  private let sortBy: [SortDescriptor<T>]
  /// As SQL.
  private let columns: [String]

  /// A row with repeated values.
  struct Row {
    let key: Int64
    /// The lowest key of the rows with its values.
    let group: Int64
  }

  /// - Throws: `modelNotInSchema`; `unsupportedKeyPath` for a property without a column of its own.
  init(
    of properties: [PartialKeyPath<T>], _ sortBy: [SortDescriptor<T>], _ context: ModelContext
  ) throws {
    entity = try context.entity(for: T.self, to: "fetch")
    statement = try FetchStatement(
      nil as Predicate<T>?, sortBy: sortBy, entity: entity, stores: context.stores)
    reader = context.stores.reader(of: entity)
    self.sortBy = sortBy
    let compared = try properties.map { [entity] in try context.slot(of: $0, entity) }
    let own = compared.map { [entity] in entity.descriptor.properties[$0].name }
    names = "\(entity.descriptor.qualifiedName) (\(own.joined(separator: ", ")))"
    slots =
      compared
      + sortBy.compactMap { [entity] in
        $0.keyPath.flatMap { entity.descriptor.slotsByKeyPath[$0] }
      }
    columns = try zip(compared, own).flatMap { [entity] slot, name in
      switch entity.slots[slot] {
      case .attribute(let column, _): return [column.name]
      case .toOne(let reference, _, _, _): return reference.columns
      case .composite, .toMany, .none:
        throw context.unsupportedKeyPath(
          "cannot find duplicates of \(entity.descriptor.qualifiedName)",
          "'\(name)' does not have one column of its own, so it cannot be unique",
          next: "name attributes with one column, or to-one relationships")
      }
    }.map { "t0.\($0)" }
  }

  private var key: String { entity.layout.key.reading.sql("t0") }

  /// Reads the values of all rows, and no models.
  func repeatedRows(_ context: ModelContext) throws -> RepeatedRows {
    let connection = entity.store.connection
    let sql = statement.sql(
      selecting: "\(key), \(columns.joined(separator: ", "))", ordering: "")
    let found = try connection.perform { session in RepeatedRows(try session.statement(sql)) }
    let meter = context.meter
    // Without a count, progress shows no share. What keeps SQLite from counting fails the reading too.
    let piece = meter?.begin("rows of \(entity.layout.name)") { [statement, entity] in
      let count = statement.sql(selecting: "COUNT(*)", ordering: "")
      return (try? context.integers(count, [], entity))?.first.map { Int($0) }
    }
    defer { if let piece { meter?.end(piece) } }
    do {
      // In an app in one piece, so that no other thread writes in between.
      let count = context.isInStage ? Self.rowsBetweenReports : Int.max
      while try connection.perform({ _ in try found.read(atMost: count) }) {
        if let piece { meter?.advance(piece, by: count) }
        try context.progress.checkCancellation()
      }
    } catch {
      try connection.perform { _ in found.close() }
      throw error
    }
    return found
  }

  /// SQLite reads these within some milliseconds.
  private static var rowsBetweenReports: Int { 16_384 }

  /// Returns the rows whose values repeat among those with these keys, group by group, the row to keep first.
  func rows(among keys: [Int64], _ context: ModelContext) throws -> [Row] {
    var rows = try read(keys)
    if try context.seeCommitsOfOthers() { rows = try read(keys) }
    rows.removeAll { context.registeredStorage(entity, $0.key)?.state == .deleted }
    if statement.orderTerms == nil { rows = try sorted(rows, context) }
    // Groups of one: the hash is that of another value, or a value was changed meanwhile.
    return Self.groups(rows).filter { $0.count > 1 }.flatMap { $0 }
  }

  private static func groups(_ rows: [Row]) -> [ArraySlice<Row>] {
    var groups: [ArraySlice<Row>] = []
    var start = 0
    for end in 0...rows.count
    where end > start && (end == rows.count || rows[end].group != rows[start].group) {
      groups.append(rows[start..<end])
      start = end
    }
    return groups
  }

  private func read(_ keys: [Int64]) throws -> [Row] {
    // SQLite compares the values, as an index does: the partitions of a window have the collations of their columns.
    let conditions =
      ["\(key) IN \(ModelContext.listed)"] + columns.map { "\($0) IS NOT NULL" }
    let order = ["2"] + (statement.orderTerms ?? []) + ["1"]
    let sql = statement.sql(
      selecting: "\(key), min(\(key)) OVER (PARTITION BY \(columns.joined(separator: ", ")))",
      where: conditions.joined(separator: " AND "),
      ordering: " ORDER BY \(order.joined(separator: ", "))")
    return try entity.store.connection.perform { session in
      let statement = try session.statement(sql)
      statement.bind([ModelContext.list(keys)])
      defer { statement.reset() }
      var rows: [Row] = []
      while try statement.step() {
        rows.append(Row(key: statement.integer(at: 0), group: statement.integer(at: 1)))
      }
      return rows
    }
  }

  /// Sorts each group as SQLite cannot, by its models.
  private func sorted(_ rows: [Row], _ context: ModelContext) throws -> [Row] {
    let models = try models(rows[...], context)
    return Self.groups(rows).flatMap { group in
      group.compactMap { row -> T? in models[row.key].flatMap { ModelContext.cast($0) } }
        .sorted(using: sortBy)
        .map { Row(key: $0._modelStorage.key, group: group[group.startIndex].group) }
    }
  }

  /// Returns the models of rows by key, without those that were deleted meanwhile.
  func models(
    _ rows: ArraySlice<Row>, _ context: ModelContext
  ) throws -> [Int64: any PersistentModel] {
    let keys = rows.map(\.key)
    let models = try context.modelsByKey(keys, reader, entity)
    return try context.seeCommitsOfOthers()
      ? context.modelsByKey(keys, reader, entity) : models
  }
}
