import Foundation

/// A token that a predicate asks for later transactions of.
struct TokenBound {
  let token: DefaultHistoryToken
  /// Whether the predicate asks for the token's own transaction too.
  let isInclusive: Bool
}

extension Predicate {
  /// The tokens after which the matching transactions are.
  var lowerBounds: [TokenBound] { (expression as? any BoundedExpression)?.lowerBounds ?? [] }

  /// Whether the predicate reads the changes of a transaction. Without them a transaction is cheaper to read.
  var dependsOnChanges: Bool { TokenBound.mentionsChanges(expression) }
}

extension TokenBound {
  fileprivate static func mentionsChanges(_ part: Any) -> Bool {
    if let keyPath = part as? AnyKeyPath { return keyPath == \DefaultHistoryTransaction.changes }
    guard part is any PredicateExpression else { return false }
    return Mirror(reflecting: part).children.contains { mentionsChanges($0.value) }
  }
}

/// An expression of which tokens may be lower bounds.
private protocol BoundedExpression {
  var lowerBounds: [TokenBound] { get }
}

extension PredicateExpressions.Conjunction: BoundedExpression {
  fileprivate var lowerBounds: [TokenBound] {
    ((lhs as? any BoundedExpression)?.lowerBounds ?? [])
      + ((rhs as? any BoundedExpression)?.lowerBounds ?? [])
  }
}

extension PredicateExpressions.Comparison: BoundedExpression
where LHS.Output == DefaultHistoryToken, RHS.Output == DefaultHistoryToken {
  fileprivate var lowerBounds: [TokenBound] {
    typealias Value = PredicateExpressions.Value<DefaultHistoryToken>
    if let token = (rhs as? Value)?.value {
      switch op {
      case .greaterThan: return [TokenBound(token: token, isInclusive: false)]
      case .greaterThanOrEqual: return [TokenBound(token: token, isInclusive: true)]
      default: return []
      }
    }
    if let token = (lhs as? Value)?.value {
      switch op {
      case .lessThan: return [TokenBound(token: token, isInclusive: false)]
      case .lessThanOrEqual: return [TokenBound(token: token, isInclusive: true)]
      default: return []
      }
    }
    return []
  }
}
