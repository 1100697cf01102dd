import Foundation
import InstarStore

// Text, compared by the functions with which Foundation evaluates predicates.

extension PredicateExpressions.CollectionContainsCollection: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .value(
      try lowering.function(
        PredicateFunctions.contains, lowering.text(base), lowering.text(other), .bool))
  }
}

extension PredicateExpressions.SequenceStartsWith: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .value(
      try lowering.function(
        PredicateFunctions.startsWith, lowering.text(base), lowering.text(prefix), .bool))
  }
}

extension PredicateExpressions.StringLocalizedStandardContains: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .value(
      try lowering.function(
        PredicateFunctions.localizedContains, lowering.text(root), lowering.text(other), .bool))
  }
}

extension PredicateExpressions.StringCaseInsensitiveCompare: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .value(
      try lowering.function(
        PredicateFunctions.caseInsensitiveCompare, lowering.text(root), lowering.text(other),
        .comparisonResult))
  }
}

extension PredicateExpressions.StringLocalizedCompare: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    .value(
      try lowering.function(
        PredicateFunctions.localizedCompare, lowering.text(root), lowering.text(other),
        .comparisonResult))
  }
}

extension PredicateLowering {
  func function(
    _ name: String, _ one: SQLValue, _ two: SQLValue, _ kind: SQLValue.Kind
  ) -> SQLValue {
    SQLValue(sql: "\(name)(\(one.sql), \(two.sql))", kind: kind, guards: one.guards + two.guards)
  }
}
