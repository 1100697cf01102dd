import Foundation
import InstarSchema
import InstarStore

/// Reads rows into models: when they are fetched, or when code reads a value of a fault. A getter cannot throw, so its
/// error is kept for the next fetch or save.
extension ModelContext {
  /// Returns the models of the rows that a statement finds. It selects the columns of the reader first.
  ///
  /// - Parameter each: Called for each row to read further columns, with the number of the first one.
  func rows(
    _ sql: String, _ reader: RowReader, _ parameters: [Slot],
    each: (any PersistentModel, SQLStatement, Int32) -> Void = { _, _, _ in }
  ) throws -> [any PersistentModel] {
    try reader.store.connection.perform { session in
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

  /// Returns the model of the current row. A living model keeps its values, which may be changed.
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
              "required attribute '\(entity.descriptor.properties[slot].name)' has no value: column \(stored.name) is NULL",
            next: "make the property optional in this version of the models")
        }
        if !value.isNull, !entity.accepts(value, at: slot) {
          throw storage.unreadable(slot, stored: value)
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

  /// In `didMigrate` a required property that is new, or has a new type, has no value until the closure sets it.
  /// Reading it before is an error, and verification finds a row without it.
  private var mayLackValues: Bool { phase == "didMigrate" }

  /// Returns a composite from its columns. If all are NULL, it has no value: that is `nil`, or the initial value of a
  /// required property, as in rows from before the property was added.
  private func composite(
    _ leaves: [Slot], _ isOptional: Bool, _ storage: ModelStorage, _ slot: Int,
    _ entity: ModelEntity
  ) throws -> Slot {
    guard leaves.allSatisfy(\.isNull) else {
      guard entity.accepts(.composite(leaves), at: slot) else {
        throw storage.unreadable(slot, stored: .composite(leaves))
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
    throw storage.unreadable(slot)
  }

  // MARK: Faults

  func fill(_ storage: ModelStorage) {
    guard storage.state == .fault, let entity = entity(of: storage) else { return }
    do {
      if try readRow(of: storage, entity, into: storage) { return }
      note(missingRow(of: storage, entity))
      storage.state = .gone
    } catch {
      // The row may exist, so the next access reads it again.
      note(error)
    }
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

  /// Reads the values that `propertiesToFetch` left out.
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

  /// Reads a value from its file.
  private func externalValue(
    at slot: Int, of storage: ModelStorage, _ entity: ModelEntity
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
    guard entity.accepts(file, at: slot) else { throw storage.unreadable(slot) }
    return file
  }

  func noteUnreadableValue(of storage: ModelStorage, slot: Int) {
    note(storage.unreadable(slot))
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
