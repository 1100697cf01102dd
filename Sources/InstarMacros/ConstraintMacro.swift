import SwiftDiagnostics
public import SwiftSyntax
public import SwiftSyntaxMacros

/// `#Unique` and `#Index` in the body of a model.
///
/// They expand to nothing, because `@Model` reads their paths. Their own expansion only warns where they have no
/// effect.
public struct ConstraintMacro: DeclarationMacro {
  public static func expansion(
    of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    let name = node.macroName.text
    guard let model = context.lexicalContext.first?.as(ClassDeclSyntax.self),
      model.attributes.contains(named: "Model")
    else {
      context.report(Diagnostic(node: node, message: Problem.constraintOutsideModel(macro: name)))
      return []
    }
    guard let named = ConstraintDeclaration.model(of: node), named.lastName != model.name.text
    else {
      return []
    }
    context.report(
      Diagnostic(
        node: named,
        message: Problem.constraintOfOtherModel(
          macro: name, named: named.trimmedDescription, model: model.name.text),
        fixIt: .replaceText(
          of: named, with: model.name.text, message: .nameModel(model.name.text))))
    return []
  }
}

/// The syntax of a `#Unique` or `#Index` in the body of a model.
struct ConstraintDeclaration {
  enum Kind: String {
    case unique = "Unique"
    case index = "Index"
  }

  let kind: Kind
  /// The errors of the declaration.
  let diagnostics: [Diagnostic]
  /// Each group of paths as written: `[\\.a, \\.b]`.
  let groups: [String]
  /// Each `.named("byTitle", [\\.title])`, as written.
  let namedGroups: [String]

  /// Returns `nil` for every other member.
  ///
  /// - Parameter model: The class around the declaration.
  init?(_ member: MemberBlockItemSyntax, model: String) {
    guard let node = member.decl.as(MacroExpansionDeclSyntax.self),
      let kind = Kind(rawValue: node.macroName.text)
    else { return nil }
    self.kind = kind
    namedGroups = node.arguments.compactMap { argument in
      guard let call = argument.expression.as(FunctionCallExprSyntax.self),
        let form = call.calledExpression.as(MemberAccessExprSyntax.self),
        form.declName.baseName.text == "named"
      else { return nil }
      return call.trimmedDescription
    }
    // Without a type the compiler only reports that it cannot infer 'T', and does not expand the macro. A path with a
    // root, such as `\Note.uid`, has the type.
    diagnostics =
      node.genericArgumentClause != nil
        || node.arguments.contains(where: \.expression.hasRootedPath)
      ? []
      : [
        Diagnostic(
          node: node, message: Problem.constraintWithoutModel(macro: kind.rawValue, model: model),
          fixIt: .insert("<\(model)>", after: node.macroName, message: .nameModel(model)))
      ]
    groups = node.arguments.compactMap { argument in
      if let paths = argument.expression.as(ArrayExprSyntax.self) {
        return paths.elements.isEmpty ? nil : paths.trimmedDescription
      }
      // `.binary([…])` is an ordinary index. The format has no counterpart of `.rtree([…])`, so it is ignored.
      guard let call = argument.expression.as(FunctionCallExprSyntax.self),
        let form = call.calledExpression.as(MemberAccessExprSyntax.self),
        form.declName.baseName.text == "binary"
      else { return nil }
      return call.arguments.first?.expression.trimmedDescription
    }
  }

  /// The type in `#Unique<Note>(…)`.
  static func model(of node: some FreestandingMacroExpansionSyntax) -> TypeSyntax? {
    guard case .type(let type) = node.genericArgumentClause?.arguments.first?.argument else {
      return nil
    }
    return type
  }
}

extension ExprSyntax {
  /// Whether a key path in the expression has a root type.
  fileprivate var hasRootedPath: Bool {
    if let path = self.as(KeyPathExprSyntax.self) { return path.root != nil }
    if let paths = self.as(ArrayExprSyntax.self) {
      return paths.elements.contains(where: \.expression.hasRootedPath)
    }
    return self.as(FunctionCallExprSyntax.self)?.arguments
      .contains(where: \.expression.hasRootedPath) == true
  }
}

extension TypeSyntax {
  /// `Note` for `NotesSchemaV1.Note`.
  var lastName: String {
    if let member = self.as(MemberTypeSyntax.self) { return member.name.text }
    return self.as(IdentifierTypeSyntax.self)?.name.text ?? trimmedDescription
  }
}
