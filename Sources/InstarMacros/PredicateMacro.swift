public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `#Predicate` over a model: Foundation's own, which on Linux does not know predicates within predicates.
///
/// `other.evaluate(note)` is handed to it as `other.contains(note)`, a call that it does know and that asks for a function
/// named `build_contains`; the SDK has one for predicates. All else is Foundation's.
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
