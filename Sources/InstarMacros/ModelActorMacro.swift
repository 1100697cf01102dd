import SwiftDiagnostics
public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `@ModelActor`: adds a container, an executor with a context, and an initializer to an actor.
public struct ModelActorMacro {}

extension ModelActorMacro: MemberMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard declaration.is(ActorDeclSyntax.self) else {
      context.report(notAnActor(declaration, node: node))
      return []
    }
    let access = declaration.modifiers.memberAccess
    let properties: [DeclSyntax] = [
      "nonisolated \(raw: access)let modelExecutor: any InstarModel.ModelExecutor",
      "nonisolated \(raw: access)let modelContainer: InstarModel.ModelContainer",
    ]
    guard !leavesInitializer(node), !declaration.memberBlock.members.contains(where: \.isModelInit)
    else { return properties }
    return properties + [
      """
      \(raw: access)init(modelContainer: InstarModel.ModelContainer) {
        let modelContext = InstarModel.ModelContext(modelContainer)
        self.modelExecutor = InstarModel.DefaultSerialModelExecutor(modelContext: modelContext)
        self.modelContainer = modelContainer
      }
      """
    ]
  }

  /// Whether the argument `disableGenerateInit: true` is present.
  private static func leavesInitializer(_ node: AttributeSyntax) -> Bool {
    guard case .argumentList(let arguments) = node.arguments else { return false }
    return arguments.contains {
      $0.label?.text == "disableGenerateInit" && $0.expression.trimmedDescription == "true"
    }
  }

  private static func notAnActor(
    _ declaration: some DeclGroupSyntax, node: AttributeSyntax
  ) -> Diagnostic {
    let keyword =
      declaration.as(ClassDeclSyntax.self)?.classKeyword
      ?? declaration.as(StructDeclSyntax.self)?.structKeyword
    guard let keyword else { return Diagnostic(node: node, message: Problem.notAnActor) }
    return Diagnostic(
      node: keyword, message: Problem.notAnActor,
      fixIt: .replaceText(of: keyword, with: "actor", message: .makeActor))
  }
}

extension ModelActorMacro: ExtensionMacro {
  public static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard declaration.is(ActorDeclSyntax.self), !protocols.isEmpty else { return [] }
    return [try ExtensionDeclSyntax("extension \(type.trimmed): InstarModel.ModelActor {}")]
  }
}

extension MemberBlockItemSyntax {
  /// Whether the member is `init(modelContainer:)`. The macro then does not add one.
  fileprivate var isModelInit: Bool {
    decl.as(InitializerDeclSyntax.self)?.signature.parameterClause.parameters
      .map(\.firstName.text) == ["modelContainer"]
  }
}
