public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `@_PersistedProperty(slot)`, `@_PersistedProperty(slot, of: "Model")`: makes a property of a model read and write a slot of the model's
/// storage.
///
/// `@Model` attaches it. The init accessor lets the initializers of the class assign the property
/// like any stored one, and before `self` is complete; the stored `_name` beside it takes no memory
/// and is what Swift's check for definite initialization looks at. The storage is found through
/// overloads, so the type of the property alone decides how its values are kept.
///
/// In a class that may inherit, or be inherited from, the slot counts from the class's first own one, and `_modelStorage`
/// says which storage holds the values: that of the object's own class, not of the class the property stands in.
public struct PersistedPropertyMacro {}

extension PersistedPropertyMacro: AccessorMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard
      let name = propertyName(declaration),
      let arguments = node.arguments?.as(LabeledExprListSyntax.self),
      let number = arguments.first?.expression.trimmedDescription
    else { return [] }
    let model = arguments.dropFirst().first?.expression.as(StringLiteralExprSyntax.self)?
      .segments.trimmedDescription
    let slot = model.map { "\($0)._$firstSlot + \(number)" } ?? number
    let storage = model == nil ? "_$storage" : "_modelStorage"
    let markers = declaration.as(VariableDeclSyntax.self)?.markers ?? []
    if markers.contains(where: \.isTransformable) {
      return transformableAccessors(name, slot, storage)
    }
    return [
      """
      @storageRestrictions(accesses: _$storage, initializes: _\(raw: name))
      init(initialValue) {
        _$storage.initialize(slot: \(raw: slot), to: initialValue)
        _\(raw: name) = InstarModel.PersistedProperty()
      }
      """,
      """
      get { \(raw: storage).value(at: \(raw: slot)) }
      """,
      """
      set { \(raw: storage).setValue(newValue, at: \(raw: slot), of: self) }
      """,
    ]
  }
}

extension PersistedPropertyMacro {
  /// A value transformer takes values of any type, so that overloads cannot tell how they are kept.
  private static func transformableAccessors(
    _ name: String, _ slot: String, _ storage: String
  ) -> [AccessorDeclSyntax] {
    [
      """
      @storageRestrictions(accesses: _$storage, initializes: _\(raw: name))
      init(initialValue) {
        _$storage.initialize(slot: \(raw: slot), toTransformable: initialValue)
        _\(raw: name) = InstarModel.PersistedProperty()
      }
      """,
      """
      get { \(raw: storage).transformableValue(at: \(raw: slot)) }
      """,
      """
      set { \(raw: storage).setTransformableValue(newValue, at: \(raw: slot), of: self) }
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
    var peers: [DeclSyntax] = ["private var _\(raw: name): InstarModel.PersistedProperty"]
    if let check = typeCheck(of: name, declaration) { peers.append(check) }
    return peers
  }

  /// Has the compiler name the property where its type cannot be stored: macros see no types, and overloads no names. No
  /// code of it runs.
  private static func typeCheck(
    of name: String, _ declaration: some DeclSyntaxProtocol
  ) -> DeclSyntax? {
    guard let variable = declaration.as(VariableDeclSyntax.self),
      !variable.markers.contains(where: \.isTransformable),
      let type = variable.bindings.first.flatMap(typeToCheck)
    else { return nil }
    let message = """
      '\(name)' cannot be stored: its type must be a model, an array of models, or Codable; \
      or mark the property '@Transient'
      """
    return """
      private enum _$type_\(raw: name): InstarModel._StorableProperty {
        @available(*, unavailable, message: \(StringLiteralExprSyntax(content: message)))
        @_disfavoredOverload
        static func type<Value>(_: Value.Type) {}
        static func check() { type(\(raw: type)) }
      }
      """
  }

  /// The type of a property, as an expression; `nil` where it is storable by its name.
  private static func typeToCheck(_ binding: PatternBindingSyntax) -> String? {
    guard let type = binding.typeAnnotation?.type else {
      return binding.initializer.flatMap { initializer in
        initializer.value.isLiteral || initializer.value.mentionsSelf
          ? nil : "Swift.type(of: \(initializer.value.trimmedDescription))"
      }
    }
    if type.isEvidentlyStorable || type.mentionsSelf { return nil }
    // A type with "!" can only be written where something is declared.
    let written =
      type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self)
      .map { "\($0.wrappedType.trimmedDescription)?" } ?? type.trimmedDescription
    return "(\(written)).self"
  }
}

extension PersistedPropertyMacro {
  private static func propertyName(_ declaration: some DeclSyntaxProtocol) -> String? {
    declaration.as(VariableDeclSyntax.self)?.bindings.first?.name
  }
}
