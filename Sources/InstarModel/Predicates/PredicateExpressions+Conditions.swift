import Foundation
import InstarStore

// Logic and comparison.

extension PredicateExpressions.Conjunction: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let (left, right) = (try lowering.condition(lhs), try lowering.condition(rhs))
    return .value(
      .joined(
        left, "AND", right,
        guards: left.guards + right.guards.map { "(NOT \(left.sql) OR \($0))" }))
  }
}

extension PredicateExpressions.Disjunction: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let (left, right) = (try lowering.condition(lhs), try lowering.condition(rhs))
    return .value(
      .joined(
        left, "OR", right,
        guards: left.guards + right.guards.map { "(\(left.sql) OR \($0))" }))
  }
}

extension PredicateExpressions.Negation: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let wrapped = try lowering.condition(wrapped)
    return .value(.condition("(NOT \(wrapped.sql))", guards: wrapped.guards))
  }
}

extension PredicateExpressions.Conditional: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let test = try lowering.condition(test)
    let (one, two) = (try lowering.term(trueBranch), try lowering.term(falseBranch))
    func guards(_ one: [String], _ two: [String]) -> [String] {
      test.guards + one.map { "(NOT \(test.sql) OR \($0))" } + two.map { "(\(test.sql) OR \($0))" }
    }
    func choice(_ one: String, _ two: String) -> String {
      "CASE WHEN \(test.sql) THEN \(one) ELSE \(two) END"
    }
    switch (one, two) {
    case (.nil, .nil): return .nil
    case (.value(var value), .nil), (.nil, .value(var value)):
      let isFirst = if case .value = one { true } else { false }
      value.sql = isFirst ? choice(value.sql, "NULL") : choice("NULL", value.sql)
      value.guards = isFirst ? guards(value.guards, []) : guards([], value.guards)
      value.isOptional = true
      value.columnAlias = nil
      value.isPlainText = false
      return .value(value)
    case (.value(let one), .value(let two)) where one.kind == two.kind:
      return .value(
        SQLValue(
          sql: choice(one.sql, two.sql), kind: one.kind,
          isOptional: one.isOptional || two.isOptional, guards: guards(one.guards, two.guards),
          canBeNotANumber: one.canBeNotANumber || two.canBeNotANumber,
          isPlainText: one.isPlainText && two.isPlainText))
    case (.model(let one), .model(let two)):
      return .model(
        ModelTerm(
          entity: one.entity, key: choice(one.key, two.key),
          isOptional: one.isOptional || two.isOptional, guards: guards(one.guards, two.guards),
          scope: one.alias == nil ? one.scope : two.scope))
    default: throw lowering.unsupported(self)
    }
  }
}

extension PredicateExpressions.NestedEvaluation: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    guard let body else { throw lowering.unsupported(self, "\(NestedPredicateError.notConstant)") }
    return try lowering.with(body.variable.key, lowering.term(input)) {
      try lowering.term(body.expression)
    }
  }
}

extension PredicateExpressions.Equal: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    guard let value = try lowering.equality(lowering.term(lhs), lowering.term(rhs)) else {
      throw lowering.unsupported(self)
    }
    return .value(value)
  }
}

extension PredicateExpressions.NotEqual: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    guard var value = try lowering.equality(lowering.term(lhs), lowering.term(rhs)) else {
      throw lowering.unsupported(self)
    }
    value.sql = "(NOT \(value.sql))"
    return .value(value)
  }
}

extension PredicateExpressions.Comparison: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let (left, right) = (try lowering.value(lhs), try lowering.value(rhs))
    let sign =
      switch op {
      case .lessThan: "<"
      case .lessThanOrEqual: "<="
      case .greaterThan: ">"
      case .greaterThanOrEqual: ">="
      }
    guard let value = lowering.comparison(left, sign, right) else {
      throw lowering.unsupported(self)
    }
    return .value(value)
  }
}

extension PredicateLowering {
  /// Returns `==` with Swift's meaning; `nil` if SQL cannot compare the two.
  func equality(_ left: PredicateTerm, _ right: PredicateTerm) throws -> SQLValue? {
    switch (left, right) {
    case (.nil, .nil): return .condition("1")
    case (.nil, .value(let value)), (.value(let value), .nil):
      return .condition("(\(value.sql) IS NULL)", guards: value.guards)
    case (.nil, .model(let model)), (.model(let model), .nil):
      return .condition("(\(model.key) IS NULL)", guards: model.guards)
    case (.nil, .members(let members)), (.members(let members), .nil):
      return .condition("0", guards: members.guards)
    case (.nil, .elements(let elements)), (.elements(let elements), .nil):
      return .condition("(\(elements.json) IS NULL)", guards: elements.guards)
    case (.nil, .composite(let composite)), (.composite(let composite), .nil):
      return .condition(
        composite.isOptional ? composite.nilCondition : "0", guards: composite.guards)
    case (.composite(let left), .composite(let right)): return equality(left, right)
    case (.model(let left), .model(let right)):
      guard left.entity.layout.root == right.entity.layout.root else { return nil }
      return .condition("(\(left.key) IS \(right.key))", guards: left.guards + right.guards)
    case (.value(let left), .value(let right)):
      let guards = left.guards + right.guards
      if case .identifier(let one) = left.kind, case .identifier(let two) = right.kind, one != two {
        return .condition("0", guards: guards)
      }
      guard left.kind == right.kind, left.kind != .json else { return nil }
      let collation =
        left.kind == .text && !left.isPlainText && !right.isPlainText
        ? " COLLATE \(PredicateFunctions.textCollation)" : ""
      if left.isOptional || right.isOptional {
        return .condition("(\(left.sql)\(collation) IS \(right.sql))", guards: guards)
      }
      let sql = "(\(left.sql)\(collation) = \(right.sql))"
      return .condition(
        left.canBeNotANumber || right.canBeNotANumber ? "IFNULL(\(sql), 0)" : sql, guards: guards)
    default: return nil
    }
  }

  /// Compares two composites by their columns; `nil` if SQL cannot compare one of them.
  private func equality(_ left: CompositeTerm, _ right: CompositeTerm) -> SQLValue? {
    guard left.leaves.count == right.leaves.count else { return nil }
    var conditions: [String] = []
    for (one, two) in zip(left.leaves, right.leaves) {
      guard one.kind == two.kind, one.kind != .json else { return nil }
      let collation = one.kind == .text ? " COLLATE \(PredicateFunctions.textCollation)" : ""
      conditions.append("\(one.sql)\(collation) IS \(two.sql)")
    }
    return .condition(
      "(\(conditions.joined(separator: " AND ")))", guards: left.guards + right.guards)
  }

  /// Returns `<` or another order comparison; `nil` if SQL has no such order.
  func comparison(_ left: SQLValue, _ sign: String, _ right: SQLValue) -> SQLValue? {
    guard left.kind == right.kind else { return nil }
    let sql: String
    switch left.kind {
    case .text:
      sql = "(\(left.sql) COLLATE \(PredicateFunctions.textCollation) \(sign) \(right.sql))"
    case .unsigned:
      // The upper half of the values is stored as negative numbers, in the same order, and comes after the lower half.
      sql = "((\(left.sql) < 0, \(left.sql)) \(sign) (\(right.sql) < 0, \(right.sql)))"
    case .integer, .real, .float, .decimal, .date, .blob, .comparisonResult:
      sql = "(\(left.sql) \(sign) \(right.sql))"
    case .bool, .url, .json, .identifier: return nil
    }
    return .condition(
      left.canBeNotANumber || right.canBeNotANumber ? "IFNULL(\(sql), 0)" : sql,
      guards: left.guards + right.guards)
  }
}
