import SwiftDiagnostics
import SwiftIfConfig
import SwiftSyntax
import SwiftSyntaxMacros

/// The syntax of a class marked with `@Model`: its persisted properties in the order of their slots, and its errors.
///
/// The compiler expands the roles of `@Model` one by one, each from the same source. All of them read the class through
/// this type, so an accessor and the metadata always use the same slot for a property.
struct ModelDeclaration {
  /// The name of the class as written, with backticks where it needs them.
  let name: String

  /// The properties that are stored with the model. The index of a property is its slot.
  private(set) var properties: [ModelProperty] = []

  /// The arguments of `@Table`, as written; `nil` without one.
  let table: String?

  /// The groups of paths of `#Unique`, as written.
  private(set) var uniqueGroups: [String] = []

  /// The groups of paths of `#Index`, as written.
  private(set) var indexGroups: [String] = []

  /// The names and groups of paths of `#Index` with names, as written.
  private(set) var namedIndexGroups: [String] = []

  /// The errors and warnings of the class. A property with an error has no slot.
  private(set) var diagnostics: [Diagnostic] = []

  /// Whether `let` properties are persisted.
  private let acceptsConstants: Bool

  /// - Parameter superclass: The model that the class inherits from, as written.
  init(
    _ declaration: ClassDeclSyntax, superclass: String? = nil,
    in context: some MacroExpansionContext
  ) {
    name = declaration.name.trimmedDescription
    acceptsConstants = context.acceptsAccessorsOfConstants
    table = declaration.attributes.first(named: "Table").map {
      $0.arguments?.trimmedDescription ?? ""
    }
    if let generics = declaration.genericParameterClause {
      diagnostics.append(Diagnostic(node: generics, message: Problem.genericModel(name: name)))
    }
    for member in declaration.memberBlock.members {
      read(member)
    }
    if !declaration.memberBlock.members.containsInitializer {
      diagnostics.append(missingInitializer(of: declaration, superclass: superclass))
    }
  }

  /// Returns the slot of the property that `variable` declares, or `nil` if the property is not persisted.
  func slot(of variable: VariableDeclSyntax) -> Int? {
    guard
      variable.isInstanceProperty, variable.bindings.count == 1,
      let name = variable.bindings.first?.name
    else { return nil }
    return properties.firstIndex { $0.name == name }
  }

  private mutating func read(_ member: MemberBlockItemSyntax) {
    if let condition = member.decl.as(IfConfigDeclSyntax.self) {
      // A macro cannot evaluate the condition, so the slots of the other properties must not depend on it.
      for variable in condition.storedInstanceProperties {
        diagnostics.append(
          Diagnostic(node: variable.bindingSpecifier, message: Problem.conditionalProperty))
      }
      return
    }
    if let constraint = ConstraintDeclaration(member, model: name) {
      diagnostics += constraint.diagnostics
      switch constraint.kind {
      case .unique: uniqueGroups += constraint.groups
      case .index:
        indexGroups += constraint.groups
        namedIndexGroups += constraint.namedGroups
      }
      return
    }
    guard
      let variable = member.decl.as(VariableDeclSyntax.self),
      variable.isInstanceProperty, variable.storesValue, !variable.isLazy
    else { return }

    let markers = variable.markers
    if markers.contains(where: { $0.kind == .transient }) {
      diagnostics += problems(ofTransient: variable, markers: markers)
      return
    }
    let problems = problems(of: variable, in: member, markers: markers)
    diagnostics += problems
    if problems.isEmpty, let binding = variable.bindings.first, let name = binding.name {
      properties.append(ModelProperty(name: name, variable: variable, binding: binding))
      if binding.hasObservers, let accessors = binding.accessorBlock {
        diagnostics.append(
          Diagnostic(node: accessors, message: Problem.observedProperty(property: name)))
      }
    }
  }

  /// Returns every reason why `variable` cannot be a persisted property.
  private func problems(
    of variable: VariableDeclSyntax, in member: MemberBlockItemSyntax, markers: [PropertyMarker]
  ) -> [Diagnostic] {
    guard let binding = variable.bindings.first else { return [] }
    guard let name = binding.name else {
      return [Diagnostic(node: binding.pattern, message: Problem.tuplePattern)]
    }
    guard variable.bindings.count == 1 else {
      return [
        Diagnostic(
          node: variable.bindings, message: Problem.severalBindings,
          fixIt: .separateBindings(of: variable, in: member))
      ]
    }

    var problems: [Diagnostic] = []
    problems += markers.flatMap(\.optionProblems)
    if let modifier = variable.modifiers.first(where: { $0.name.tokenKind == .keyword(.override) })
    {
      problems.append(
        Diagnostic(node: modifier, message: Problem.overriddenProperty(property: name)))
    }
    if let second = markers.filter({ $0.kind != .column }).dropFirst().first {
      problems.append(
        Diagnostic(node: second.attribute, message: Problem.contradictoryMarkers(property: name)))
    }
    if variable.bindingSpecifier.tokenKind == .keyword(.let), !acceptsConstants {
      problems.append(
        Diagnostic(
          node: variable.bindingSpecifier, message: Problem.constantProperty(property: name),
          fixIt: .replaceText(
            of: variable.bindingSpecifier, with: "var", message: .replaceLetByVar)))
    }
    if let reference = variable.referenceModifier {
      problems.append(
        Diagnostic(
          node: reference,
          message: Problem.weakProperty(property: name, modifier: reference.name.text),
          fixIt: .remove(reference, message: .removeModifier(reference.name.text))))
    }
    if binding.typeAnnotation == nil, binding.initializer == nil {
      problems.append(
        Diagnostic(
          node: binding.pattern, message: Problem.missingType(property: name),
          fixIt: .insert(
            ": \(editorPlaceholder("Type"))", after: binding.pattern, message: .insertType)))
    }
    return problems
  }

  private func problems(
    ofTransient variable: VariableDeclSyntax, markers: [PropertyMarker]
  ) -> [Diagnostic] {
    var problems: [Diagnostic] = []
    for marker in markers where marker.kind != .transient {
      problems.append(
        Diagnostic(
          node: marker.attribute,
          message: Problem.transientWithMarker(marker.kind),
          fixIt: .remove(marker.attribute, message: .removeMarker(marker.kind))))
    }
    for binding in variable.bindings where binding.initializer == nil {
      // Reading a model from a store calls no initializer of its class, so only an initial value can set the property.
      guard let type = binding.typeAnnotation?.type, !type.isImplicitlyNil, let name = binding.name
      else { continue }
      problems.append(
        Diagnostic(
          node: binding, message: Problem.transientWithoutValue(property: name),
          fixIt: .insert(
            " = \(editorPlaceholder("initial value"))", after: binding,
            message: .insertInitialValue)))
    }
    return problems
  }

  /// `@Model` adds an initializer, so Swift no longer provides `init()`. The fix-it writes one for all properties.
  private func missingInitializer(
    of declaration: ClassDeclSyntax, superclass: String?
  ) -> Diagnostic {
    let settable = properties.compactMap { property in
      property.type.map { (property: property, type: $0.trimmedDescription) }
    }
    let parameters = settable.map { property, type in
      let defaultValue =
        property.defaultValue?.trimmedDescription
        ?? (property.type?.isImplicitlyNil == true ? "nil" : nil)
      return "\(property.codeName): \(type)" + (defaultValue.map { " = \($0)" } ?? "")
    }
    let members = declaration.memberBlock.members
    let indentation = members.first?.indentation ?? "  "
    let access = declaration.modifiers.memberAccess
    let assignments = settable.map { property, _ in
      "\(indentation)  self.\(property.codeName) = \(property.codeName)\n"
    }
    let call =
      superclass == nil ? "" : "\(indentation)  super.init(\(editorPlaceholder("arguments")))\n"
    let initializer = """
      \(indentation)\(access)init(\(parameters.joined(separator: ", "))) {
      \(assignments.joined())\(call)\(indentation)}
      """
    return Diagnostic(
      node: declaration.name,
      message: superclass.map {
        Problem.missingInitializerOfSubclass(name: name, superclass: $0)
      } ?? Problem.missingInitializer(name: name),
      fixIt: .insert(
        (members.isEmpty ? "\n" : "\n\n") + initializer
          + (declaration.memberBlock.rightBrace.indentation == nil ? "\n" : ""),
        after: members.isEmpty ? Syntax(declaration.memberBlock.leftBrace) : Syntax(members),
        message: superclass == nil ? .insertInitializer : .insertInitializerOfSubclass))
  }
}

extension MacroExpansionContext {
  /// Whether a macro can give a `let` accessors: the compiler (6.3, diagnostic "let_accessor_expansion") warns in the
  /// Swift 5 mode, and refuses it in the Swift 6 mode. SwiftData's `@Model` has the same limit.
  fileprivate var acceptsAccessorsOfConstants: Bool {
    buildConfiguration.map { $0.languageVersion < VersionTuple(6) } ?? false
  }
}

/// One persisted property of a model.
struct ModelProperty {
  /// The name in the schema, without backticks.
  let name: String

  /// The name in code, with backticks where the declaration has them.
  let codeName: String

  /// The type as written; `nil` if Swift infers it from the initial value.
  let type: TypeSyntax?

  /// The expression of the initial value, if there is one.
  let defaultValue: ExprSyntax?

  /// The `@Attribute` or `@Relationship` on the property.
  let marker: PropertyMarker?

  /// The `@Column` on the property.
  let column: PropertyMarker?

  init(name: String, variable: VariableDeclSyntax, binding: PatternBindingSyntax) {
    let markers = variable.markers
    self.name = name
    codeName = binding.pattern.trimmedDescription
    type = binding.typeAnnotation?.type.trimmed
    defaultValue = binding.initializer?.value.trimmed
    hasInitialValue =
      variable.bindingSpecifier.tokenKind == .keyword(.var)
      && (defaultValue != nil || type?.isImplicitlyNil == true)
    marker = markers.first { $0.kind != .column }
    column = markers.first { $0.kind == .column }
  }

  /// Whether Swift sets the property in every initializer.
  let hasInitialValue: Bool

  /// The stored variable with which Swift checks that every initializer sets the property.
  var backingName: String { "_\(name)" }
}

/// `@Attribute`, `@Relationship`, `@Transient` or `@Column` on a property.
struct PropertyMarker {
  enum Kind: String, CaseIterable {
    case attribute = "Attribute"
    case relationship = "Relationship"
    case transient = "Transient"
    case column = "Column"
  }

  let kind: Kind
  let attribute: AttributeSyntax

  init?(_ attribute: AttributeSyntax) {
    guard let kind = attribute.simpleName.flatMap(Kind.init(rawValue:)) else { return nil }
    self.kind = kind
    self.attribute = attribute
  }

  /// Whether a value transformer stores the property.
  var isTransformable: Bool {
    guard kind == .attribute, let arguments = attribute.arguments?.as(LabeledExprListSyntax.self)
    else { return false }
    return arguments.contains { argument in
      argument.expression.as(FunctionCallExprSyntax.self)?.calledExpression
        .as(MemberAccessExprSyntax.self)?.declName.baseName.text == "transformable"
    }
  }

  /// The arguments as written, without the parentheses, except that `inverse: \Bed.garden?` is `\Bed.garden`. The path
  /// to the value in the optional is another one at run time, and no relationship has it.
  var arguments: String {
    guard kind == .relationship, let arguments = attribute.arguments?.as(LabeledExprListSyntax.self)
    else { return attribute.arguments?.trimmedDescription ?? "" }
    return LabeledExprListSyntax(
      arguments.map { argument in
        guard argument.label?.text == "inverse",
          var path = argument.expression.as(KeyPathExprSyntax.self),
          case .optional = path.components.last?.component
        else { return argument }
        path.components = KeyPathComponentListSyntax(path.components.dropLast())
        return argument.with(\.expression, ExprSyntax(path))
      }
    ).trimmedDescription
  }
}
