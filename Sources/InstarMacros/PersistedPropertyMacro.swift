public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `@_PersistedProperty(slot)`: makes a property of a model read and write a slot of the model's
/// storage.
///
/// `@Model` attaches it. The init accessor lets the initializers of the class assign the property
/// like any stored one, and before `self` is complete; the stored `_name` beside it takes no memory
/// and is what Swift's check for definite initialization looks at. The storage is found through
/// overloads, so the type of the property alone decides how its values are kept.
public struct PersistedPropertyMacro {}

extension PersistedPropertyMacro: AccessorMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard
      let name = propertyName(declaration),
      let slot = node.arguments?.as(LabeledExprListSyntax.self)?.first?.expression.trimmed
    else { return [] }
    return [
      """
      @storageRestrictions(accesses: _$storage, initializes: _\(raw: name))
      init(initialValue) {
        _$storage.initialize(slot: \(slot), to: initialValue)
        _\(raw: name) = InstarModel.PersistedProperty()
      }
      """,
      """
      get { _$storage.value(at: \(slot)) }
      """,
      """
      set { _$storage.setValue(newValue, at: \(slot), of: self) }
      """,
    ]
  }
}

extension PersistedPropertyMacro: PeerMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard let name = propertyName(declaration) else { return [] }
    return ["private var _\(raw: name): InstarModel.PersistedProperty"]
  }
}

extension PersistedPropertyMacro {
  private static func propertyName(_ declaration: some DeclSyntaxProtocol) -> String? {
    declaration.as(VariableDeclSyntax.self)?.bindings.first?.name
  }
}
