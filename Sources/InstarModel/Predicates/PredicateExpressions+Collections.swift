import Foundation
import InstarStore

// To-many relationships, constant arrays and ranges.

extension PredicateExpressions.SequenceContains: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let element = try lowering.term(element)
    switch (try lowering.term(sequence), element) {
    case (.members(let members), .model(let model)):
      let found = try lowering.subquery(members, selecting: "1") { member in
        SQLValue.condition("\(member.key) = \(model.key)")
      }
      return .value(.condition("EXISTS \(found)", guards: members.guards + model.guards))
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
    let members = try lowering.members(sequence, of: self)
    let found = try lowering.subquery(members, selecting: "1") { member in
      try lowering.with(variable.key, .model(member)) { try lowering.condition(test) }
    }
    return .value(.condition("EXISTS \(found)", guards: members.guards))
  }
}

extension PredicateExpressions.SequenceAllSatisfy: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let members = try lowering.members(sequence, of: self)
    let exception = try lowering.subquery(members, selecting: "1") { member -> SQLValue in
      let test = try lowering.with(variable.key, .model(member)) {
        try lowering.condition(self.test)
      }
      return .condition("(NOT (\(test.matchCondition)))")
    }
    return .value(.condition("NOT EXISTS \(exception)", guards: members.guards))
  }
}

extension PredicateExpressions.Filter: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    var members = try lowering.members(sequence, of: self)
    members.filters.append { member in
      try lowering.with(variable.key, .model(member)) { try lowering.condition(filter) }
    }
    return .members(members)
  }
}

extension PredicateExpressions.Range: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .range(
      RangeTerm(
        lower: try lowering.value(lower), upper: try lowering.value(upper), includesUpper: false))
  }
}

extension PredicateExpressions.ClosedRange: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .range(
      RangeTerm(
        lower: try lowering.value(lower), upper: try lowering.value(upper), includesUpper: true))
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
  func members(
    _ sequence: some PredicateExpression, of expression: some Any
  ) throws -> MembersTerm {
    guard case .members(let members) = try term(sequence) else {
      throw unsupported(expression, "only the members of a relationship can be looked through")
    }
    return members
  }

  /// `(SELECT … )` over the members that every filter, and `test`, let through.
  func subquery(
    _ members: MembersTerm, selecting selection: String, _ test: MembersTerm.Test? = nil
  ) throws -> String {
    let scope = QueryScope()
    let alias = makeAlias()
    let table = members.entity.layout.table
    let source: String
    let link: String
    switch members.place {
    case .foreignKey(let reference):
      source = "\(table) AS \(alias)"
      link = reference.condition(alias, equals: members.ownerKey)
    case .joinTable(let name, let own, let other):
      let links = makeAlias()
      source =
        "\(name) AS \(links) JOIN \(table) AS \(alias) ON \(other.condition(links, refersTo: alias))"
      link = own.condition(links, equals: members.ownerKey)
    case .column: throw unsupported(members.ownerKey, "it is no to-many relationship")
    }
    let member = ModelTerm(
      entity: members.entity, key: members.entity.layout.key.reading.sql(alias), alias: alias,
      keyAlias: alias, scope: scope)
    var conditions = [link]
    for test in members.filters + (test.map { [$0] } ?? []) {
      conditions.append(try test(member).matchCondition)
    }
    return "(SELECT \(selection) FROM \(source)\(scope.joinClauses) "
      + "WHERE \(conditions.joined(separator: " AND ")))"
  }

  /// Whether a constant list has an element; `nil` where they cannot be compared in SQL.
  func contains(_ list: [PredicateTerm], _ element: PredicateTerm) throws -> SQLValue? {
    let key: SQLValue
    switch element {
    case .value(let value): key = value
    case .model(let model):
      key = SQLValue(
        sql: model.key, kind: .identifier(root: model.entity.layout.root),
        isOptional: model.isOptional, guards: model.guards)
    case .nil, .list, .members, .range: return nil
    }
    var hasNil = false
    var isPlain = true
    var values: [String] = []
    for term in list {
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
    let sql = "(\(key.sql)\(collation) IN (\(values.joined(separator: ", "))))"
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
