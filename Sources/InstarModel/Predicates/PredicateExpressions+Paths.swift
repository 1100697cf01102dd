import Foundation
import InstarSchema
import InstarStore

// Variables, properties, relationships and optionals.

extension PredicateExpressions.Variable: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    guard let term = lowering.variable(key) else { throw lowering.unsupported(self) }
    return term
  }
}

extension PredicateExpressions.Value: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    // Constants of types with a counterpart in SQL were handled before.
    throw lowering.unsupported(self, "a value of type \(Output.self) cannot be bound")
  }
}

extension PredicateExpressions.NilLiteral: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm { .nil }
}

extension PredicateExpressions.KeyPath: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let root = try lowering.term(root)
    switch root {
    case .model(let model): return try property(of: model, lowering)
    case .value(let value): return .value(try part(of: value, lowering))
    case .composite(let composite):
      let offset = MemoryLayout<Root.Output>.offset(of: keyPath)
      guard let field = composite.fields?.firstIndex(where: { $0.offset == offset }) else {
        throw lowering.unsupported(
          self, "only the stored fields of \(Root.Output.self) are columns")
      }
      var leaf = composite.leaves[field]
      leaf.guards = composite.guards
      return term(of: leaf)
    case .members, .elements:
      let guards = root.guardsOfSequence
      switch kind {
      case .collectionCount:
        return .value(
          SQLValue(
            sql: try lowering.subquery(root, selecting: "COUNT(*)"), kind: .integer,
            guards: guards))
      case .collectionIsEmpty:
        return .value(
          .condition(
            "NOT EXISTS \(try lowering.subquery(root, selecting: "1"))", guards: guards))
      default: throw lowering.unsupported(self, "the members of a relationship have no order")
      }
    case .list, .range, .nil: throw lowering.unsupported(self)
    }
  }

  /// Returns the value of a column, or the elements of its array.
  private func term(of value: SQLValue) -> PredicateTerm {
    var value = value
    if value.kind == .json, let element = ElementsTerm.Element(of: Output.self) {
      return .elements(
        ElementsTerm(
          json: value.sql, element: element, isOptional: value.isOptional, guards: value.guards))
    }
    if value.kind == .integer, Output.self is any Unsigned64.Type { value.kind = .unsigned }
    if value.kind == .bool { value.sql = "(\(value.sql) <> 0)" }
    return .value(value)
  }

  private func property(
    of model: ModelTerm, _ lowering: PredicateLowering
  ) throws -> PredicateTerm {
    guard let slot = model.entity.descriptor.slotsByKeyPath[keyPath] else {
      // Of the other properties only `persistentModelID` and `id` are supported, and only they have this type.
      guard Output.self == PersistentIdentifier.self else {
        throw lowering.unsupported(
          self, "only stored properties of \(model.entity.layout.name) are in the store")
      }
      return .value(
        SQLValue(
          sql: model.key, kind: .identifier(root: model.entity.layout.root), guards: model.guards,
          columnAlias: model.keyAlias))
    }
    func alias() -> String { model.rowAlias(lowering) }
    switch model.entity.slots[slot] {
    case .attribute(let column, let isOptional):
      guard
        let attribute = model.entity.layout.attributes.first(where: { $0.column == column })?
          .attribute
      else { throw lowering.unsupported(self) }
      let alias = alias()
      let kind = SQLValue.Kind(attribute.type)
      let decodable =
        lowering.matchesUndecodable ? nil : kind.decodableCondition(column, alias: alias)
      return term(
        of: SQLValue(
          sql: column.reading.sql(alias), kind: kind, isOptional: isOptional,
          guards: model.guards + [decodable].compactMap(\.self), columnAlias: alias))
    case .composite(let columns, let isOptional):
      guard
        let composite = lowering.composite(
          columns.map { [alias = alias()] in $0.reading.sql(alias) }, model.entity, slot)
      else { throw lowering.unsupported(self) }
      var term = composite
      term.isOptional = isOptional
      term.guards = model.guards
      return .composite(term)
    case .toOne(let reference, let destination, let isOptional, _):
      guard let entity = lowering.stores.entity(named: destination) else {
        throw lowering.unsupported(self)
      }
      lowering.note(entity)
      let alias = alias()
      return .model(
        ModelTerm(
          entity: entity, key: reference.reading.sql(alias), isOptional: isOptional,
          guards: model.guards,
          keyAlias: alias, scope: model.scope))
    case .toMany(let relationship):
      guard let entity = lowering.stores.entity(named: relationship.relationship.destination)
      else { throw lowering.unsupported(self) }
      lowering.note(entity)
      return .members(
        MembersTerm(
          entity: entity, location: relationship.location, ownerKey: model.key, guards: model.guards
        ))
    case .none: throw lowering.unsupported(self, "the property is not in the store")
    }
  }

  private func part(of value: SQLValue, _ lowering: PredicateLowering) throws -> SQLValue {
    var part = value
    // The stored value is the raw value.
    if lowering.isRawValue(keyPath, of: Root.Output.self) { return part }
    part.columnAlias = nil
    switch (value.kind, kind) {
    case (.text, .collectionCount):
      part.sql = "\(PredicateFunctions.count)(\(value.sql))"
      part.kind = .integer
    case (.text, .collectionIsEmpty):
      part.sql = "(\(value.sql) = '')"
      part.kind = .bool
    case (.blob, _) where keyPath == \Data.count:
      part.sql = "length(\(value.sql))"
      part.kind = .integer
    case (.blob, _) where keyPath == \Data.isEmpty:
      part.sql = "(length(\(value.sql)) = 0)"
      part.kind = .bool
    case (.date, _) where keyPath == \Date.timeIntervalSinceReferenceDate: part.kind = .real
    case (.url, _) where keyPath == \URL.absoluteString: part.kind = .text
    default: throw lowering.unsupported(self)
    }
    return part
  }
}

/// Unsigned 64-bit integers, which SQLite stores as signed ones with the same bits.
protocol Unsigned64 {}
extension UInt: Unsigned64 {}
extension UInt64: Unsigned64 {}
extension Optional: Unsigned64 where Wrapped: Unsigned64 {}

extension PredicateExpressions.OptionalFlatMap: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    switch try lowering.term(wrapped) {
    // An array of models is never `nil`.
    case .members(let members):
      return try lowering.with(variable.key, .members(members)) { try lowering.term(transform) }
    case .nil: return .nil
    case let optional:
      guard let unwrapped = UnwrappedTerm(optional) else { throw lowering.unsupported(self) }
      let result = try lowering.with(variable.key, unwrapped.value) {
        try lowering.term(transform)
      }
      guard let term = unwrapped.optional(result) else { throw lowering.unsupported(self) }
      return term
    }
  }
}

extension PredicateExpressions.NilCoalesce: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let left = try lowering.term(lhs)
    // An array is never `nil`, so the default value is never used.
    if case .members = left { return left }
    switch (left, try lowering.term(rhs)) {
    case (.nil, let right): return right
    // NULL has no elements.
    case (.elements(var elements), .list(let list)) where list.isEmpty:
      elements.isOptional = false
      elements.json = "IFNULL(\(elements.json), '[]')"
      return .elements(elements)
    case (.value(let left), .value(let right)):
      guard left.kind == right.kind else { throw lowering.unsupported(self) }
      return .value(
        SQLValue(
          sql: "IFNULL(\(left.sql), \(right.sql))", kind: left.kind, isOptional: right.isOptional,
          guards: left.guards + right.guards.map { "(\(left.sql) IS NOT NULL OR \($0))" },
          canBeNotANumber: left.canBeNotANumber || right.canBeNotANumber))
    case (.model(let left), .model(let right)):
      return .model(
        ModelTerm(
          entity: left.entity, key: "IFNULL(\(left.key), \(right.key))",
          isOptional: right.isOptional,
          guards: left.guards + right.guards.map { "(\(left.key) IS NOT NULL OR \($0))" },
          scope: left.scope))
    default: throw lowering.unsupported(self)
    }
  }
}

extension PredicateExpressions.ForcedUnwrap: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    switch try lowering.term(inner) {
    case .value(var value):
      value.guards.append("\(value.sql) IS NOT NULL")
      value.isOptional = false
      return .value(value)
    case .model(var model):
      model.guards.append("\(model.key) IS NOT NULL")
      model.isOptional = false
      return .model(model)
    case .members(let members): return .members(members)
    case .elements(var elements):
      elements.guards.append("\(elements.json) IS NOT NULL")
      elements.isOptional = false
      return .elements(elements)
    case .composite(var composite):
      if composite.isOptional { composite.guards.append("NOT \(composite.nilCondition)") }
      composite.isOptional = false
      return .composite(composite)
    case .nil, .list, .range: throw lowering.unsupported(self)
    }
  }
}
