import SwiftOperators
public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `#Predicate` of a model: expands to Foundation's macro, which on Linux does not support predicates and expressions
/// within predicates.
///
/// This macro rewrites `other.evaluate(note)` to `other.contains(note)`, which Foundation's macro turns into a call of
/// `build_contains`. The SDK has overloads of that function for predicates and expressions. Two and three inputs become
/// other calls that Foundation's macro knows.
///
/// Foundation's macro makes one expression of a whole predicate. The type checker needs seconds for one with ten
/// conditions, and refuses one with more than five calls of other predicates. So this macro makes a predicate of each
/// operand of `&&` and `||` in such an expression, and a list of these.
public struct PredicateMacro: ExpressionMacro {
  /// The type checker needs a moment for this many conditions, and several times as long for each further one.
  private static let conditionLimit = 3

  public static func expansion(
    of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
  ) throws -> ExprSyntax {
    let types = node.genericArgumentClause?.trimmedDescription ?? ""
    guard
      let body = node.trailingClosure ?? node.arguments.first?.expression.as(ClosureExprSyntax.self)
    else { return "#_FoundationPredicate\(raw: types)(\(node.arguments.trimmed))" }
    // Foundation's macro reports an expression whose operators cannot be ordered.
    guard body.takesOneInput, body.statements.count == 1,
      case .expr(let whole)? = body.statements.first?.item,
      let ordered = try? OperatorTable.standardOperators.foldAll(whole).as(ExprSyntax.self)
    else { return ExprSyntax("\(raw: predicate(body, types))") }
    return ExprSyntax("\(raw: predicate(of: ordered, in: body, types) ?? predicate(body, types))")
  }

  private static func predicate(_ body: ClosureExprSyntax, _ types: String) -> String {
    let rewritten = EvaluationRewriter().visit(body)
    return "#_FoundationPredicate\(types) \(rewritten.trimmedDescription)"
  }

  /// Returns a list of the predicates of the operands; `nil` if the type checker can do the expression as a whole.
  private static func predicate(
    of expression: ExprSyntax, in body: ClosureExprSyntax, _ types: String
  ) -> String? {
    if let inner = expression.parenthesized { return predicate(of: inner, in: body, types) }
    let rewriter = EvaluationRewriter()
    _ = rewriter.rewrite(expression)
    guard rewriter.count > 1 || expression.conditionCount > conditionLimit else { return nil }
    for (sign, name) in [("&&", "all"), ("||", "any")] {
      let operands = expression.operands(of: sign)
      guard operands.count > 1 else { continue }
      let predicates = operands.map { operand in
        predicate(of: operand, in: body, types) ?? predicate(body.with(only: operand), types)
      }
      return "InstarModel._PredicateJunction.\(name)([\n\(predicates.joined(separator: ",\n"))\n])"
    }
    return nil
  }
}

extension ClosureExprSyntax {
  /// Whether the closure has one parameter, as a predicate in a list has.
  fileprivate var takesOneInput: Bool {
    switch signature?.parameterClause {
    case .simpleInput(let names): names.count == 1
    case .parameterClause(let clause): clause.parameters.count == 1
    case nil: statements.numberedInputs.isSubset(of: [0])
    }
  }

  /// The closure with one expression of it as its only statement.
  fileprivate func with(only expression: ExprSyntax) -> ClosureExprSyntax {
    let closure = with(\.statements, expression.asStatement)
    guard signature == nil, expression.numberedInputs.isEmpty else { return closure }
    // Swift refuses a closure that leaves out its input without `_ in`. Only the whole predicate has the input.
    let ignoredInput = ClosureShorthandParameterSyntax(name: .wildcardToken())
    return closure.with(
      \.signature,
      ClosureSignatureSyntax(
        parameterClause: .simpleInput([ignoredInput]),
        inKeyword: .keyword(.in, leadingTrivia: .space)))
  }
}

extension SyntaxProtocol {
  /// The numbers of the inputs that it uses as `$0`, `$1` and so on. Those in a closure within it are that closure's.
  fileprivate var numberedInputs: Set<Int> {
    if self.is(ClosureExprSyntax.self) { return [] }
    if let token = self.as(TokenSyntax.self), case .dollarIdentifier(let name) = token.tokenKind {
      return Int(name.dropFirst()).map { [$0] } ?? []
    }
    return children(viewMode: .sourceAccurate).reduce(into: []) { $0.formUnion($1.numberedInputs) }
  }
}

extension ExprSyntax {
  /// The expression in parentheses; `nil` for any other.
  fileprivate var parenthesized: ExprSyntax? {
    guard let tuple = self.as(TupleExprSyntax.self), tuple.elements.count == 1 else { return nil }
    return tuple.elements.first?.expression
  }

  /// The operands of a chain such as `a && b && c`; only the expression itself if it is not such a chain.
  fileprivate func operands(of sign: String) -> [ExprSyntax] {
    guard let infix = self.as(InfixOperatorExprSyntax.self),
      infix.operator.trimmedDescription == sign
    else { return [self] }
    return infix.leftOperand.operands(of: sign) + infix.rightOperand.operands(of: sign)
  }

  /// The number of operands of all `&&` and `||` that hold the expression together.
  fileprivate var conditionCount: Int {
    if let inner = parenthesized { return inner.conditionCount }
    for sign in ["&&", "||"] {
      let operands = operands(of: sign)
      if operands.count > 1 { return operands.map(\.conditionCount).reduce(0, +) }
    }
    return 1
  }

  /// The expression as the only statement of a closure.
  fileprivate var asStatement: CodeBlockItemListSyntax {
    [CodeBlockItemSyntax(leadingTrivia: .space, item: .expr(trimmed), trailingTrivia: .space)]
  }
}

/// Writes `evaluate` with one to three inputs as calls that Foundation's macro knows:
///
///     a.evaluate(x)          a.contains(x)
///     a.evaluate(x, y)       a[x, default: y]
///     a.evaluate(x, y, z)    a.starts(with: x)[y, default: z]
private final class EvaluationRewriter: SyntaxRewriter {
  /// The number of rewritten calls.
  private(set) var count = 0

  override func visit(_ call: FunctionCallExprSyntax) -> ExprSyntax {
    let call = super.visit(call)
    guard let evaluation = call.as(FunctionCallExprSyntax.self),
      let callee = evaluation.calledExpression.as(MemberAccessExprSyntax.self),
      callee.declName.baseName.text == "evaluate", let rule = callee.base,
      evaluation.arguments.allSatisfy({ $0.label == nil }), evaluation.trailingClosure == nil
    else { return call }
    let inputs = evaluation.arguments.map(\.expression.trimmed)
    let rewritten: ExprSyntax
    switch inputs.count {
    case 1: rewritten = "\(rule).contains(\(inputs[0]))"
    case 2: rewritten = "\(rule)[\(inputs[0]), default: \(inputs[1])]"
    case 3: rewritten = "\(rule).starts(with: \(inputs[0]))[\(inputs[1]), default: \(inputs[2])]"
    default: return call
    }
    count += 1
    return rewritten.with(\.trailingTrivia, call.trailingTrivia)
  }
}
