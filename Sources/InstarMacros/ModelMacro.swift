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
    let model = ModelDeclaration(classDeclaration)
    for diagnostic in model.diagnostics {
      context.diagnose(diagnostic)
    }

    let access = memberAccess(of: classDeclaration, in: context)
    // A subclass of a class that is not final must be able to be made from a row as well.
    let required = classDeclaration.modifiers.contains(.final) ? "" : "required "
    let entityName = classDeclaration.name.identifier?.name ?? model.name
    let initializers = model.properties.map {
      "  \($0.backingName) = InstarModel.PersistedProperty()\n"
    }
    let constraints = [("uniqueness", model.uniqueGroups), ("indices", model.indexGroups)]
      .filter { !$0.1.isEmpty }.map { ", \($0.0): [\($0.1.joined(separator: ", "))]" }.joined()
    let metadata = model.properties.map { "    \(propertyMetadata($0, of: model)),\n" }

    return [
      """
      private var _$storage: InstarModel.ModelStorage = \
      InstarModel.ModelStorage(\(raw: model.name)._modelDescriptor)
      """,
      """
      \(raw: access)var _modelStorage: InstarModel.ModelStorage { _$storage }
      """,
      """
      \(raw: access)static let _modelDescriptor: InstarModel.ModelDescriptor = \
      InstarModel.ModelDescriptor(\(raw: model.name).self, name: \(literal: entityName)\(raw: constraints))
      """,
      """
      \(raw: required)\(raw: access)init(_modelStorage storage: InstarModel.ModelStorage) {
      \(raw: initializers.joined())  self._$storage = storage
      }
      """,
      """
      \(raw: access)static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
        [
      \(raw: metadata.joined())  ]
      }
      """,
    ]
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

  /// The element of `schemaMetadata` for `property`.
  private static func propertyMetadata(
    _ property: ModelProperty, of model: ModelDeclaration
  ) -> String {
    var arguments = [
      "\(StringLiteralExprSyntax(content: property.name))",
      "\\\(model.name).\(property.codeName)",
    ]
    switch property.marker?.kind {
    case .attribute:
      arguments.append("InstarModel.AttributeMetadata(\(property.marker?.arguments ?? ""))")
    case .relationship:
      arguments.append("InstarModel.RelationshipMetadata(\(property.marker?.arguments ?? ""))")
    case .transient, nil:
      break
    }
    if let defaultValue = property.defaultValue {
      let type = property.type.map { ": \($0)" } ?? ""
      // The constant gives the expression the type it has as an initial value: `.now`, `[]`. Its
      // name is one that no such expression can mention.
      arguments.append(
        "defaultValue: {\nlet _$value\(type) = \(defaultValue)\nreturn _$value\n}")
    }
    return "InstarSchema.Schema.PropertyMetadata(\(arguments.joined(separator: ", ")))"
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
    return [try ExtensionDeclSyntax("extension \(type.trimmed): InstarModel.PersistentModel {}")]
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
