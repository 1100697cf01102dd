import Foundation
import InstarStore

// To-many relationships, constant arrays and ranges.

extension PredicateExpressions.SequenceContains: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let element = try lowering.term(element)
    let sequence = try lowering.term(sequence)
    switch (sequence, element) {
    case (.members(let members), .model(let model)):
      let found = try lowering.subquery(sequence, selecting: "1") { member in
        guard case .model(let member) = member else { throw lowering.unsupported(self) }
        return SQLValue.condition("\(member.key) = \(model.key)")
      }
      return .value(.condition("EXISTS \(found)", guards: members.guards + model.guards))
    case (.elements(let elements), .value), (.elements(let elements), .nil):
      var (key, guards) = (element, elements.guards)
      if case .value(var value) = element {
        guards += value.guards
        value.guards = []
        key = .value(value)
      }
      let found = try lowering.subquery(sequence, selecting: "1") { [key] one in
        guard let test = try lowering.equality(one, key) else { throw lowering.unsupported(self) }
        return test
      }
      return .value(.condition("EXISTS \(found)", guards: guards))
    case (.list(let list), _):
      guard let value = try lowering.contains(list, element) else {
        throw lowering.unsupported(self)
      }
      return .value(value)
    case (.range(let range), .value(let value)):
      guard let value = lowering.contains(range, value) else { throw lowering.unsupported(self) }
      return .value(value)
    // A character in a text.
    case (.value(let text), .value(let character))
    where text.kind == .text && character.kind == .text:
      return .value(lowering.function(PredicateFunctions.contains, text, character, .bool))
    default: throw lowering.unsupported(self)
    }
  }
}

extension PredicateExpressions.SequenceContainsWhere: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let sequence = try lowering.sequence(sequence, of: self)
    let found = try lowering.subquery(sequence, selecting: "1") { one in
      try lowering.with(variable.key, one) { try lowering.condition(test) }
    }
    return .value(.condition("EXISTS \(found)", guards: sequence.guardsOfSequence))
  }
}

extension PredicateExpressions.SequenceAllSatisfy: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let sequence = try lowering.sequence(sequence, of: self)
    let exception = try lowering.subquery(sequence, selecting: "1") { one -> SQLValue in
      let test = try lowering.with(variable.key, one) { try lowering.condition(self.test) }
      return .condition("(NOT (\(test.matchCondition)))")
    }
    return .value(.condition("NOT EXISTS \(exception)", guards: sequence.guardsOfSequence))
  }
}

extension PredicateExpressions.Filter: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let test: MembersTerm.Test = { one in
      try lowering.with(variable.key, one) { try lowering.condition(filter) }
    }
    switch try lowering.sequence(sequence, of: self) {
    case .members(var members):
      members.filters.append(test)
      return .members(members)
    case .elements(var elements):
      elements.filters.append(test)
      return .elements(elements)
    default: throw lowering.unsupported(self)
    }
  }
}

extension PredicateExpressions.Range: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.range(lower, upper, includesUpper: false)
  }
}

extension PredicateExpressions.ClosedRange: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.range(lower, upper, includesUpper: true)
  }
}

extension PredicateExpressions.RangeExpressionContains: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    guard case .range(let range) = try lowering.term(range),
      let value = lowering.contains(range, try lowering.value(element))
    else { throw lowering.unsupported(self) }
    return .value(value)
  }
}

extension PredicateLowering {
  fileprivate func range(
    _ lower: some PredicateExpression, _ upper: some PredicateExpression, includesUpper: Bool
  ) throws -> PredicateTerm {
    .range(
      RangeTerm(
        lower: try value(lower), upper: try value(upper), includesUpper: includesUpper))
  }

  /// Returns the members of a relationship, or the elements of an array.
  func sequence(
    _ sequence: some PredicateExpression, of expression: some Any
  ) throws -> PredicateTerm {
    let term = try term(sequence)
    switch term {
    case .members, .elements: return term
    default:
      throw unsupported(
        expression, "only relationships and stored arrays of plain values can be searched")
    }
  }

  /// Returns `(SELECT … )` over the members or elements that match every filter and `test`.
  func subquery(
    _ sequence: PredicateTerm, selecting selection: String, _ test: MembersTerm.Test? = nil
  ) throws -> String {
    switch sequence {
    case .members(let members): return try subquery(members, selecting: selection, test)
    case .elements(let elements): return try subquery(elements, selecting: selection, test)
    default: throw unsupported(selection, "the expression is not a sequence")
    }
  }

  private func subquery(
    _ elements: ElementsTerm, selecting selection: String, _ test: MembersTerm.Test?
  ) throws -> String {
    let alias = makeAlias()
    let element = PredicateTerm.value(elements.element.value("\(alias).value"))
    let conditions = try (elements.filters + (test.map { [$0] } ?? [])).map {
      try $0(element).matchCondition
    }
    // The JSON is stored as bytes. Some versions of SQLite refuse them as JSON, others read them as JSONB.
    let json = "\(PredicateFunctions.json)(\(elements.json))"
    return "(SELECT \(selection) FROM json_each(\(json)) AS \(alias)"
      + (conditions.isEmpty ? ")" : " WHERE \(conditions.joined(separator: " AND ")))")
  }

  private func subquery(
    _ members: MembersTerm, selecting selection: String, _ test: MembersTerm.Test?
  ) throws -> String {
    let scope = QueryScope()
    let alias = makeAlias()
    let table = members.entity.layout.table
    let source: String
    let link: String
    switch members.location {
    case .foreignKey(let reference):
      source = "\(table) AS \(alias)"
      link = reference.condition(alias, equals: members.ownerKey)
    case .joinTable(let name, let own, let other):
      let links = makeAlias()
      source =
        "\(name) AS \(links) JOIN \(table) AS \(alias) ON \(other.condition(links, refersTo: alias))"
      link = own.condition(links, equals: members.ownerKey)
    case .column:
      throw unsupported(members.ownerKey, "the expression is not a to-many relationship")
    }
    let member = ModelTerm(
      entity: members.entity, key: members.entity.layout.key.reading.sql(alias), alias: alias,
      keyAlias: alias, scope: scope)
    var conditions = [link]
    for test in members.filters + (test.map { [$0] } ?? []) {
      conditions.append(try test(.model(member)).matchCondition)
    }
    return "(SELECT \(selection) FROM \(source)\(scope.joinClauses) "
      + "WHERE \(conditions.joined(separator: " AND ")))"
  }

  /// Returns whether a constant list has an element; `nil` if SQL cannot compare them.
  func contains(_ list: [Any], _ element: PredicateTerm) throws -> SQLValue? {
    let key: SQLValue
    switch element {
    case .value(let value): key = value
    case .model(let model):
      key = SQLValue(
        sql: model.key, kind: .identifier(root: model.entity.layout.root),
        isOptional: model.isOptional, guards: model.guards)
    case .nil, .list, .members, .elements, .composite, .range: return nil
    }
    var hasNil = false
    var isPlain = true
    var values: [String] = []
    let start = parameters.count
    for constant in list {
      guard let term = try self.constant(constant) else { return nil }
      switch term {
      case .nil: hasNil = true
      case .value(let value) where value.kind == key.kind:
        values.append(value.sql)
        isPlain = isPlain && value.isPlainText
      case .model(let model) where key.kind == .identifier(root: model.entity.layout.root):
        values.append(model.key)
      default: return nil
      }
    }
    let collation =
      key.kind == .text && !isPlain ? " COLLATE \(PredicateFunctions.textCollation)" : ""
    let members =
      try self.list(fromParameter: start, key.kind) ?? "(\(values.joined(separator: ", ")))"
    let sql = "(\(key.sql)\(collation) IN \(members))"
    return .condition(
      key.isOptional || key.canBeNotANumber
        ? "CASE WHEN \(key.sql) IS NULL THEN \(hasNil ? 1 : 0) ELSE \(sql) END" : sql,
      guards: key.guards)
  }

  func contains(_ range: RangeTerm, _ value: SQLValue) -> SQLValue? {
    var conditions: [String] = []
    var guards: [String] = []
    for (bound, sign) in [(range.lower, ">="), (range.upper, range.includesUpper ? "<=" : "<")] {
      guard let bound else { continue }
      guard let condition = comparison(value, sign, bound) else { return nil }
      conditions.append(condition.sql)
      guards += condition.guards
    }
    return .condition("(\(conditions.joined(separator: " AND ")))", guards: guards)
  }
}
