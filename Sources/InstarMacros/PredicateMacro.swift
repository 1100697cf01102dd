public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `#Predicate` of a model: expands to Foundation's macro, which on Linux does not support predicates within
/// predicates.
///
/// This macro rewrites `other.evaluate(note)` to `other.contains(note)`, which Foundation's macro turns into a call of
/// `build_contains`. The SDK has an overload of that function for predicates.
public struct PredicateMacro: ExpressionMacro {
  public static func expansion(
    of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
  ) throws -> ExprSyntax {
    let types = node.genericArgumentClause?.trimmedDescription ?? ""
    if let body = node.trailingClosure {
      return "#_FoundationPredicate\(raw: types) \(EvaluationRewriter().visit(body).trimmed)"
    }
    let arguments = EvaluationRewriter().visit(node.arguments)
    return "#_FoundationPredicate\(raw: types)(\(arguments.trimmed))"
  }
}

/// `a.evaluate(b)` becomes `a.contains(b)`.
private final class EvaluationRewriter: SyntaxRewriter {
  override func visit(_ call: FunctionCallExprSyntax) -> ExprSyntax {
    let call = super.visit(call)
    guard var call = call.as(FunctionCallExprSyntax.self),
      var callee = call.calledExpression.as(MemberAccessExprSyntax.self),
      callee.declName.baseName.text == "evaluate", callee.base != nil,
      call.arguments.count == 1, call.arguments.first?.label == nil, call.trailingClosure == nil
    else { return call }
    callee.declName.baseName = .identifier("contains")
    call.calledExpression = ExprSyntax(callee)
    return ExprSyntax(call)
  }
}
