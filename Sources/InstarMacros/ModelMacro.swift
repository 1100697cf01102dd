import SwiftDiagnostics
public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros
import Synchronization

/// `@Model`: makes a class a persistent model.
///
/// Adds the storage and its description as members, `@_PersistedProperty` to each persisted property, and the
/// conformance to `PersistentModel`. Only one role reports a problem; the others ignore what they cannot use.
public struct ModelMacro {
  /// The compiler reads the code as it is; laying it out takes a fifth of the time of the expansion.
  public static var formatMode: FormatMode { .disabled }
}

extension ModelMacro: MemberMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    declaration.as(ClassDeclSyntax.self).map {
      expansion(of: $0, conformingTo: protocols, in: context).members
    } ?? []
  }

  /// Returns the members of a class, and reports its problems.
  static func expansion(
    of classDeclaration: ClassDeclSyntax, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) -> ModelExpansion {
    let superclass = superclass(of: classDeclaration, conformingTo: protocols)
    let model = ModelDeclaration(classDeclaration, superclass: superclass, in: context)
    for diagnostic in model.diagnostics {
      context.report(diagnostic)
    }
    return ModelExpansion(
      model: model, classDeclaration: classDeclaration, superclass: superclass,
      access: memberAccess(of: classDeclaration, in: context))
  }

  /// Returns the model that the class inherits from, as written; `nil` if it does not inherit from a model.
  ///
  /// Macros see no types, but the compiler passes the conformances that are missing. If `PersistentModel` is not among
  /// them, the superclass has it, unless the class declares it itself.
  private static func superclass(
    of declaration: ClassDeclSyntax, conformingTo protocols: [TypeSyntax]
  ) -> String? {
    guard protocols.isEmpty, let inherited = declaration.inheritanceClause?.inheritedTypes,
      !inherited.contains(where: { $0.type.lastName == "PersistentModel" })
    else { return nil }
    return inherited.first?.type.trimmedDescription
  }

  /// Returns the access modifier for the requirements of `PersistentModel`: that of the class, which may come from the
  /// extension around it.
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
      let slot = slot(of: variable, in: classDeclaration, context)
    else { return [] }
    return [attribute(ofSlot: slot, in: classDeclaration)]
  }

  /// Returns the attribute that stands for the accessors of a persisted property.
  static func attribute(ofSlot slot: Int, in declaration: ClassDeclSyntax) -> AttributeSyntax {
    // If the class may inherit from a model, its slots follow the inherited ones, and `_modelStorage` returns the
    // storage that holds them.
    if declaration.mayTakePartInInheritance {
      return
        "@InstarModel._PersistedProperty(\(literal: slot), of: \(literal: declaration.name.trimmedDescription))"
    }
    return "@InstarModel._PersistedProperty(\(literal: slot))"
  }

  /// The class that was read last. The compiler asks for its members one by one, and reading it takes longer than all
  /// else of an answer.
  private static let lastClass = Mutex<(source: String, declaration: ModelDeclaration)?>(nil)

  private static func slot(
    of variable: VariableDeclSyntax, in declaration: ClassDeclSyntax,
    _ context: some MacroExpansionContext
  ) -> Int? {
    let source = declaration.description
    return lastClass.withLock { last in
      if let last, last.source == source { return last.declaration.slot(of: variable) }
      let model = ModelDeclaration(declaration, in: context)
      last = (source, model)
      return model.slot(of: variable)
    }
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
    // Reported in this role, because the compiler expands the members of an enum only if code uses them.
    guard declaration.is(ClassDeclSyntax.self) else {
      context.report(notAClass(declaration, node: node))
      return []
    }
    // An empty list means that the class conforms already.
    guard !protocols.isEmpty else { return [] }
    // In a module whose default isolation is the main actor, the extension and its conformance would be isolated too.
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
