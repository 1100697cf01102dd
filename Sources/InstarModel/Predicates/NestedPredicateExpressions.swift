public import Foundation

// Predicates and expressions within predicates, which Foundation's `#Predicate` supports on Apple's platforms only. The
// SDK's macro writes them as `predicate.contains(input)`, and Foundation's macro expands that to calls of these
// functions.

#if !canImport(Darwin)
  extension PredicateExpressions {
    /// `predicate.evaluate(input)` or `expression.evaluate(input)`.
    public struct NestedEvaluation<Input: PredicateExpression, Output>: PredicateExpression {
      struct Body {
        let variable: Variable<Input.Output>
        let expression: any StandardPredicateExpression<Output>
      }

      /// `nil` if it depends on the input of the outer predicate.
      let body: Body?
      let input: Input

      /// Evaluates the inner predicate with the outer one's input.
      ///
      /// - Throws: Where the inner predicate depends on that input itself; errors of the evaluation.
      public func evaluate(_ bindings: PredicateBindings) throws -> Output {
        guard let body else { throw NestedPredicateError.notConstant }
        var inner = bindings
        inner[body.variable] = try input.evaluate(bindings)
        return try body.expression.evaluate(inner)
      }
    }

    /// The form of `predicate.evaluate(input)` that Foundation's macro writes.
    public static func build_contains<Condition: PredicateExpression, Input>(
      _ predicate: Condition, _ input: Input
    ) -> NestedEvaluation<Input, Bool> where Condition.Output == Predicate<Input.Output> {
      // A captured predicate already has its value. One that depends on a row has none here.
      let captured = try? predicate.evaluate(PredicateBindings())
      return NestedEvaluation(
        body: captured.map { .init(variable: $0.variable, expression: $0.expression) },
        input: input)
    }

    /// The form of `expression.evaluate(input)` that Foundation's macro writes.
    public static func build_contains<Captured: PredicateExpression, Input, Output>(
      _ expression: Captured, _ input: Input
    ) -> NestedEvaluation<Input, Output>
    where Captured.Output == Expression<Input.Output, Output> {
      let captured = try? expression.evaluate(PredicateBindings())
      return NestedEvaluation(
        body: captured.map { .init(variable: $0.variable, expression: $0.expression) },
        input: input)
    }
  }

  extension Predicate {
    /// The form of `evaluate(_:)` within `#Predicate`, which the macro writes. Do not call it: it returns false where
    /// `evaluate(_:)` throws.
    public func contains(_ input: repeat each Input) -> Bool {
      (try? evaluate(repeat each input)) ?? false
    }
  }

  extension Expression {
    /// The form of `evaluate(_:)` within `#Predicate`, which the macro writes.
    public func contains(_ input: repeat each Input) throws -> Output {
      try evaluate(repeat each input)
    }
  }

  /// Predicates that `#Predicate` makes of the operands of `&&` and `||`.
  public enum _PredicateJunction {
    /// Returns a predicate that is true if all are, as with `&&`.
    public static func all<Model: PersistentModel>(
      _ predicates: [Predicate<Model>]
    ) -> Predicate<Model> {
      joined(predicates) { PredicateExpressions.build_Conjunction(lhs: $0, rhs: $1) }
    }

    /// Returns a predicate that is true if one of them is, as with `||`.
    public static func any<Model: PersistentModel>(
      _ predicates: [Predicate<Model>]
    ) -> Predicate<Model> {
      joined(predicates) { PredicateExpressions.build_Disjunction(lhs: $0, rhs: $1) }
    }

    private typealias Evaluation<Model> = PredicateExpressions.NestedEvaluation<
      PredicateExpressions.Variable<Model>, Bool
    >

    private static func joined<Model, Junction: StandardPredicateExpression<Bool>>(
      _ predicates: [Predicate<Model>],
      _ join: (Evaluation<Model>, Evaluation<Model>) -> Junction
    ) -> Predicate<Model> {
      predicates.dropFirst().reduce(predicates[0]) { first, second in
        Predicate { model in
          join(
            PredicateExpressions.build_contains(PredicateExpressions.build_Arg(first), model),
            PredicateExpressions.build_contains(PredicateExpressions.build_Arg(second), model))
        }
      }
    }
  }

  extension PredicateExpressions.NestedEvaluation.Body: Sendable {}
  extension PredicateExpressions.NestedEvaluation: Sendable where Input: Sendable {}
  /// Foundation on Linux cannot encode predicates, but requires every part of one to be Codable.
  extension PredicateExpressions.NestedEvaluation: Codable where Input: Codable {
    /// Always throws: Foundation on Linux cannot encode predicates.
    public init(from decoder: any Decoder) throws { throw NestedPredicateError.notCodable }
    /// Always throws: Foundation on Linux cannot encode predicates.
    public func encode(to encoder: any Encoder) throws { throw NestedPredicateError.notCodable }
  }
  extension PredicateExpressions.NestedEvaluation: StandardPredicateExpression
  where Input: StandardPredicateExpression {}

  /// Errors of predicates within predicates.
  enum NestedPredicateError: String, Error, CustomStringConvertible {
    case notConstant = "the inner predicate depends on the row"
    case notCodable = "predicates cannot be encoded on Linux"

    var description: String { rawValue }
  }
#endif
