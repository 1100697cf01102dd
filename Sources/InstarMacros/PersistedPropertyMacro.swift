public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `@_PersistedProperty(slot)`, `@_PersistedProperty(slot, of: "Model")`: makes a property of a model read and write a
/// slot of the model's storage.
///
/// `@Model` attaches it. The init accessor lets the initializers of the class assign the property like any stored one,
/// before `self` is complete. The stored `_name` takes no memory; Swift's check for definite initialization needs it,
/// also where the property has an initial value: without it, an initializer that throws halfway releases twice what
/// the init accessor set (Swift 6.3).
/// Overloads of `ModelStorage` select the stored form by the type of the property.
///
/// In a class that may inherit or have subclasses, the slot counts from the first slot of the class itself.
/// `_modelStorage` then returns the storage of the object's class, which holds the values of all its superclasses.
public struct PersistedPropertyMacro {
  /// The compiler reads the code as it is; laying it out takes a fifth of the time of the expansion.
  public static var formatMode: FormatMode { .disabled }
}

extension PersistedPropertyMacro: AccessorMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    accessors(of: node, declaration, hasSetter: true).map { "\(raw: $0)" }
  }

  /// Returns the text of each accessor, on one line.
  ///
  /// - Parameter hasSetter: Whether the property can be assigned after it is initialized.
  static func accessors(
    of node: AttributeSyntax, _ declaration: some DeclSyntaxProtocol, hasSetter: Bool
  ) -> [String] {
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
    // A value transformer accepts any type, so overloads cannot select the stored form.
    let (to, get, set) =
      markers.contains(where: \.isTransformable)
      ? ("toDescribed", "describedValue", "setDescribedValue") : ("to", "value", "setValue")
    // The optimizer can only copy these calls of another module into the thunks of key paths, which makes nothing
    // faster, and takes a tenth of the time of a build. Unlike `@_optimize(none)` this lets it remove unused accessors.
    var accessors = [
      "@storageRestrictions(accesses: _$storage, initializes: _\(name)) init(initialValue) "
        + "{ _$storage.initialize(slot: \(slot), \(to): initialValue); "
        + "_\(name) = InstarModel.PersistedProperty() }",
      "@inline(never) get { \(storage).\(get)(at: \(slot)) }",
    ]
    if hasSetter {
      let call = "\(storage).\(set)(newValue, at: \(slot), of: self)"
      accessors.append("@inline(never) set { \(call) }")
    }
    return accessors
  }
}

extension PersistedPropertyMacro: PeerMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard let name = propertyName(declaration) else { return [] }
    let stored: DeclSyntax = "\(raw: storedVariable(of: name))"
    return [stored] + [typeCheck(of: name, declaration)].compactMap(\.self)
  }

  static func storedVariable(of name: String) -> String {
    "private var _\(name): InstarModel.PersistedProperty"
  }

  /// Returns code that makes the compiler name the property if its type cannot be stored. Macros see no types, and
  /// overloads see no names. The code never runs.
  private static func typeCheck(
    of name: String, _ declaration: some DeclSyntaxProtocol
  ) -> DeclSyntax? {
    guard let type = declaration.as(VariableDeclSyntax.self).flatMap(typeToCheck) else {
      return nil
    }
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

  /// Returns code that the compiler refuses if one of the types cannot be stored. It takes less of its time than a
  /// check of each, but does not name the property.
  static func typeCheck(ofAll types: [String]) -> DeclSyntax {
    """
    private enum _$types: InstarModel._StorableProperty {
      @available(*, unavailable) @_disfavoredOverload static func type<Value>(_: Value.Type) {}
      static func check() {
        \(raw: types.map { "type(\($0))" }.joined(separator: "; "))
      }
    }
    """
  }

  /// Returns an expression for the type of a property; `nil` if any can be stored, or its name shows that it can.
  static func typeToCheck(_ variable: VariableDeclSyntax) -> String? {
    variable.markers.contains(where: \.isTransformable)
      ? nil : variable.bindings.first.flatMap(typeToCheck)
  }

  private static func typeToCheck(_ binding: PatternBindingSyntax) -> String? {
    guard let type = binding.typeAnnotation?.type else {
      return binding.initializer.flatMap { initializer in
        initializer.value.isLiteral || initializer.value.mentionsSelf
          ? nil : "Swift.type(of: \(initializer.value.trimmedDescription))"
      }
    }
    if type.isEvidentlyStorable || type.mentionsSelf { return nil }
    // Swift allows a type with "!" only in a declaration.
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
