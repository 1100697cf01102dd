import Foundation
import InstarSchema
import InstarStore

/// Reads only some columns (`propertiesToFetch`), or related models too (`relationshipKeyPathsForPrefetching`).
extension ModelContext {
  /// Returns the slots with a column that a descriptor names; `nil` for all.
  ///
  /// - Throws: `unsupportedKeyPath` if a property is not stored.
  func slots<T: PersistentModel>(
    of descriptor: FetchDescriptor<T>, _ entity: ModelEntity
  ) throws -> [Int]? {
    if descriptor.propertiesToFetch.isEmpty { return nil }
    // The identifier needs no column.
    let paths = descriptor.propertiesToFetch.filter {
      entity.descriptor.slotsByKeyPath[$0] != nil
        || type(of: $0).valueType != PersistentIdentifier.self
    }
    let wanted = try Set(paths.map { try slot(of: $0, entity) })
    return entity.columnSlots.filter { wanted.contains($0) }
  }

  /// - Throws: `unsupportedKeyPath` if the property is not stored.
  func slot(of keyPath: AnyKeyPath, _ entity: ModelEntity) throws -> Int {
    if let slot = entity.descriptor.slotsByKeyPath[keyPath] { return slot }
    throw unsupportedKeyPath(
      "cannot fetch \(entity.descriptor.qualifiedName)",
      "`\(ModelDescriptor.text(of: keyPath))` is not a stored property of \(entity.descriptor.name)",
      next: "name stored properties and relationships of \(entity.descriptor.name)")
  }

  func unsupportedKeyPath(
    _ what: String, _ cause: String, next: String
  ) -> SwiftDataError {
    SwiftDataError(
      .unsupportedKeyPath, InstarError(.unsupported, what, cause: cause, next: next))
  }

  /// Reads the related models, with one statement for each relationship.
  func prefetch<T: PersistentModel>(
    _ keyPaths: [PartialKeyPath<T>], of models: [T], _ entity: ModelEntity
  ) throws {
    for keyPath in keyPaths {
      hasRelatedModels = true
      let slot = try slot(of: keyPath, entity)
      let storages = models.map(\._modelStorage).filter { $0.state == .loaded }
      switch entity.slots[slot] {
      case .toOne(_, let destination, _, _):
        if let target = stores.entity(named: destination) {
          try prefetchToOne(storages, slot, target)
        }
      case .toMany(let relationship):
        if let target = stores.entity(named: relationship.relationship.destination) {
          try prefetchToMany(storages, slot, relationship, target)
        }
      case .attribute, .composite, .none:
        throw unsupportedKeyPath(
          "cannot prefetch \(entity.descriptor.qualifiedName)",
          "'\(entity.descriptor.properties[slot].name)' is not a relationship",
          next: "name relationships in relationshipKeyPathsForPrefetching")
      }
    }
  }

  private func prefetchToOne(
    _ storages: [ModelStorage], _ slot: Int, _ target: ModelEntity
  ) throws {
    var keys: Set<Int64> = []
    for storage in storages {
      if case .unloaded = storage.slots[slot] { fillUnloadedValues(of: storage) }
      if case .key(let key) = storage.slots[slot] { keys.insert(key) }
    }
    guard !keys.isEmpty else { return }
    let models = try modelsByKey(keys, stores.reader(of: target), target)
    for storage in storages {
      if case .key(let key) = storage.slots[slot], let model = models[key] {
        storage.slots[slot] = .model(model)
      }
    }
  }

  /// Returns the models of the rows with these keys, as far as the rows exist.
  func modelsByKey(
    _ keys: some Collection<Int64>, _ reader: RowReader, _ entity: ModelEntity
  ) throws -> [Int64: any PersistentModel] {
    let found = try rows(
      "SELECT \(reader.columns()) FROM \(entity.layout.table) AS t0 "
        + "WHERE \(entity.layout.key.reading.sql("t0")) IN \(Self.listed)", reader,
      [Self.list(keys)])
    return found.keyed { $0._modelStorage.key }
  }

  private func prefetchToMany(
    _ storages: [ModelStorage], _ slot: Int, _ relationship: EntityLayout.RelationshipStorage,
    _ target: ModelEntity
  ) throws {
    let unread = storages.filter { storage in
      if case .unloaded = storage.slots[slot] { true } else { false }
    }
    guard !unread.isEmpty else { return }
    let reader = stores.reader(of: target)
    let columns = reader.columns()
    let table = target.layout.table
    let key = target.layout.key.reading.sql("t0")
    let sql: String
    switch relationship.location {
    case .column: return
    case .foreignKey(let reference):
      let owner = reference.reading.sql("t0")
      sql =
        "SELECT \(columns), \(owner) FROM \(table) AS t0 WHERE \(owner) IN \(Self.listed) "
        + relationship.order("t0", key: key)
    case .joinTable(let name, let own, let other):
      let owner = own.reading.sql("j")
      sql =
        "SELECT \(columns), \(owner) FROM \(name) AS j "
        + "JOIN \(table) AS t0 ON \(other.condition("j", refersTo: "t0")) "
        + "WHERE \(owner) IN \(Self.listed) \(relationship.order("j", key: key))"
    }
    var members: [Int64: [any PersistentModel]] = [:]
    _ = try rows(sql, reader, [Self.list(unread.map(\.key))]) { model, statement, column in
      members[statement.integer(at: column), default: []].append(model)
    }
    for storage in unread {
      storage.slots[slot] = .models(
        Members(
          membersAsInMemory(
            members[storage.key] ?? [], of: storage, slot: slot, relationship)))
    }
  }

  /// A list of keys, bound as one parameter.
  static let listed = "(SELECT value FROM json_each(?1))"

  static func list(_ keys: some Collection<Int64>) -> Slot {
    .text("[\(keys.map(String.init).joined(separator: ","))]")
  }
}
