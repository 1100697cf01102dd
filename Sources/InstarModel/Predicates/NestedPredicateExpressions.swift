public import Foundation

// Predicates made of predicates. Foundation's `#Predicate` has them on Apple's platforms only; here the SDK's macro writes
// them as `predicate.contains(input)`, for which Foundation's asks for these functions.

#if !canImport(Darwin)
  extension PredicateExpressions {
    /// `predicate.evaluate(input)`: whether another predicate is true.
    public struct PredicateEvaluate<Input: PredicateExpression>: PredicateExpression {
      public typealias Output = Bool
      /// `nil` where it is no constant, but depends on what the outer predicate is asked about.
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
      // A predicate that code refers to has its value already.
      PredicateEvaluate(predicate: try? predicate.evaluate(PredicateBindings()), input: input)
    }
  }

  extension Predicate {
    /// What `evaluate(_:)` of another predicate is written as within `#Predicate`. Not to be called: it cannot throw what
    /// `evaluate(_:)` does.
    public func contains(_ input: repeat each Input) -> Bool {
      (try? evaluate(repeat each input)) ?? false
    }
  }

  extension PredicateExpressions.PredicateEvaluate: Sendable where Input: Sendable {}
  /// Foundation on Linux has no coding of predicates, but asks every part of one to be Codable.
  extension PredicateExpressions.PredicateEvaluate: Codable where Input: Codable {
    public init(from decoder: any Decoder) throws { throw NestedPredicateError.notCodable }
    public func encode(to encoder: any Encoder) throws { throw NestedPredicateError.notCodable }
  }
  extension PredicateExpressions.PredicateEvaluate: StandardPredicateExpression
  where Input: StandardPredicateExpression {}

  /// What cannot be done with a predicate within a predicate.
  enum NestedPredicateError: Error, CustomStringConvertible {
    case notConstant
    case notCodable

    var description: String {
      switch self {
      case .notConstant: "which predicate is meant depends on the row"
      case .notCodable: "predicates cannot be encoded on Linux"
      }
    }
  }
#endif
