import SwiftDiagnostics
public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `@Model`: makes a class a persistent model.
///
/// Adds the storage and its description as members, `@_PersistedProperty` to each property that is
/// stored with the model, and the conformance to `PersistentModel`. Each problem is reported by one
/// role; the others pass over what they cannot use.
public struct ModelMacro {}

extension ModelMacro: MemberMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard let classDeclaration = declaration.as(ClassDeclSyntax.self) else { return [] }
    let superclass = superclass(of: classDeclaration, conformingTo: protocols)
    let model = ModelDeclaration(classDeclaration, superclass: superclass)
    for diagnostic in model.diagnostics {
      context.diagnose(diagnostic)
    }

    let expansion = ModelExpansion(
      model: model, classDeclaration: classDeclaration, superclass: superclass,
      access: memberAccess(of: classDeclaration, in: context))
    return expansion.members
  }

  /// The model that the class inherits from, as it is written; `nil` where it inherits from none.
  ///
  /// Macros see no types, but the compiler says which conformances are still missing: a class that conforms to
  /// `PersistentModel` before `@Model` makes it so has that from its superclass, unless it says so itself.
  private static func superclass(
    of declaration: ClassDeclSyntax, conformingTo protocols: [TypeSyntax]
  ) -> String? {
    guard protocols.isEmpty, let inherited = declaration.inheritanceClause?.inheritedTypes,
      !inherited.contains(where: { $0.type.lastName == "PersistentModel" })
    else { return nil }
    return inherited.first?.type.trimmedDescription
  }

  /// What the requirements of `PersistentModel` need in front of them: the access of the class,
  /// which may come from the extension it stands in.
  private static func memberAccess(
    of declaration: ClassDeclSyntax, in context: some MacroExpansionContext
  ) -> String {
    let hasOwnAccess = declaration.modifiers.contains(
      .open, .public, .package, .internal, .fileprivate, .private)
    if !hasOwnAccess, let outer = context.lexicalContext.first?.as(ExtensionDeclSyntax.self) {
      return outer.modifiers.memberAccess
    }
    return declaration.modifiers.memberAccess
  }
}

extension ModelMacro: MemberAttributeMacro {
  public static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingAttributesFor member: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AttributeSyntax] {
    guard
      let classDeclaration = declaration.as(ClassDeclSyntax.self),
      let variable = member.as(VariableDeclSyntax.self),
      let slot = ModelDeclaration(classDeclaration).slot(of: variable)
    else { return [] }
    // Where the class may inherit from a model, its slots follow those of that model, and `_modelStorage` knows which storage
    // holds them.
    if classDeclaration.mayTakePartInInheritance {
      return [
        "@InstarModel._PersistedProperty(\(literal: slot), of: \(literal: classDeclaration.name.trimmedDescription))"
      ]
    }
    return ["@InstarModel._PersistedProperty(\(literal: slot))"]
  }
}

extension ModelMacro: ExtensionMacro {
  public static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    // Reported here, because the compiler asks for the members of an enum only if they are used.
    guard declaration.is(ClassDeclSyntax.self) else {
      context.diagnose(notAClass(declaration, node: node))
      return []
    }
    // Without protocols the class conforms already, and says so itself.
    guard !protocols.isEmpty else { return [] }
    // In a module that isolates everything to the main actor by default, extensions too are isolated, and what they
    // conform to with them.
    return [
      try ExtensionDeclSyntax(
        "nonisolated extension \(type.trimmed): InstarModel.PersistentModel {}")
    ]
  }

  private static func notAClass(
    _ declaration: some DeclGroupSyntax, node: AttributeSyntax
  ) -> Diagnostic {
    if let declaration = declaration.as(StructDeclSyntax.self) {
      notAClass(keyword: declaration.structKeyword, name: declaration.name, isConvertible: true)
    } else if let declaration = declaration.as(ActorDeclSyntax.self) {
      notAClass(keyword: declaration.actorKeyword, name: declaration.name, isConvertible: true)
    } else if let declaration = declaration.as(EnumDeclSyntax.self) {
      notAClass(keyword: declaration.enumKeyword, name: declaration.name, isConvertible: false)
    } else {
      Diagnostic(node: node, message: Problem.modelOnOtherDeclaration)
    }
  }

  private static func notAClass(
    keyword: TokenSyntax, name: TokenSyntax, isConvertible: Bool
  ) -> Diagnostic {
    Diagnostic(
      node: keyword, message: Problem.notAClass(kind: keyword.text, name: name.text),
      fixIts: isConvertible
        ? [.replaceText(of: keyword, with: "final class", message: .makeFinalClass)] : [])
  }
}
