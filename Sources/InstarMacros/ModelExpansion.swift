import SwiftSyntax
import SwiftSyntaxBuilder

/// The members that `@Model` adds to a class.
///
/// They depend on inheritance:
/// - A final class without a superclass has its own storage and description.
/// - A class that is not final may have subclasses. Members that a subclass replaces are `class` or `required`, and its
///   properties are described for any subclass, because the key paths `\Country.name` and `\Region.name` differ.
/// - A subclass has a storage for all slots, the inherited ones first, besides the storage of its superclass. Before
///   `super.init` an initializer can only fill the former, so the first access afterwards joins the two.
struct ModelExpansion {
  let model: ModelDeclaration
  let classDeclaration: ClassDeclSyntax
  /// The model that the class inherits from, as written.
  let superclass: String?
  /// `"public "` if members must be public.
  let access: String
  /// The type of a property that no key path names; `nil` for all others.
  var typeInPlaceOfKeyPath: (ModelProperty) -> String? = { _ in nil }
  /// Whether the class gets an initializer for rows. Objects that have nothing in memory but their storage do not need
  /// it, and it would be a sixth of the build of a large plan. But the compiler does not show a macro what other macros
  /// add to the class.
  var hasRowInitializer = true

  private var name: String { model.name }
  private var isInheritable: Bool { !classDeclaration.modifiers.contains(.final) }
  /// The access of members that subclasses in other modules override.
  private var overridableAccess: String {
    classDeclaration.modifiers.contains(.open) ? "open " : access
  }

  var members: [DeclSyntax] {
    var members: [DeclSyntax] = [
      """
      private var _$storage: InstarModel.ModelStorage = \
      InstarModel.ModelStorage(\(raw: name)._modelDescriptor)
      """,
      storageProperty,
    ]
    members += descriptor
    if hasRowInitializer { members.append(initializer) }
    members += metadata
    if classDeclaration.mayTakePartInInheritance { members.append(firstSlot) }
    if let equality { members.append(equality) }
    return members
  }

  /// Forwards to the class's own `==`. If the conformance comes from a macro, the compiler (6.3) finds that operator
  /// twice and uses neither.
  private var equality: DeclSyntax? {
    let conforms = classDeclaration.inheritanceClause?.inheritedTypes.contains {
      ["Hashable", "Equatable"].contains($0.type.lastName)
    }
    let hasOperator = classDeclaration.memberBlock.members.contains {
      $0.decl.as(FunctionDeclSyntax.self)?.name.text == "=="
    }
    guard superclass == nil, hasOperator, conforms != true else { return nil }
    return """
      @_implements(Swift.Equatable, ==(_:_:))
      \(raw: access)static func _$isEqual(_ left: \(raw: name), _ right: \(raw: name)) -> Bool {
        left == right
      }
      """
  }

  // MARK: Storage

  private var storageProperty: DeclSyntax {
    superclass == nil
      ? "\(raw: overridableAccess)var _modelStorage: InstarModel.ModelStorage { _$storage }"
      : """
      \(raw: overridableAccess)override var _modelStorage: InstarModel.ModelStorage {
        _$storage.joined(with: super._modelStorage)
      }
      """
  }

  private var initializer: DeclSyntax {
    // Swift has set the others already, with their initial values.
    let properties = model.properties.filter { !$0.hasInitialValue }.map {
      "  \($0.backingName) = InstarModel.PersistedProperty()\n"
    }
    // Instar also creates instances of subclasses from rows.
    let required = isInheritable || superclass != nil ? "required " : ""
    let call = superclass == nil ? "" : "  super.init(_modelStorage: storage)\n"
    return """
      \(raw: required)\(raw: access)init(_modelStorage storage: InstarModel.ModelStorage) {
      \(raw: properties.joined())  self._$storage = storage
      \(raw: call)}
      """
  }

  private var firstSlot: DeclSyntax {
    superclass.map {
      """
      private static let _$firstSlot: Int = InstarModel.ModelDescriptor.slotCount(of: \(raw: $0).self)
      """
    } ?? "private static var _$firstSlot: Int { 0 }"
  }

  // MARK: Description

  private var descriptor: [DeclSyntax] {
    let entityName = classDeclaration.name.identifier?.name ?? name
    let inherited = superclass.map { ", superclass: \($0).self" } ?? ""
    let constraints = [
      ("uniqueness", model.uniqueGroups), ("indices", model.indexGroups),
      ("namedIndices", model.namedIndexGroups),
    ]
    .filter { !$0.1.isEmpty }.map { ", \($0.0): [\($0.1.joined(separator: ", "))]" }.joined()
    let table = model.table.map { ", table: InstarSchema.Schema.Table(\($0))" } ?? ""
    let call =
      "InstarModel.ModelDescriptor(\(name).self, name: "
      + "\(StringLiteralExprSyntax(content: entityName))\(originalName)\(inherited)\(constraints)\(table))"
    guard isInheritable || superclass != nil else {
      return [
        """
        \(raw: access)static let _modelDescriptor: InstarModel.ModelDescriptor = \(raw: call)
        """
      ]
    }
    // A stored static property cannot be overridden.
    return [
      """
      \(raw: overridableAccess)\(raw: overridable)var _modelDescriptor: InstarModel.ModelDescriptor { _$descriptor }
      """,
      """
      private static let _$descriptor: InstarModel.ModelDescriptor = \(raw: call)
      """,
    ]
  }

  /// The argument of `@Model(originalName: "Memo")`.
  private var originalName: String {
    for attribute in classDeclaration.attributes.all
    where attribute.attributeName.trimmedDescription.hasSuffix("Model") {
      if case .argumentList(let arguments) = attribute.arguments,
        let argument = arguments.first(where: { $0.label?.text == "originalName" })
      {
        return ", originalName: \(argument.expression.trimmedDescription)"
      }
    }
    return ""
  }

  private var overridable: String { superclass == nil ? "class " : "override class " }

  /// Called once in a process. The optimizer would need as long for it as for all other code of the model.
  private var metadata: [DeclSyntax] {
    func elements(_ type: String) -> String {
      model.properties.map { "    \(propertyMetadata($0, of: type)),\n" }.joined()
    }
    guard isInheritable || superclass != nil else {
      return [
        """
        @_optimize(none) \(raw: access)static var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
          [
        \(raw: elements(name))  ]
        }
        """
      ]
    }
    let inherited = superclass.map { "\($0)._$properties(\($0).self, of: type) + " } ?? ""
    return [
      """
      \(raw: overridableAccess)\(raw: overridable)var schemaMetadata: [InstarSchema.Schema.PropertyMetadata] {
        _$properties(\(raw: name).self, of: \(raw: name).self)
      }
      """,
      """
      @_optimize(none) \(raw: access)static func _$properties<_$Model: \(raw: name)>(
        _: \(raw: name).Type, of type: _$Model.Type
      ) -> [InstarSchema.Schema.PropertyMetadata] {
        \(raw: inherited)[
      \(raw: elements("_$Model"))  ]
      }
      """,
    ]
  }

  /// The element of `schemaMetadata` for `property`, with a key path from `type` or its own type.
  private func propertyMetadata(_ property: ModelProperty, of type: String) -> String {
    let label = property.marker?.isTransformable == true ? "transformable: " : ""
    var arguments = [
      "\(label)\(StringLiteralExprSyntax(content: property.name))",
      typeInPlaceOfKeyPath(property).map { "(\($0)).self" } ?? "\\\(type).\(property.codeName)",
    ]
    switch property.marker?.kind {
    case .attribute:
      arguments.append("InstarModel.AttributeMetadata(\(property.marker?.arguments ?? ""))")
    case .relationship:
      arguments.append("InstarModel.RelationshipMetadata(\(property.marker?.arguments ?? ""))")
    case .transient, .column, nil:
      break
    }
    if let defaultValue = property.defaultValue, defaultValue.isConstant {
      // An optional property without an initial value has the same description as one with `nil`.
      if !defaultValue.is(NilLiteralExprSyntax.self) {
        arguments.append("constant: \(defaultValue)")
      }
    } else if let defaultValue = property.defaultValue {
      let type = property.type.map { ": \($0)" } ?? ""
      // The constant gives an expression such as `.now` or `[]` its type. No expression can contain its name.
      arguments.append(
        "defaultValue: {\nlet _$value\(type) = \(defaultValue)\nreturn _$value\n}")
    }
    let column =
      property.column.map { ".column(InstarSchema.Schema.Column(\($0.arguments)))" } ?? ""
    return "InstarSchema.Schema.PropertyMetadata(\(arguments.joined(separator: ", ")))\(column)"
  }
}

extension ClassDeclSyntax {
  /// Whether an object of the class has nothing in memory but the storage that `@Model` adds. The class must also have
  /// a designated initializer of the author's: without one, Swift would add one or refuse the class.
  ///
  /// - Parameter model: The persisted properties, which are in the storage.
  func isStorageOnly(_ model: ModelDeclaration) -> Bool {
    guard !mayTakePartInInheritance else { return false }
    let members = memberBlock.members.map(\.decl)
    return members.contains { $0.as(InitializerDeclSyntax.self)?.isDesignated ?? false }
      && members.allSatisfy { member in
        // The condition of `#if` is not evaluated, so its members are unknown.
        if member.is(IfConfigDeclSyntax.self) || member.mayHaveMacro { return false }
        guard let variable = member.as(VariableDeclSyntax.self) else { return true }
        return !variable.isInstanceProperty || !variable.storesValue
          || model.slot(of: variable) != nil
      }
  }

  /// Whether the class may inherit from a model or have subclasses. The first name of an inheritance clause may be a
  /// class or a protocol; the syntax does not show which.
  var mayTakePartInInheritance: Bool {
    inheritanceClause != nil || !modifiers.contains(.final)
  }
}

extension DeclSyntax {
  /// Whether the declaration has an attribute that may be a macro, which may add a stored property beside it.
  fileprivate var mayHaveMacro: Bool {
    guard let attributes = asProtocol((any WithAttributesSyntax).self)?.attributes else {
      return false
    }
    return !attributes.allSatisfy { element in
      guard case .attribute(let attribute) = element else { return false }
      return attribute.isBuiltIn || PropertyMarker(attribute) != nil
    }
  }
}

extension AttributeSyntax {
  /// The attributes of the compiler that a class or its members can have. All others may be macros or property
  /// wrappers, whose names may begin with a small letter too.
  private static let builtIn: Set = [
    "available", "backDeployed", "concurrent", "discardableResult", "dynamicCallable",
    "dynamicMemberLookup", "exclusivity", "frozen", "inlinable", "inline", "nonobjc", "objc",
    "objcMembers", "preconcurrency", "propertyWrapper", "resultBuilder", "safe",
    "specialized", "storageRestrictions", "unsafe", "usableFromInline", "warn_unqualified_access",
  ]

  /// Whether the compiler itself knows the attribute.
  var isBuiltIn: Bool {
    guard let name = attributeName.as(IdentifierTypeSyntax.self)?.name.text else { return false }
    return Self.builtIn.contains(name)
  }
}

extension InitializerDeclSyntax {
  var isDesignated: Bool { !modifiers.contains(.convenience) }
}
