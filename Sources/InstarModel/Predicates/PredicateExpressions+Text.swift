import Foundation
import InstarStore

// Text, compared by the functions with which Foundation evaluates predicates.

extension PredicateExpressions.CollectionContainsCollection: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.textFunction(PredicateFunctions.contains, base, other)
  }
}

extension PredicateExpressions.SequenceStartsWith: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.textFunction(PredicateFunctions.startsWith, base, prefix)
  }
}

extension PredicateExpressions.StringFunctionCall: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    try lowering.textFunction(
      Function.sqlName, root, other, Function.Output.self == Bool.self ? .bool : .comparisonResult)
  }
}

extension PredicateLowering {
  fileprivate func textFunction(
    _ name: String, _ one: some PredicateExpression, _ two: some PredicateExpression,
    _ kind: SQLValue.Kind = .bool
  ) throws -> PredicateTerm {
    .value(function(name, try text(one), try text(two), kind))
  }

  func function(
    _ name: String, _ one: SQLValue, _ two: SQLValue, _ kind: SQLValue.Kind
  ) -> SQLValue {
    SQLValue(sql: "\(name)(\(one.sql), \(two.sql))", kind: kind, guards: one.guards + two.guards)
  }
}
