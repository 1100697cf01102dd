import SwiftSyntax

extension SyntaxProtocol {
  /// The white space before the node on its line; `nil` if the node does not begin a line.
  var indentation: String? {
    let lines = leadingTrivia.description.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.count > 1 ? lines.last.map(String.init) : nil
  }
}

extension SyntaxProtocol {
  /// Whether the node contains `Self`, which has another meaning inside a nested type.
  var mentionsSelf: Bool {
    tokens(viewMode: .sourceAccurate).contains { $0.tokenKind == .keyword(.Self) }
  }
}

extension ExprSyntax {
  /// Whether the expression is a literal number, text or truth value.
  var isLiteral: Bool {
    self.is(IntegerLiteralExprSyntax.self) || self.is(FloatLiteralExprSyntax.self)
      || self.is(StringLiteralExprSyntax.self) || self.is(BooleanLiteralExprSyntax.self)
  }
}

extension ExprSyntax {
  /// Whether the expression has the same value at each evaluation: a literal, `nil`, or an empty collection.
  var isConstant: Bool {
    if let sign = self.as(PrefixOperatorExprSyntax.self) {
      return sign.operator.text == "-" && sign.expression.isLiteral
    }
    if let text = self.as(StringLiteralExprSyntax.self) {
      return text.segments.allSatisfy { $0.is(StringSegmentSyntax.self) }
    }
    return isLiteral || self.is(NilLiteralExprSyntax.self)
      || self.as(ArrayExprSyntax.self)?.elements.isEmpty == true
      || self.as(DictionaryExprSyntax.self)?.content.is(TokenSyntax.self) == true
  }
}

extension AttributeSyntax {
  /// The attribute's name without its module: `Model` for both `@Model` and `@Instar.Model`.
  var simpleName: String? {
    if let identifier = attributeName.as(IdentifierTypeSyntax.self) {
      return identifier.name.text
    }
    return attributeName.as(MemberTypeSyntax.self)?.name.text
  }
}

extension AttributeListSyntax {
  /// The attributes, also those in `#if`: their conditions are the compiler's.
  var all: [AttributeSyntax] {
    flatMap { element -> [AttributeSyntax] in
      switch element {
      case .attribute(let attribute): [attribute]
      case .ifConfigDecl(let condition):
        condition.clauses.flatMap { clause -> [AttributeSyntax] in
          if case .attributes(let list) = clause.elements { list.all } else { [] }
        }
      }
    }
  }

  func first(named name: String) -> AttributeSyntax? { all.first { $0.simpleName == name } }

  func contains(named name: String) -> Bool { first(named: name) != nil }
}

extension DeclModifierListSyntax {
  func contains(_ keywords: Keyword...) -> Bool {
    contains { modifier in
      // `private(set)` does not limit who may read.
      modifier.detail == nil && keywords.contains { modifier.name.tokenKind == .keyword($0) }
    }
  }

  /// The modifier that makes a member as visible as its type, with a space after it.
  ///
  /// The requirements of a protocol must be as visible as the type that conforms. Below `package`, a member is so
  /// without a modifier.
  var memberAccess: String {
    if contains(.public, .open) {
      "public "
    } else if contains(.package) {
      "package "
    } else {
      ""
    }
  }
}

extension VariableDeclSyntax {
  var isInstanceProperty: Bool { !modifiers.contains(.static, .class) }
  var isLazy: Bool { modifiers.contains(.lazy) }

  /// Whether a binding of the variable has memory, not only a getter.
  var storesValue: Bool { bindings.contains { !$0.isComputed } }

  /// `weak`, `unowned` or `unowned(unsafe)`, if the variable is one of these.
  var referenceModifier: DeclModifierSyntax? {
    modifiers.first { [.keyword(.weak), .keyword(.unowned)].contains($0.name.tokenKind) }
  }

  /// The markers on the variable, in source order.
  var markers: [PropertyMarker] {
    attributes.compactMap { element in
      if case .attribute(let attribute) = element { PropertyMarker(attribute) } else { nil }
    }
  }
}

extension PatternBindingSyntax {
  /// The declared name without backticks; `nil` for a tuple or wildcard pattern.
  var name: String? {
    pattern.as(IdentifierPatternSyntax.self)?.identifier.identifier?.name
  }

  /// Whether the binding has an accessor other than observers.
  var isComputed: Bool {
    switch accessorBlock?.accessors {
    case nil: false
    case .getter: true
    case .accessors(let accessors): !accessors.allSatisfy(\.isObserver)
    }
  }

  var hasObservers: Bool {
    if case .accessors(let accessors) = accessorBlock?.accessors {
      accessors.contains(where: \.isObserver)
    } else {
      false
    }
  }
}

extension AccessorDeclSyntax {
  fileprivate var isObserver: Bool {
    [.keyword(.willSet), .keyword(.didSet)].contains(accessorSpecifier.tokenKind)
  }
}

extension TypeSyntax {
  /// Whether Swift initializes a variable of this type with `nil`: only if the type is written with `?` or `!`, not as
  /// `Optional<…>` or a type alias.
  var isImplicitlyNil: Bool {
    self.is(OptionalTypeSyntax.self) || self.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
  }

  /// Whether the name of the type shows that it can be stored, so the compiler does not need to check it.
  var isEvidentlyStorable: Bool {
    if let optional = self.as(OptionalTypeSyntax.self) {
      return optional.wrappedType.isEvidentlyStorable
    }
    if let array = self.as(ArrayTypeSyntax.self) { return array.element.isEvidentlyStorable }
    return Self.plainTypes.contains(trimmedDescription)
  }

  private static let plainTypes: Set<String> = [
    "String", "Bool", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32",
    "UInt64", "Double", "Float", "Decimal", "Date", "UUID", "URL", "Data",
  ]
}

extension IfConfigDeclSyntax {
  /// The members of all clauses, whatever their conditions.
  fileprivate var members: [MemberBlockItemSyntax] {
    clauses.flatMap { clause -> [MemberBlockItemSyntax] in
      if case .decls(let members) = clause.elements { Array(members) } else { [] }
    }
  }

  var storedInstanceProperties: [VariableDeclSyntax] {
    members.flatMap { member -> [VariableDeclSyntax] in
      if let nested = member.decl.as(IfConfigDeclSyntax.self) {
        return nested.storedInstanceProperties
      }
      guard
        let variable = member.decl.as(VariableDeclSyntax.self),
        variable.isInstanceProperty, variable.storesValue, !variable.isLazy,
        !variable.markers.contains(where: { $0.kind == .transient })
      else { return [] }
      return [variable]
    }
  }

  fileprivate var containsInitializer: Bool {
    members.contains(where: \.isOrContainsInitializer)
  }
}

extension MemberBlockItemListSyntax {
  var containsInitializer: Bool {
    contains(where: \.isOrContainsInitializer)
  }
}

extension MemberBlockItemSyntax {
  fileprivate var isOrContainsInitializer: Bool {
    decl.is(InitializerDeclSyntax.self)
      || decl.as(IfConfigDeclSyntax.self)?.containsInitializer == true
  }
}
