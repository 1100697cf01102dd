import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros

/// The changes of a source that write out the macros of one model, as the compiler would expand them.
struct ExpandedModel {
  private(set) var edits: [SourceEdit] = []

  private let declaration: ClassDeclSyntax
  private let declared: DeclaredTypes
  private let keyPathNames: KeyPathNames
  private let assignedNames: AssignedNames
  private let context: BasicMacroExpansionContext
  /// Inside the class.
  private let memberContext: BasicMacroExpansionContext
  /// What the class persists, once its members are added.
  private var model: ModelDeclaration?
  /// The members that the class gets, each on one line.
  private var members: [String] = []
  /// The types that must be checked.
  private var typesToCheck: [String] = []

  /// - Returns: `nil` for a class that has to keep its macros.
  init?(
    _ declaration: ClassDeclSyntax, declared: DeclaredTypes, keyPathNames: KeyPathNames,
    assignedNames: AssignedNames
  ) {
    self.declaration = declaration
    self.declared = declared
    self.keyPathNames = keyPathNames
    self.assignedNames = assignedNames
    guard let place = declaration.place, let attribute = Self.modelAttribute(declaration, declared)
    else { return nil }
    context = BasicMacroExpansionContext(lexicalContext: place.lexicalContext)
    memberContext = BasicMacroExpansionContext(
      sharingWith: context, lexicalContext: [Syntax(declaration)] + place.lexicalContext)

    guard addMembers() else { return nil }
    for member in declaration.memberBlock.members {
      guard expand(member.decl) else { return nil }
    }
    guard context.diagnostics.isEmpty,
      typesToCheck.isEmpty || add([PersistedPropertyMacro.typeCheck(ofAll: typesToCheck)]),
      insertMembers(), conform(place, attribute)
    else {
      return nil
    }
    for case .attribute(let attribute) in declaration.attributes
    where ["Model", "Table"].contains(attribute.simpleName) {
      edits.append(.blank(attribute))
    }
  }

  // MARK: Class

  /// Returns `@Model`, if it and all other attributes of the class are understood.
  private static func modelAttribute(
    _ declaration: ClassDeclSyntax, _ declared: DeclaredTypes
  ) -> AttributeSyntax? {
    var found: [String: AttributeSyntax] = [:]
    for element in declaration.attributes {
      guard case .attribute(let attribute) = element, let name = attribute.simpleName,
        found.updateValue(attribute, forKey: name) == nil,
        attribute.isBuiltIn || isOurs(attribute, of: ["Model", "Table"], declared)
      else { return nil }
    }
    guard let model = found["Model"] else { return nil }
    switch model.arguments {
    case nil: return model
    case .argumentList(let arguments):
      guard arguments.count == 0 || arguments.map(\.label?.text) == ["originalName"],
        arguments.allSatisfy({ $0.expression.isConstant })
      else { return nil }
      return model
    default: return nil
    }
  }

  /// Whether the name of an attribute is one of these, and certainly names the SDK's macro.
  private static func isOurs(
    _ attribute: AttributeSyntax, of names: [String], _ declared: DeclaredTypes
  ) -> Bool {
    guard let name = attribute.simpleName, names.contains(name), !declared.contains(name) else {
      return false
    }
    if attribute.attributeName.is(IdentifierTypeSyntax.self) { return true }
    return attribute.attributeName.trimmedDescription == "Instar.\(name)"
  }

  private mutating func addMembers() -> Bool {
    let missing: [TypeSyntax]
    switch declared.ancestry(of: declaration) {
    case .none: missing = ["InstarModel.PersistentModel"]
    case .model: missing = []
    case .undecided: return false
    }
    var expansion = ModelMacro.expansion(of: declaration, conformingTo: missing, in: context)
    expansion.typeInPlaceOfKeyPath = typeInPlaceOfKeyPath
    model = expansion.model
    expansion.hasRowInitializer = !declaration.isStorageOnly(expansion.model)
    return add(expansion.members)
  }

  /// The compiler makes two functions of a key path, which then use the accessors of the property. That is half of the
  /// build of a large plan.
  private func typeInPlaceOfKeyPath(_ property: ModelProperty) -> String? {
    guard !keyPathNames.contains(property.name) else { return nil }
    guard let type = property.type else { return property.defaultValue?.evidentType(declared) }
    // Swift accepts "!" and attributes in a declaration only.
    let isPlain =
      !type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self) && !type.is(AttributedTypeSyntax.self)
    return isPlain && !type.mentionsSelf ? type.oneLine : nil
  }

  private mutating func add(_ declarations: [DeclSyntax]) -> Bool {
    let lines = declarations.compactMap(\.oneLine)
    members += lines
    return lines.count == declarations.count
  }

  /// Inserts all members before the end of the class.
  private mutating func insertMembers() -> Bool {
    let end = declaration.memberBlock.rightBrace
    guard end.isLastOnLine else { return false }
    let text = members.joined(separator: "; ")
    edits.append(.insert(end.beginsLine ? "\(text) " : "; \(text) ", before: end))
    return true
  }

  /// Inserts the extension with the conformance after the declaration at file scope.
  private mutating func conform(_ place: Place, _ attribute: AttributeSyntax) -> Bool {
    guard case .none = declared.ancestry(of: declaration) else { return true }
    guard let end = place.outermost.lastToken(viewMode: .sourceAccurate), end.isLastOnLine,
      let extensions = try? ModelMacro.expansion(
        of: attribute, attachedTo: declaration,
        providingExtensionsOf: TypeSyntax("\(raw: place.typeName)"),
        conformingTo: ["InstarModel.PersistentModel"], in: context)
    else { return false }
    let lines = extensions.compactMap(\.oneLine)
    edits.append(.insert(lines.map { "; \($0)" }.joined(), after: end))
    return lines.count == extensions.count
  }

  // MARK: Members

  private mutating func expand(_ member: DeclSyntax) -> Bool {
    if let variable = member.as(VariableDeclSyntax.self) { return expand(variable) }
    if let constraint = member.as(MacroExpansionDeclSyntax.self) { return expand(constraint) }
    if let conditional = member.as(IfConfigDeclSyntax.self) {
      // What is left of markers would find itself outside a model.
      return !conditional.tokens(viewMode: .sourceAccurate).contains {
        $0.tokenKind == .atSign || $0.tokenKind == .pound
      }
    }
    return !(member.asProtocol((any WithAttributesSyntax).self)?.attributes.hasMarkers ?? false)
  }

  /// `#Unique` and `#Index`, whose paths are already among the members.
  private mutating func expand(_ node: MacroExpansionDeclSyntax) -> Bool {
    guard
      let constraint = ConstraintDeclaration(
        MemberBlockItemSyntax(decl: node), model: declaration.name.text),
      !declared.contains(node.macroName.text), node.attributes.isEmpty, node.modifiers.isEmpty,
      node.trailingClosure == nil, node.additionalTrailingClosures.isEmpty,
      // The compiler checks all arguments but plain groups of paths: whether they have labels, names or kinds.
      constraint.groups.count == node.arguments.count,
      node.arguments.allSatisfy({ $0.label == nil && $0.expression.is(ArrayExprSyntax.self) }),
      let end = node.lastToken(viewMode: .sourceAccurate), end.isLastOnLine,
      (try? ConstraintMacro.expansion(of: node, in: memberContext)) != nil
    else { return false }
    edits.append(.blank(node))
    return true
  }

  private mutating func expand(_ variable: VariableDeclSyntax) -> Bool {
    for element in variable.attributes {
      guard case .attribute(let attribute) = element else { return false }
      if let marker = PropertyMarker(attribute) {
        guard Self.isOurs(attribute, of: [marker.kind.rawValue], declared),
          marker.kind != .transient || attribute.arguments == nil,
          (try? AttributeMacro.expansion(
            of: attribute, providingPeersOf: variable, in: memberContext)) != nil
        else { return false }
        edits.append(.blank(attribute))
      } else if !attribute.isBuiltIn {
        return false
      }
    }
    guard let model, let slot = model.slot(of: variable) else { return true }
    return addAccessors(
      to: variable, model.properties[slot], ModelMacro.attribute(ofSlot: slot, in: declaration))
  }

  /// Writes what `@_PersistedProperty` stands for.
  private mutating func addAccessors(
    to variable: VariableDeclSyntax, _ property: ModelProperty, _ attribute: AttributeSyntax
  ) -> Bool {
    guard variable.bindingSpecifier.tokenKind == .keyword(.var),
      let binding = variable.bindings.first,
      !variable.containsMacro, binding.accessorBlock == nil,
      let end = binding.lastToken(viewMode: .sourceAccurate), end.isLastOnLine
    else { return false }
    if binding.typeAnnotation == nil {
      guard let type = binding.initializer?.value.evidentType(declared) else {
        // Swift wants the type of a property with accessors, but infers it if a macro adds them.
        guard
          let previous = variable.firstToken(viewMode: .sourceAccurate)?
            .previousToken(viewMode: .sourceAccurate), previous.isLastOnLine,
          // Nothing may follow `#endif` on its line.
          previous.tokenKind != .poundEndif
        else { return false }
        let separator = variable.followsMember ? "; " : ""
        edits.append(.insert(separator + attribute.trimmedDescription, after: previous))
        return true
      }
      guard let name = binding.pattern.lastToken(viewMode: .sourceAccurate) else { return false }
      edits.append(.insert(": \(type)", after: name))
    }
    guard let name = binding.name else { return false }
    typesToCheck += [PersistedPropertyMacro.typeToCheck(variable)].compactMap(\.self)
    let accessors = PersistedPropertyMacro.accessors(
      of: attribute, variable, hasSetter: needsSetter(variable, property))
    edits.append(.insert("{ \(accessors.joined(separator: " ")) }", after: end))
    members.append(PersistedPropertyMacro.storedVariable(of: name))
    return !accessors.isEmpty
  }

  private func needsSetter(_ variable: VariableDeclSyntax, _ property: ModelProperty) -> Bool {
    // The initializer of a subclass assigns what the superclass has set.
    declaration.mayTakePartInInheritance
      // Code may find the key path when it runs, and write through it.
      || keyPathNames.contains(property.name)
      || assignedNames.contains(property.name, hasInitialValue: property.hasInitialValue)
      // `private(set)`
      || variable.modifiers.contains { $0.detail != nil }
  }
}

// MARK: - Reading

/// Where a class is declared.
private struct Place {
  /// The name by which an extension at file scope finds the class.
  var typeName: String
  /// The declaration at file scope that is the class or contains it.
  var outermost: Syntax
  /// The declarations around the class, the innermost first.
  var lexicalContext: [Syntax]
}

extension ClassDeclSyntax {
  /// `nil` for a class that no extension at file scope can name: one that is local, private in another type, generic,
  /// or conditional within a type.
  fileprivate var place: Place? {
    guard genericParameterClause == nil else { return nil }
    var names = [name.text]
    var context: [Syntax] = []
    var node = Syntax(self)
    var isPrivate = modifiers.contains(.private)
    while let parent = node.parent {
      if let item = parent.as(CodeBlockItemSyntax.self) {
        guard item.isAtFileScope, item.semicolon == nil else { return nil }
        return Place(
          typeName: names.joined(separator: "."), outermost: Syntax(item), lexicalContext: context)
      }
      if let outer = parent.asProtocol((any DeclGroupSyntax).self) {
        // At file scope `private` is `fileprivate`.
        guard !isPrivate, let name = outer.extendableName else { return nil }
        isPrivate = outer.modifiers.contains(.private)
        names.insert(name, at: 0)
        context.append(Syntax(parent))
      } else if !parent.is(MemberBlockItemSyntax.self), !parent.is(MemberBlockItemListSyntax.self),
        !parent.is(MemberBlockSyntax.self)
      {
        return nil
      }
      node = parent
    }
    return nil
  }
}

extension CodeBlockItemSyntax {
  /// Whether the declaration is in no other one, only in `#if`.
  fileprivate var isAtFileScope: Bool {
    var node = parent
    while let parent = node {
      if parent.is(SourceFileSyntax.self) { return true }
      guard
        parent.is(CodeBlockItemListSyntax.self) || parent.is(IfConfigClauseSyntax.self)
          || parent.is(IfConfigClauseListSyntax.self) || parent.is(IfConfigDeclSyntax.self)
          || parent.is(CodeBlockItemSyntax.self)
      else { return false }
      node = parent.parent
    }
    return false
  }
}

extension DeclGroupSyntax {
  /// The name of the type that is declared or extended, if it has no generic parameters.
  fileprivate var extendableName: String? {
    if let type = self.as(EnumDeclSyntax.self) {
      return type.genericParameterClause == nil ? type.name.text : nil
    }
    if let type = self.as(StructDeclSyntax.self) {
      return type.genericParameterClause == nil ? type.name.text : nil
    }
    if let type = self.as(ClassDeclSyntax.self) {
      return type.genericParameterClause == nil ? type.name.text : nil
    }
    guard let type = self.as(ExtensionDeclSyntax.self), type.genericWhereClause == nil,
      !type.extendedType.tokens(viewMode: .sourceAccurate).contains(where: {
        $0.tokenKind == .leftAngle
      })
    else { return nil }
    return type.extendedType.oneLine
  }
}

extension AttributeListSyntax {
  fileprivate var hasMarkers: Bool {
    contains { element in
      if case .attribute(let attribute) = element { PropertyMarker(attribute) != nil } else { true }
    }
  }
}

extension VariableDeclSyntax {
  /// Whether a member that stays in the class is before this one, so that code on the line of its end needs a `;`.
  fileprivate var followsMember: Bool {
    guard let item = parent?.as(MemberBlockItemSyntax.self),
      let members = item.parent?.as(MemberBlockItemListSyntax.self),
      let index = members.index(of: item), index != members.startIndex
    else { return false }
    let previous = members[members.index(before: index)]
    return !previous.decl.is(MacroExpansionDeclSyntax.self) && previous.semicolon == nil
  }

  /// Whether the declaration uses a macro such as `#line`, which would have another value in a copy of the expression.
  fileprivate var containsMacro: Bool {
    tokens(viewMode: .sourceAccurate).contains { $0.tokenKind == .pound }
  }
}

extension ExprSyntax {
  /// The type of an initial value, if syntax shows it.
  fileprivate func evidentType(_ declared: DeclaredTypes) -> String? {
    if let type = literalType { return declared.contains(type.alias) ? nil : "Swift.\(type.name)" }
    if let call = self.as(FunctionCallExprSyntax.self), call.arguments.isEmpty,
      call.leftParen != nil, call.trailingClosure == nil
    {
      // `[Tag]()`
      if let array = call.calledExpression.as(ArrayExprSyntax.self), array.elements.count == 1 {
        return array.oneLine
      }
      guard let name = call.calledExpression.as(DeclReferenceExprSyntax.self)?.trimmedDescription,
        ["Data", "Date", "Decimal", "UUID"].contains(name), !declared.contains(name)
      else { return nil }
      return name
    }
    if let member = self.as(MemberAccessExprSyntax.self), !declared.contains("Date"),
      ["Date.now", "Date.distantPast", "Date.distantFuture"].contains(member.trimmedDescription)
    {
      return "Date"
    }
    return nil
  }

  /// The type of a literal, and the type alias with which a module can choose another one.
  private var literalType: (name: String, alias: String)? {
    if let sign = self.as(PrefixOperatorExprSyntax.self) {
      return sign.operator.text == "-" ? sign.expression.literalType : nil
    }
    if self.is(IntegerLiteralExprSyntax.self) { return ("Int", "IntegerLiteralType") }
    if self.is(FloatLiteralExprSyntax.self) { return ("Double", "FloatLiteralType") }
    if self.is(BooleanLiteralExprSyntax.self) { return ("Bool", "BooleanLiteralType") }
    return self.is(StringLiteralExprSyntax.self) ? ("String", "StringLiteralType") : nil
  }
}
