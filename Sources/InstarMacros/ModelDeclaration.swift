import SwiftDiagnostics
import SwiftSyntax

/// A class marked with `@Model`, as far as its syntax tells: its persisted properties in the order
/// of their slots, and what is wrong with it.
///
/// The roles of `@Model` are expanded one by one, each from the same source. All of them read the
/// class through this type, so that the slot an accessor uses and the slot the metadata describes
/// are always the same one.
struct ModelDeclaration {
  /// The class as it is written in code, with backticks where its name needs them.
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

  /// What has to be put right. Properties that occur here have no slot.
  private(set) var diagnostics: [Diagnostic] = []

  /// - Parameter superclass: the model that the class inherits from, as it is written.
  init(_ declaration: ClassDeclSyntax, superclass: String? = nil) {
    name = declaration.name.trimmedDescription
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

  /// The slot of the property that `variable` declares, or `nil` if it is not persisted.
  func slot(of variable: VariableDeclSyntax) -> Int? {
    guard
      variable.isInstanceProperty, variable.bindings.count == 1,
      let name = variable.bindings.first?.name
    else { return nil }
    return properties.firstIndex { $0.name == name }
  }

  private mutating func read(_ member: MemberBlockItemSyntax) {
    if let condition = member.decl.as(IfConfigDeclSyntax.self) {
      // Slots must not depend on a condition that only the compiler evaluates.
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
      properties.append(ModelProperty(name: name, binding: binding, markers: markers))
      if binding.hasObservers, let accessors = binding.accessorBlock {
        diagnostics.append(
          Diagnostic(node: accessors, message: Problem.observedProperty(property: name)))
      }
    }
  }

  /// Everything that keeps `variable` from being a persisted property.
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
    if variable.bindingSpecifier.tokenKind == .keyword(.let) {
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
      // A model read from a store does not pass through the initializers of its class, so nothing
      // but an initial value can give the property one.
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

  /// `@Model` adds an initializer, and with that Swift no longer provides `init()`. The fix-it
  /// writes the one most people want.
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

/// One persisted property of a model.
struct ModelProperty {
  /// The name without backticks: what the schema calls it.
  let name: String

  /// The name as code refers to it, with backticks where it was declared with them.
  let codeName: String

  /// The type as written; `nil` where Swift infers it from the initial value.
  let type: TypeSyntax?

  /// The expression of the initial value, if there is one.
  let defaultValue: ExprSyntax?

  /// The `@Attribute` or `@Relationship` on the property.
  let marker: PropertyMarker?

  /// The `@Column` on the property.
  let column: PropertyMarker?

  init(name: String, binding: PatternBindingSyntax, markers: [PropertyMarker]) {
    self.name = name
    codeName = binding.pattern.trimmedDescription
    type = binding.typeAnnotation?.type.trimmed
    defaultValue = binding.initializer?.value.trimmed
    marker = markers.first { $0.kind != .column }
    column = markers.first { $0.kind == .column }
  }

  /// The stored variable that stands for the property where Swift checks that an initializer
  /// initializes everything.
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

  /// The arguments as written, without the parentheses.
  var arguments: String {
    attribute.arguments?.trimmedDescription ?? ""
  }
}
