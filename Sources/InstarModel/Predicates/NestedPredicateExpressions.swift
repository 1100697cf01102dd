public import Foundation

// Predicates and expressions within predicates, which Foundation's `#Predicate` supports on Apple's platforms only. The
// SDK's macro writes `rule.evaluate(a)` in a form that Foundation's macro knows, one for each number of inputs. That
// macro expands it to calls of the functions here:
//
//     rule.contains(a)                     build_contains(rule, a)
//     rule[a, default: b]                  build_subscript(rule, a, default: b)
//     rule.starts(with: a)[b, default: c]  build_subscript(build_starts(rule, with: a), b, default: c)
//
// There are fixed overloads, because the compiler (6.3) crashes on the same with a parameter pack.

#if !canImport(Darwin)
  extension PredicateExpressions {
    /// `predicate.evaluate(input)` or `expression.evaluate(input)`.
    ///
    /// Of several inputs, this is the first. Its body is the evaluation with the others. Each binds one variable of the
    /// inner predicate.
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

    /// The form of `predicate.evaluate(first, second)` that Foundation's macro writes.
    public static func build_subscript<
      Condition: PredicateExpression, First, Second: StandardPredicateExpression
    >(
      _ predicate: Condition, _ first: First, default second: Second
    ) -> NestedEvaluation<First, Bool>
    where Condition.Output == Predicate<First.Output, Second.Output> {
      let captured = try? predicate.evaluate(PredicateBindings())
      return evaluation(captured?.variable, captured?.expression, first, second)
    }

    /// The form of `expression.evaluate(first, second)` that Foundation's macro writes.
    public static func build_subscript<
      Captured: PredicateExpression, First, Second: StandardPredicateExpression, Output
    >(
      _ expression: Captured, _ first: First, default second: Second
    ) -> NestedEvaluation<First, Output>
    where Captured.Output == Expression<First.Output, Second.Output, Output> {
      let captured = try? expression.evaluate(PredicateBindings())
      return evaluation(captured?.variable, captured?.expression, first, second)
    }

    /// A predicate or an expression of three inputs, and the first of them.
    public struct FirstInput<Captured: PredicateExpression, Input: PredicateExpression> {
      let captured: Captured
      let input: Input
    }

    /// The beginning of `expression.evaluate(first, second, third)` that Foundation's macro writes.
    public static func build_starts<Captured: PredicateExpression, First>(
      _ captured: Captured, with first: First
    ) -> FirstInput<Captured, First> {
      FirstInput(captured: captured, input: first)
    }

    /// The form of `predicate.evaluate(first, second, third)` that Foundation's macro writes.
    public static func build_subscript<
      Condition, First, Second: StandardPredicateExpression, Third: StandardPredicateExpression
    >(
      _ first: FirstInput<Condition, First>, _ second: Second, default third: Third
    ) -> NestedEvaluation<First, Bool>
    where Condition.Output == Predicate<First.Output, Second.Output, Third.Output> {
      let captured = try? first.captured.evaluate(PredicateBindings())
      return evaluation(captured?.variable, captured?.expression, first.input, second, third)
    }

    /// The form of `expression.evaluate(first, second, third)` that Foundation's macro writes.
    public static func build_subscript<
      Captured, First, Second: StandardPredicateExpression, Third: StandardPredicateExpression,
      Output
    >(
      _ first: FirstInput<Captured, First>, _ second: Second, default third: Third
    ) -> NestedEvaluation<First, Output>
    where Captured.Output == Expression<First.Output, Second.Output, Third.Output, Output> {
      let captured = try? first.captured.evaluate(PredicateBindings())
      return evaluation(captured?.variable, captured?.expression, first.input, second, third)
    }

    private static func evaluation<First, Second: StandardPredicateExpression, Output>(
      _ variables: (Variable<First.Output>, Variable<Second.Output>)?,
      _ expression: (any StandardPredicateExpression<Output>)?, _ first: First, _ second: Second
    ) -> NestedEvaluation<First, Output> {
      guard let (one, two) = variables, let expression else {
        return NestedEvaluation(body: nil, input: first)
      }
      let rest = NestedEvaluation(
        body: .init(variable: two, expression: expression), input: second)
      return NestedEvaluation(body: .init(variable: one, expression: rest), input: first)
    }

    private static func evaluation<
      First, Second: StandardPredicateExpression, Third: StandardPredicateExpression, Output
    >(
      _ variables: (Variable<First.Output>, Variable<Second.Output>, Variable<Third.Output>)?,
      _ expression: (any StandardPredicateExpression<Output>)?, _ first: First, _ second: Second,
      _ third: Third
    ) -> NestedEvaluation<First, Output> {
      guard let (one, two, three) = variables, let expression else {
        return NestedEvaluation(body: nil, input: first)
      }
      let rest = evaluation((two, three), expression, second, third)
      return NestedEvaluation(body: .init(variable: one, expression: rest), input: first)
    }
  }

  extension Predicate {
    /// The form of `evaluate(_:)` within `#Predicate`, which the macro writes. Do not call it: it returns false where
    /// `evaluate(_:)` throws.
    public func contains(_ input: repeat each Input) -> Bool {
      (try? evaluate(repeat each input)) ?? false
    }

    /// The form of `evaluate(_:_:)` within `#Predicate`, which the macro writes. Do not call it: it returns false.
    public subscript<First, Second>(_: First, default _: Second) -> Bool { false }

    /// The form of `evaluate(_:_:_:)` within `#Predicate`, which the macro writes. Do not call it.
    public func starts<First>(with first: First) -> _EvaluationWithThreeInputs<Bool> {
      _EvaluationWithThreeInputs()
    }
  }

  extension Expression {
    /// The form of `evaluate(_:)` within `#Predicate`, which the macro writes.
    public func contains(_ input: repeat each Input) throws -> Output {
      try evaluate(repeat each input)
    }

    /// The form of `evaluate(_:_:)` within `#Predicate`, which the macro writes. Do not call it: it throws.
    public subscript<First, Second>(_: First, default _: Second) -> Output {
      get throws { throw NestedPredicateError.outsidePredicate }
    }

    /// The form of `evaluate(_:_:_:)` within `#Predicate`, which the macro writes. Do not call it.
    public func starts<First>(with first: First) -> _EvaluationWithThreeInputs<Output> {
      _EvaluationWithThreeInputs()
    }
  }

  /// The beginning of `evaluate(_:_:_:)` within `#Predicate`, which the macro writes. Only the type checker uses it.
  public struct _EvaluationWithThreeInputs<Output> {
    /// The end of `evaluate(_:_:_:)`. Do not call it: it throws.
    public subscript<Second, Third>(_: Second, default _: Third) -> Output {
      get throws { throw NestedPredicateError.outsidePredicate }
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
    case outsidePredicate = "only '#Predicate' can use this form of 'evaluate'"
    case notCodable = "predicates cannot be encoded on Linux"

    var description: String { rawValue }
  }
#endif
