public import Foundation

// Predicates made of predicates. Foundation has them in `#Predicate` on Apple's platforms only; on Linux the macro asks for
// this function, and finds it here.

#if !canImport(Darwin)
  extension PredicateExpressions {
    /// `predicate.evaluate(input)`: whether another predicate, given as a constant, is true.
    public struct PredicateEvaluate<
      Condition: PredicateExpression, Input: PredicateExpression
    >: PredicateExpression where Condition.Output == Predicate<Input.Output> {
      public typealias Output = Bool
      public let predicate: Condition
      public let input: Input

      public init(predicate: Condition, input: Input) {
        self.predicate = predicate
        self.input = input
      }

      public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
        try predicate.evaluate(bindings).evaluate(input.evaluate(bindings))
      }
    }

    public static func build_evaluate<Condition, Input>(
      _ predicate: Condition, _ input: Input
    ) -> PredicateEvaluate<Condition, Input> {
      PredicateEvaluate(predicate: predicate, input: input)
    }
  }

  extension PredicateExpressions.PredicateEvaluate: Sendable
  where Condition: Sendable, Input: Sendable {}
  extension PredicateExpressions.PredicateEvaluate: Codable
  where Condition: Codable, Input: Codable {}
  extension PredicateExpressions.PredicateEvaluate: StandardPredicateExpression
  where Condition: StandardPredicateExpression, Input: StandardPredicateExpression {}
#endif
