public import Foundation

// Predicates within predicates, which Foundation's `#Predicate` supports on Apple's platforms only. The SDK's macro
// writes them as `predicate.contains(input)`, and Foundation's macro expands that to calls of these functions.

#if !canImport(Darwin)
  extension PredicateExpressions {
    /// `predicate.evaluate(input)`: the result of another predicate.
    public struct PredicateEvaluate<Input: PredicateExpression>: PredicateExpression {
      public typealias Output = Bool
      /// `nil` if it depends on the input of the outer predicate.
      let predicate: Predicate<Input.Output>?
      let input: Input

      init(predicate: Predicate<Input.Output>?, input: Input) {
        self.predicate = predicate
        self.input = input
      }

      public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
        guard let predicate else { throw NestedPredicateError.notConstant }
        return try predicate.evaluate(input.evaluate(bindings))
      }
    }

    public static func build_contains<Condition: PredicateExpression, Input>(
      _ predicate: Condition, _ input: Input
    ) -> PredicateEvaluate<Input> where Condition.Output == Predicate<Input.Output> {
      // A captured predicate already has its value.
      PredicateEvaluate(predicate: try? predicate.evaluate(PredicateBindings()), input: input)
    }
  }

  extension Predicate {
    /// What `evaluate(_:)` of another predicate is written as within `#Predicate`. Not to be called: it cannot throw
    /// what `evaluate(_:)` does.
    public func contains(_ input: repeat each Input) -> Bool {
      (try? evaluate(repeat each input)) ?? false
    }
  }

  extension PredicateExpressions.PredicateEvaluate: Sendable where Input: Sendable {}
  /// Foundation on Linux cannot encode predicates, but requires every part of one to be Codable.
  extension PredicateExpressions.PredicateEvaluate: Codable where Input: Codable {
    public init(from decoder: any Decoder) throws { throw NestedPredicateError.notCodable }
    public func encode(to encoder: any Encoder) throws { throw NestedPredicateError.notCodable }
  }
  extension PredicateExpressions.PredicateEvaluate: StandardPredicateExpression
  where Input: StandardPredicateExpression {}

  /// Errors of predicates within predicates.
  enum NestedPredicateError: Error, CustomStringConvertible {
    case notConstant
    case notCodable

    var description: String {
      switch self {
      case .notConstant: "the inner predicate depends on the row"
      case .notCodable: "predicates cannot be encoded on Linux"
      }
    }
  }
#endif
