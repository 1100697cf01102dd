import Foundation
import InstarSchema
import InstarStore

/// Reads rows into models: when they are fetched, or when code reads a value of a fault. A getter cannot throw, so its
/// error is kept for the next fetch or save.
extension ModelContext {
  /// Returns the models of the rows that a statement finds. It selects the columns of the reader first.
  ///
  /// - Parameters:
  ///   - limit: The number of rows from which on models that are not in memory become faults.
  ///   - each: Called for each row to read further columns, with the number of the first one.
  func rows(
    _ sql: String, _ reader: RowReader, _ parameters: [Slot], limit: Int = .max,
    each: (any PersistentModel, SQLStatement, Int32) -> Void = { _, _, _ in }
  ) throws -> [any PersistentModel] {
    var models: [any PersistentModel] = []
    try reader.store.connection.perform { session in
      let statement = try session.statement(sql)
      statement.bind(parameters)
      defer { statement.reset() }
      while try statement.step() {
        let part = reader.part(of: statement)
        let model =
          models.count < limit || !part.entity.slotsInMemory.isEmpty
          ? try model(at: statement, part)
          : faultOfLargeFetch(of: part.entity, key: statement.integer(at: 0))
        each(model, statement, reader.endColumn)
        models.append(model)
      }
    }
    return models
  }

  private func faultOfLargeFetch(of entity: ModelEntity, key: Int64) -> any PersistentModel {
    let model = modelOrFault(of: entity, key: key)
    if model._modelStorage.state == .fault { model._modelStorage.isOfLargeFetch = true }
    return model
  }

  /// Returns the models of the rows that a statement finds, as the class that was asked for.
  func models<T: PersistentModel>(
    _ sql: String, _ reader: RowReader, _ parameters: [Slot], limit: Int = .max
  ) throws -> [T] {
    let found = try rows(sql, reader, parameters, limit: limit)
    // A closure for each row would look up the type of the array at each call.
    var models: [T] = []
    models.reserveCapacity(found.count)
    for model in found {
      // As `cast`, but without an optional of a type that is not known here, which would be looked up for each row.
      if type(of: model) == T.self {
        models.append(unsafeDowncast(model, to: T.self))
      } else if let model = model as? T {
        models.append(model)
      }
    }
    return models
  }

  /// Returns a model as its class. Nearly all models are of the class itself, which takes much less than a cast.
  static func cast<T: PersistentModel>(_ model: any PersistentModel) -> T? {
    type(of: model) == T.self ? unsafeDowncast(model, to: T.self) : model as? T
  }

  /// Returns the model of the current row. A living model keeps its values, which may be changed.
  private func model(
    at statement: SQLStatement, _ part: RowReader.Part
  ) throws -> any PersistentModel {
    let key = statement.integer(at: 0)
    if let storage = registeredStorage(part.entity, key), let model = storage.model {
      if storage.state == .fault { try read(statement, into: storage, part) }
      return model
    }
    let slots = try slots(at: statement, key, part, areChecked: checksValues)
    let storage = ModelStorage(part.entity, key: key, slots: slots)
    storage.state = .loaded
    let model = RowObject.make(storage)
    adopt(storage, of: model, part.entity)
    return model
  }

  /// Reads a slot in the rows that a statement finds, and makes no models.
  ///
  /// - Parameter body: Called with the key of each row whose stored value is not of the slot's type.
  func forEachUnreadable(
    _ slot: Int, of entity: ModelEntity, _ sql: String, _ reader: RowReader,
    _ body: (Int64, InstarError) -> Void
  ) throws {
    func check(_ key: Int64, _ read: () throws -> Void) throws {
      do {
        try read()
      } catch let error as InstarError where error.code == .missingRequiredValues {
        body(key, error)
      }
    }
    var keysOfFiles: [Int64] = []
    try entity.store.connection.perform { session in
      let statement = try session.statement(sql)
      defer { statement.reset() }
      while try statement.step() {
        let key = statement.integer(at: 0)
        try check(key) {
          let slots = try slots(
            at: statement, key, reader.part(of: statement), areChecked: true)
          if case .unloaded = slots[slot] { keysOfFiles.append(key) }
        }
      }
    }
    for key in keysOfFiles {
      let storage = ModelStorage(entity, key: key, slots: entity.emptySlots.slots)
      try check(key) {
        _ = try externalValue(at: slot, of: storage, entity, isChecked: true)
      }
    }
  }

  private func read(
    _ statement: SQLStatement, into storage: ModelStorage, _ part: RowReader.Part
  ) throws {
    storage.slots = try slots(at: statement, storage.key, part, areChecked: checksValues)
    storage.state = .loaded
  }

  /// Whether values that are not of their property's type are errors of the fetch. In the closure of a stage they are
  /// errors of the getter, which fail the stage too: a value that the closure does not read stays as it is.
  private var checksValues: Bool { !isInStage }

  /// Returns the values of the current row. Those that the statement does not select are not loaded.
  private func slots(
    at statement: SQLStatement, _ key: Int64, _ part: RowReader.Part, areChecked: Bool
  ) throws -> ContiguousArray<Slot> {
    var slots = ContiguousArray(all: .unloaded, count: part.entity.slots.count)
    for column in part.columns {
      switch column.kind {
      case .attribute(let isOptional, let isChecked):
        let value = statement.slot(at: column.first)
        try require(value, isOptional, areChecked && isChecked, column, key, part.entity)
        slots[column.slot] = value
      case .externalAttribute(let isOptional):
        var value = statement.slot(at: column.first)
        if case .blob(let bytes) = value {
          switch ExternalValues.Form(stored: bytes) {
          case .inline(let bytes), .bare(let bytes): value = .blob(Data(bytes))
          case .file: continue
          }
        }
        try require(value, isOptional, areChecked, column, key, part.entity)
        slots[column.slot] = value
      case .composite(let count, let isOptional):
        let leaves = (0..<count).map { statement.slot(at: column.first + $0) }
        slots[column.slot] = try composite(
          leaves, isOptional, column.slot, key, part.entity, isChecked: areChecked)
      case .toOne:
        slots[column.slot] =
          statement.storageClass(at: column.first) == .integer
          ? .key(statement.integer(at: column.first)) : .null
      }
    }
    for slot in part.entity.slotsInMemory {
      slots[slot] = part.entity.descriptor.properties[slot].valueInMemory
    }
    return slots
  }

  private func require(
    _ value: Slot, _ isOptional: Bool, _ isChecked: Bool, _ column: RowReader.Column,
    _ key: Int64, _ entity: ModelEntity
  ) throws {
    if value.isNull {
      guard !isOptional, !mayLackValues else { return }
      throw entity.missingValue(column.slot, key)
    }
    if isChecked, !entity.accepts(value, at: column.slot) {
      throw entity.unreadable(column.slot, stored: value, key)
    }
  }

  /// In `didMigrate`, and in `new` of a bridge, a required property that is new, or has a new type, has no value until
  /// the closure sets it.
  /// Reading it before is an error, and verification finds a row without it.
  private var mayLackValues: Bool {
    switch closure {
    case .didMigrate: true
    case .bridge: stores.all.allSatisfy(\.allowsSave)
    case .willMigrate, nil: false
    }
  }

  /// Returns a composite from its columns. If all are NULL, it has no value: that is `nil`, or the initial value of a
  /// required property, as in rows from before the property was added.
  private func composite(
    _ leaves: [Slot], _ isOptional: Bool, _ slot: Int, _ key: Int64, _ entity: ModelEntity,
    isChecked: Bool
  ) throws -> Slot {
    guard leaves.allSatisfy(\.isNull) else {
      guard !isChecked || entity.accepts(.composite(leaves), at: slot) else {
        throw entity.unreadable(slot, stored: .composite(leaves), key)
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
    throw entity.unreadable(slot, stored: .null, key)
  }

  // MARK: Faults

  func fill(_ storage: ModelStorage) {
    guard storage.state == .fault, let entity = entity(of: storage) else { return }
    do {
      if try readRow(of: storage, entity, into: storage) { return }
      // In an app, each save reports a change of a missing row. In a stage, other code may use an empty value of it.
      if !isFillingForChange || isInStage {
        note(missingRow(of: storage, entity))
      }
      storage.state = .gone
    } catch {
      // The row may exist, so the next access reads it again.
      note(error)
    }
  }

  /// Reads the row of a fault because the app's code sets a property. If that fails, the change stays pending, and the
  /// next access reads the other values.
  func fillForChange(_ storage: ModelStorage) {
    isFillingForChange = true
    fillForCode(storage)
    isFillingForChange = false
    if storage.state == .fault { storage.awaitValues() }
  }

  /// Returns whether the row exists.
  private func readRow(
    of storage: ModelStorage, _ entity: ModelEntity, into target: ModelStorage
  ) throws -> Bool {
    let reader = stores.reader(of: entity)
    return try entity.store.connection.perform { session in
      let statement = try session.statement(reader.rowStatement)
      statement.bind(storage.key, at: 1)
      defer { statement.reset() }
      guard try statement.step() else { return false }
      try read(statement, into: target, reader.part(of: statement))
      return true
    }
  }

  /// Reads the values that `propertiesToFetch` left out, or that others have changed. After an error they stay
  /// unloaded, so the next access reads them again: an empty value would pass for the stored one.
  func fillUnloadedValues(of storage: ModelStorage) {
    // Another row may have the key of a lost one.
    guard let entity = entity(of: storage), !storage.hasLostRow else { return }
    let whole = ModelStorage(entity, key: storage.key, slots: entity.emptySlots.slots)
    do {
      guard try readRow(of: storage, entity, into: whole) else {
        return note(missingRow(of: storage, entity))
      }
    } catch {
      return note(error)
    }
    for slot in entity.columnSlots {
      guard case .unloaded = storage.slots[slot] else { continue }
      storage.slots[slot] = whole.slots[slot]
      guard case .unloaded = whole.slots[slot] else { continue }
      do {
        storage.slots[slot] = try externalValue(
          at: slot, of: storage, entity, isChecked: checksValues)
      } catch {
        note(error)
      }
    }
  }

  /// Reads a value from its file.
  private func externalValue(
    at slot: Int, of storage: ModelStorage, _ entity: ModelEntity, isChecked: Bool
  ) throws -> Slot {
    guard case .attribute(let column, _) = entity.slots[slot] else { return .null }
    let value = try entity.store.connection.perform { session in
      let statement = try session.statement(
        "SELECT \(column.name) FROM \(entity.layout.table) AS t0 "
          + "WHERE \(entity.layout.key.condition("t0", equals: "?1"))")
      statement.bind(storage.key, at: 1)
      defer { statement.reset() }
      return try statement.step() ? statement.slot(at: 0) : .null
    }
    guard case .blob(let stored) = value else { return value }
    let file = Slot.blob(try entity.store.connection.externalValues.read(stored))
    guard !isChecked || entity.accepts(file, at: slot) else {
      throw storage.unreadable(slot, stored: file)
    }
    return file
  }

  func note(_ error: any Error) {
    stores.stageFailures?.note(error)
    if deferredError == nil { deferredError = error }
  }

  func throwDeferredError() throws {
    try stores.throwDeferredError()
    guard let error = deferredError else { return }
    deferredError = nil
    throw error
  }
}
