import Foundation
import InstarSchema
import InstarStore

/// Finds transactions in the history of a container's stores, or deletes them.
struct HistoryReader {
  private let stores: ModelStores
  private let descriptor: HistoryDescriptor<DefaultHistoryTransaction>
  private let kept: [ModelStore]

  private typealias Found = (store: ModelStore, transaction: DefaultHistoryTransaction)

  /// - Throws: `unsupported` if no store keeps a history.
  init(
    _ stores: ModelStores, _ descriptor: HistoryDescriptor<DefaultHistoryTransaction>,
    _ what: String
  ) throws {
    self.stores = stores
    self.descriptor = descriptor
    kept = try stores.all.filter { store in
      try store.connection.perform { try store.historyTables($0) } != nil
    }
    guard kept.isEmpty, let store = stores.all.first else { return }
    let canHaveHistory = !store.layout.historyTables.isEmpty
    throw InstarError(
      .unsupported, "\(what) the history of \(store.place)",
      cause: canHaveHistory
        ? "the store has no history tables" : "a plain store keeps no history",
      state: "unchanged",
      next: canHaveHistory
        ? "use a store that SwiftData or Instar created"
        : "keep a timestamp in the models, and fetch by it")
  }

  /// Returns the transactions of the descriptor, with their changes.
  ///
  /// - Throws: `SwiftDataError.historyTokenExpired` if the predicate asks for transactions after a token, and some of
  ///   them were deleted.
  func transactions() throws -> [DefaultHistoryTransaction] {
    for token in descriptor.predicate?.lowerBounds ?? [] { try requireValid(token) }
    return try withChanges(found())
  }

  /// Deletes the transactions of the descriptor.
  ///
  /// - Throws: `storeChanged`; `sqlFailed`. The store that failed is then unchanged.
  func deleteTransactions() throws {
    for (index, found) in try Dictionary(
      grouping: found(), by: { found in kept.firstIndex { $0 === found.store } ?? 0 })
    {
      let store = kept[index]
      try store.connection.perform { session in
        try session.transaction {
          try store.requireSameStructure(session)
          for sql in [
            "DELETE FROM ACHANGE WHERE ZTRANSACTIONID = ?",
            "DELETE FROM ATRANSACTION WHERE Z_PK = ?",
          ] {
            let statement = try session.statement(sql)
            for found in found {
              statement.bind(found.transaction.transactionIdentifier, at: 1)
              try statement.run()
            }
          }
        }
      }
    }
  }

  // MARK: Transactions

  /// Returns the transactions that match, without their changes.
  private func found() throws -> [Found] {
    let bounds = descriptor.predicate?.lowerBounds ?? []
    var numbers: [String: Int64] = [:]
    var rows: [(store: ModelStore, row: Row)] = []
    for store in kept {
      let lower = bounds.compactMap { bound in
        bound.token.numbers[store.uuid].map { bound.isInclusive ? $0 - 1 : $0 }
      }.max()
      let read = try read(store, after: lower)
      numbers[store.uuid] =
        try read.first.map { $0.number - 1 } ?? lower
        ?? store.connection.perform { try HistoryTables.lastKey(.transaction, $0) }
      rows += read.map { (store, $0) }
    }
    // The token of a transaction covers all stores, so that one token is enough for a container.
    if kept.count > 1 {
      rows.sort { ($0.row.timestamp, $0.row.number) < ($1.row.timestamp, $1.row.number) }
    }
    var all = rows.map { store, row in
      numbers[store.uuid] = row.number
      return (
        store: store,
        transaction: DefaultHistoryTransaction(
          timestamp: row.timestamp, token: DefaultHistoryToken(numbers),
          transactionIdentifier: row.number, storeIdentifier: store.uuid,
          bundleIdentifier: row.bundle, processIdentifier: row.process, author: row.author)
      )
    }
    if let predicate = descriptor.predicate {
      if predicate.dependsOnChanges {
        all = zip(all, try withChanges(all)).map { (store: $0.store, transaction: $1) }
      }
      all = try all.filter { try predicate.evaluate($0.transaction) }
    }
    if !descriptor.sortBy.isEmpty {
      all.sort { left, right in
        for sort in descriptor.sortBy {
          switch sort.compare(left.transaction, right.transaction) {
          case .orderedAscending: return true
          case .orderedDescending: return false
          case .orderedSame: continue
          }
        }
        return false
      }
    }
    let limit = Int(clamping: descriptor.fetchLimit)
    return limit == 0 ? all : Array(all.prefix(limit))
  }

  private struct Row {
    let number: Int64
    let timestamp: Date
    let author: String?
    let bundle: String
    let process: String
  }

  private func read(_ store: ModelStore, after lower: Int64?) throws -> [Row] {
    try store.connection.perform { session in
      guard let tables = try store.historyTables(session) else { return [] }
      let statement = try session.statement(
        "SELECT t.Z_PK, t.ZTIMESTAMP, \(tables.text(.author)), \(tables.text(.bundle)), "
          + "\(tables.text(.process)) FROM ATRANSACTION AS t WHERE t.Z_PK > ? ORDER BY t.Z_PK")
      statement.bind(lower ?? .min, at: 1)
      defer { statement.reset() }
      var rows: [Row] = []
      while try statement.step() {
        let author = statement.storageClass(at: 2) == .null ? nil : statement.text(at: 2)
        rows.append(
          Row(
            number: statement.integer(at: 0),
            timestamp: Date(timeIntervalSinceReferenceDate: statement.real(at: 1)),
            author: author, bundle: statement.text(at: 3), process: statement.text(at: 4)))
      }
      return rows
    }
  }

  /// Requires that all transactions after a token are in the store, and that the token is not of a later state of it.
  private func requireValid(_ bound: TokenBound) throws {
    for store in kept {
      guard let number = bound.token.numbers[store.uuid] else { continue }
      let (first, last) = try store.connection.perform { session in
        (
          try session.integer("SELECT min(Z_PK) FROM ATRANSACTION"),
          try HistoryTables.lastKey(.transaction, session)
        )
      }
      let wanted = bound.isInclusive ? number : number + 1
      let cause: String
      if number > last {
        cause =
          "the token is of transaction \(number), and the last one in \(store.place) is \(last): the store was replaced by an earlier copy"
      } else if wanted < first ?? (last + 1) {
        cause =
          "the token asks for transactions from \(wanted) on, and \(store.place) has them from \(first ?? (last + 1)) on: the earlier ones were deleted"
      } else {
        continue
      }
      throw SwiftDataError(
        .historyTokenExpired,
        InstarError(
          .historyTokenExpired, "cannot fetch the history after a token", cause: cause,
          next: "process all models again, and keep the token of the last transaction"))
    }
  }

  // MARK: Changes

  private func withChanges(_ found: [Found]) throws -> [DefaultHistoryTransaction] {
    try found.map { store, transaction in
      var transaction = transaction
      transaction.changes = try changes(of: transaction.transactionIdentifier, in: store)
      return transaction
    }
  }

  private func changes(of transaction: Int64, in store: ModelStore) throws -> [HistoryChange] {
    let entities = Dictionary(
      firstOf: stores.entities.lazy.filter { $0.store === store }.map {
        (Int64($0.layout.number), $0)
      })
    return try store.connection.perform { session in
      guard let tables = try store.historyTables(session) else { return [] }
      let tombstones = tables.tombstoneColumns(.max).map { ", \($0)" }.joined()
      let statement = try session.statement(
        "SELECT Z_PK, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZCOLUMNS\(tombstones) FROM ACHANGE "
          + "WHERE ZTRANSACTIONID = ? ORDER BY Z_PK")
      statement.bind(transaction, at: 1)
      defer { statement.reset() }
      var changes: [HistoryChange] = []
      while try statement.step() {
        // A store that was adopted may have entities without models.
        guard let entity = entities[statement.integer(at: 2)] else { continue }
        let origin = ChangeOrigin(
          change: statement.integer(at: 0), transaction: transaction,
          identifier: PersistentIdentifier(
            entityName: entity.layout.name, key: statement.integer(at: 3),
            storeIdentifier: store.uuid))
        switch statement.integer(at: 1) {
        case 0: changes.append(origin.insertion(entity.descriptor.type))
        case 1:
          let slots = entity.slots(ofHistoryColumns: statement.data(at: 4))
          changes.append(origin.update(entity.descriptor.type, entity, slots))
        case 2:
          let values = (0..<tables.tombstoneCount).map { statement.slot(at: Int32($0 + 5)) }
          changes.append(origin.deletion(entity.descriptor.type, entity, values))
        default: continue
        }
      }
      return changes
    }
  }
}

/// Creates the values of one row of `ACHANGE`.
private struct ChangeOrigin {
  let change: Int64
  let transaction: Int64
  let identifier: PersistentIdentifier

  func insertion<Model: PersistentModel>(_ type: Model.Type) -> HistoryChange {
    .insert(
      DefaultHistoryInsert<Model>(
        changeIdentifier: change, transactionIdentifier: transaction,
        changedPersistentIdentifier: identifier))
  }

  func update<Model: PersistentModel>(
    _ type: Model.Type, _ entity: ModelEntity, _ slots: [Int]
  ) -> HistoryChange {
    let keyPaths = slots.compactMap { slot in
      // Key paths that `@Model` writes have no captures. A marker protocol cannot be cast to.
      (entity.descriptor.properties[slot].keyPath as? PartialKeyPath<Model>).map {
        unsafeBitCast($0, to: (any PartialKeyPath<Model> & Sendable).self)
      }
    }
    return .update(
      DefaultHistoryUpdate<Model>(
        changeIdentifier: change, transactionIdentifier: transaction,
        changedPersistentIdentifier: identifier, updatedAttributes: keyPaths))
  }

  func deletion<Model: PersistentModel>(
    _ type: Model.Type, _ entity: ModelEntity, _ stored: [Slot]
  ) -> HistoryChange {
    let values = zip(entity.layout.preservedAttributes, stored).compactMap {
      attribute, slot -> (keyPath: AnyKeyPath, value: Any)? in
      guard
        let property = entity.descriptor.properties.first(where: {
          $0.name == attribute.attribute.name
        }), case .attribute(let kind) = property.kind, let value = kind.swiftValue(of: slot),
        let keyPath = property.keyPath
      else { return nil }
      return (keyPath, value)
    }
    return .delete(
      DefaultHistoryDelete<Model>(
        changeIdentifier: change, transactionIdentifier: transaction,
        changedPersistentIdentifier: identifier, tombstone: HistoryTombstone(values)))
  }
}

extension ModelEntity {
  /// Returns the slots of the bits of `ZCOLUMNS`; none if they count other properties than the entity has.
  fileprivate func slots(ofHistoryColumns columns: Data) -> [Int] {
    var slots: [Int] = []
    for (index, byte) in columns.enumerated() {
      for bit in 0..<8 where byte & (0x80 >> UInt8(bit)) != 0 {
        guard historySlots.indices.contains(index * 8 + bit) else { return [] }
        slots.append(historySlots[index * 8 + bit])
      }
    }
    return slots
  }
}

extension Schema.PropertyMetadata.AttributeKind {
  /// Returns a stored value as the property has it; `nil` for NULL, and for a value that is not of its type.
  fileprivate func swiftValue(of slot: Slot) -> Any? {
    guard !slot.isNull else { return nil }
    let type = (valueType as? any OptionalType.Type)?.wrappedType ?? valueType
    if let type = type as? any PersistentAttribute.Type { return type.init(slot: slot) }
    return (type as? any Codable.Type).flatMap { Schema.Attribute.value(of: slot, as: $0) }
  }
}
