import Foundation
import InstarSchema
import InstarStore

/// A fetch descriptor as one SELECT: its condition and order, and their bound parameters.
struct FetchStatement {
  let entity: ModelEntity
  /// Every entity that the condition or order depends on.
  let entities: [ModelEntity]
  let parameters: [Slot]
  /// The terms of the ORDER BY clause; `nil` if SQLite cannot sort like the descriptors, so the models are sorted in
  /// memory.
  let orderTerms: [String]?
  /// The ORDER BY clause; `nil` as above.
  var order: String? {
    orderTerms.map { $0.isEmpty ? "" : " ORDER BY " + $0.joined(separator: ", ") }
  }
  private let joins: String
  private let conditions: [String]

  /// - Parameter matchesUndecodable: See `PredicateLowering`.
  /// - Throws: `SwiftDataError.unsupportedPredicate` with the part of the predicate that cannot be expressed in SQL.
  init<T: PersistentModel>(
    _ predicate: Predicate<T>?, sortBy: [SortDescriptor<T>] = [], entity: ModelEntity,
    stores: ModelStores, matchesUndecodable: Bool = true
  ) throws {
    self.entity = entity
    let lowering = PredicateLowering(
      stores: stores, store: entity.store, matchesUndecodable: matchesUndecodable)
    let scope = QueryScope()
    let alias = lowering.makeAlias()
    let row = ModelTerm(
      entity: entity, key: entity.layout.key.reading.sql(alias), alias: alias, keyAlias: alias,
      scope: scope)
    var conditions = entity.layout.rowCondition.map { ["\(alias).\($0)"] } ?? []
    if let predicate { conditions.append(try lowering.lower(predicate, row: row).matchCondition) }
    self.conditions = conditions
    orderTerms = Self.orderTerms(sortBy, entity, alias: alias)
    joins = scope.joinClauses
    entities = lowering.entities.isEmpty ? [entity] : lowering.entities
    parameters = lowering.parameters
    if predicate != nil { try requireParsable() }
  }

  /// How deep expressions can nest depends on how SQLite was built, so only SQLite knows. It accepts this depth always.
  private static let safeDepth = 20

  private func requireParsable() throws {
    let sql = sql(selecting: "1")
    var (depth, deepest) = (0, 0)
    for byte in sql.utf8 {
      if byte == UInt8(ascii: "(") { depth += 1 }
      if byte == UInt8(ascii: ")") { depth -= 1 }
      deepest = max(deepest, depth)
    }
    guard deepest > Self.safeDepth else { return }
    do {
      // The statement of a fetch may be around it, as of a count.
      try entity.store.connection.perform {
        _ = try $0.statement("SELECT 1 FROM (SELECT 1 FROM (\(sql)))")
      }
    } catch let error as InstarError where error.code == .sqlFailed {
      throw PredicateLowering.tooDeep("SQLite accepts")
    }
  }

  /// - Parameters:
  ///   - condition: A further condition on the row `t0`.
  ///   - ordering: Replaces the descriptor's order.
  func sql(
    selecting columns: String, where condition: String? = nil, ordering: String? = nil,
    limit: Int? = nil, offset: Int? = nil
  ) -> String {
    var sql = "SELECT \(columns) FROM \(entity.layout.table) AS t0\(joins)"
    let conditions = conditions + (condition.map { [$0] } ?? [])
    if !conditions.isEmpty { sql += " WHERE \(conditions.joined(separator: " AND "))" }
    sql += ordering ?? order ?? ""
    if limit != nil || offset != nil { sql += " LIMIT \(limit ?? -1) OFFSET \(offset ?? 0)" }
    return sql
  }

  /// Returns the terms of `ORDER BY` for descriptors that compare stored values as SQLite can.
  private static func orderTerms<T: PersistentModel>(
    _ sortBy: [SortDescriptor<T>], _ entity: ModelEntity, alias: String
  ) -> [String]? {
    var terms: [String] = []
    for descriptor in sortBy {
      guard let keyPath = descriptor.keyPath,
        let slot = entity.descriptor.slotsByKeyPath[keyPath],
        case .attribute(let column, _) = entity.slots[slot],
        let type = entity.layout.attributes.first(where: { $0.column == column })?.attribute.type
      else { return nil }
      let direction = descriptor.order == .reverse ? " DESC" : ""
      let name = column.reading.sql(alias)
      switch (Comparison(descriptor), type) {
      case (.values, .string):
        terms.append("\(name) COLLATE \(PredicateFunctions.textCollation)\(direction)")
      case (.lexical, .string):
        terms.append("\(name) COLLATE \(PredicateFunctions.lexicalCollation)\(direction)")
      case (.values, _):
        if Swift.type(of: keyPath).valueType is any Unsigned64.Type {
          terms.append("\(name) < 0\(direction)")
        }
        terms.append(name + direction)
      default: return nil
      }
    }
    return terms
  }

  /// Returns the comparison of a sort descriptor. It is private to Foundation, but reflection shows it.
  private enum Comparison {
    case values, lexical, other

    init(_ descriptor: SortDescriptor<some Any>) {
      let comparison = Mirror(reflecting: descriptor).children.first { $0.label == "comparison" }
      let kind = comparison.flatMap { Mirror(reflecting: $0.value).children.first }
      switch kind?.label {
      case "comparable": self = .values
      case "comparableString":
        let parts = kind.map { Mirror(reflecting: $0.value).children.map(\.value) } ?? []
        var comparator = parts.first as? String.StandardComparator
        comparator?.order = .forward
        self = comparator == .lexical ? .lexical : .other
      default: self = .other
      }
    }
  }
}

extension SQLStatement {
  /// A value of the current row.
  func slot(at column: Int32) -> Slot {
    switch value(at: column) {
    case .null: .null
    case .integer(let integer): .integer(integer)
    case .real(let real): .real(real)
    case .text(let text): .text(text)
    case .blob(let data): .blob(data)
    }
  }

  func bind(_ slots: [Slot]) {
    for (offset, slot) in slots.enumerated() { bind(slot, at: Int32(offset + 1)) }
  }

  func bind(_ slot: Slot, at index: Int32) {
    switch slot {
    case .integer(let integer): bind(integer, at: index)
    case .real(let real): bind(real, at: index)
    case .text(let text): bind(text, at: index)
    case .blob(let data): bind(data, at: index)
    case .key(let key): bind(key, at: index)
    case .null, .model, .unloaded, .models, .composite: bindNull(at: index)
    }
  }
}
