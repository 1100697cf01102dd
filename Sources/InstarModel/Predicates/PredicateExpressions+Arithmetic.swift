import Foundation
import InstarStore

// Arithmetic on signed integers and floating point numbers. Decimals are exact in Swift but not in SQLite, and unsigned
// 64-bit numbers do not fit its integers, so both are refused.

extension PredicateExpressions.Arithmetic: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let sign =
      switch op {
      case .add: "+"
      case .subtract: "-"
      case .multiply: "*"
      }
    return try lowering.arithmetic(self, lhs, rhs) { "(\($0) \(sign) \($1))" }
  }
}

extension PredicateExpressions.IntDivision: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.arithmetic(self, lhs, rhs) { "(\($0) / \($1))" }
  }
}

extension PredicateExpressions.IntRemainder: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.arithmetic(self, lhs, rhs) { "(\($0) % \($1))" }
  }
}

extension PredicateExpressions.FloatDivision: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    // A division by zero is NULL in SQLite and infinity in Swift.
    try lowering.arithmetic(self, lhs, rhs) { "\(PredicateFunctions.divide)(\($0), \($1))" }
  }
}

extension PredicateExpressions.UnaryMinus: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.arithmetic(self, wrapped, wrapped) { operand, _ in "(-\(operand))" }
  }
}

extension PredicateLowering {
  fileprivate func arithmetic(
    _ expression: some Any, _ lhs: some PredicateExpression, _ rhs: some PredicateExpression,
    _ sql: (String, String) -> String
  ) throws -> PredicateTerm {
    let (left, right) = (try value(lhs), try value(rhs))
    var result = SQLValue(
      sql: sql(left.sql, right.sql), kind: left.kind, guards: left.guards + right.guards)
    guard left.kind == right.kind else { throw unsupported(expression) }
    switch left.kind {
    case .integer: break
    case .real: result.canBeNotANumber = true
    case .float:
      // Rounded after each step, like Float.
      result.sql = "\(PredicateFunctions.float)(\(result.sql))"
      result.canBeNotANumber = true
    default: throw unsupported(expression, "SQLite would compute something else")
    }
    return .value(result)
  }
}
