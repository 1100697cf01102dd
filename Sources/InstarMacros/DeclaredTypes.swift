import SwiftSyntax

/// What the sources of a module declare, as far as it decides what the compiler would pass to the macros of a model.
///
/// Types are known by their last names, because several versions of a plan declare the same ones. A name that stands
/// for different kinds of types decides nothing.
struct DeclaredTypes {
  /// The last names of what each protocol inherits from.
  private var protocols: [String: [String]] = [:]
  /// Classes that `@Model` makes models.
  private var models: Set<String> = []
  /// All other names of types and macros, also those of type aliases. A generic parameter has its name only where no
  /// extension at file scope can name a class.
  private var others: Set<String> = []
  /// Types that an extension makes models.
  private var extendedToModels: Set<String> = []

  init(in files: [SourceFileSyntax]) {
    let reader = DeclarationReader(viewMode: .sourceAccurate)
    for file in files { reader.walk(file) }
    self = reader.found
  }

  fileprivate init() {}

  /// Whether the sources declare a type or macro of this name.
  func contains(_ name: String) -> Bool {
    protocols[name] != nil || models.contains(name) || others.contains(name)
  }

  /// From what a class inherits the conformance to `PersistentModel`.
  enum Ancestry {
    case none
    /// A model, as written.
    case model(String)
    /// Only the compiler knows: a type alias, a protocol that inherits from `PersistentModel`, a conformance of an
    /// extension.
    case undecided
  }

  func ancestry(of declaration: ClassDeclSyntax) -> Ancestry {
    guard !extendedToModels.contains(declaration.name.plainName) else { return .undecided }
    guard let inherited = declaration.inheritanceClause?.inheritedTypes.map(\.type),
      let first = inherited.first
    else { return .none }
    if let name = first.plainLastName, models.contains(name), protocols[name] == nil,
      !others.contains(name)
    {
      return inherited.dropFirst().allSatisfy(isOrdinaryProtocol)
        ? .model(first.trimmedDescription) : .undecided
    }
    return inherited.allSatisfy(isOrdinaryProtocol) ? .none : .undecided
  }

  /// Whether the type is certainly a protocol that does not make a class a model.
  private func isOrdinaryProtocol(_ type: TypeSyntax) -> Bool {
    type.plainLastName.map { isOrdinaryProtocol($0, below: []) } ?? false
  }

  private func isOrdinaryProtocol(_ name: String, below: Set<String>) -> Bool {
    guard !models.contains(name), !others.contains(name), !below.contains(name) else {
      return false
    }
    guard let inherited = protocols[name] else { return Self.ordinaryProtocols.contains(name) }
    return inherited.allSatisfy { isOrdinaryProtocol($0, below: below.union([name])) }
  }

  private static let ordinaryProtocols: Set<String> = [
    "AnyObject", "Codable", "Comparable", "CustomDebugStringConvertible", "CustomStringConvertible",
    "Decodable", "Encodable", "Equatable", "Hashable", "Identifiable", "Sendable",
  ]

  fileprivate mutating func add(_ declaration: ClassDeclSyntax) {
    if declaration.attributes.contains(named: "Model") {
      models.insert(declaration.name.plainName)
    } else {
      others.insert(declaration.name.plainName)
    }
  }

  fileprivate mutating func add(_ declaration: ProtocolDeclSyntax) {
    // A requirement such as `where Self: PersistentModel` does not show in the list.
    guard declaration.genericWhereClause == nil else {
      others.insert(declaration.name.plainName)
      return
    }
    let inherited = declaration.inheritanceClause?.inheritedTypes ?? []
    protocols[declaration.name.plainName, default: []] += inherited.map {
      $0.type.plainLastName ?? ""
    }
  }

  fileprivate mutating func add(_ declaration: ExtensionDeclSyntax) {
    let inherited = declaration.inheritanceClause?.inheritedTypes ?? []
    guard inherited.contains(where: { !isOrdinaryProtocol($0.type) }) else { return }
    extendedToModels.insert(declaration.extendedType.lastName)
  }

  fileprivate mutating func add(_ name: TokenSyntax) {
    others.insert(name.plainName)
  }
}

extension TypeSyntax {
  /// The last name of a type that is only a name: `Region` for `SchemaV1.Region`, `Sendable` for `@unchecked Sendable`.
  fileprivate var plainLastName: String? {
    if let attributed = self.as(AttributedTypeSyntax.self) {
      return attributed.baseType.plainLastName
    }
    if let member = self.as(MemberTypeSyntax.self) {
      return member.genericArgumentClause == nil ? member.name.plainName : nil
    }
    guard let identifier = self.as(IdentifierTypeSyntax.self) else { return nil }
    return identifier.genericArgumentClause == nil ? identifier.name.plainName : nil
  }
}

private final class DeclarationReader: SyntaxVisitor {
  var found = DeclaredTypes()

  override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node)
    return .visitChildren
  }

  override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node)
    return .visitChildren
  }

  override func visit(_ node: ExtensionDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node)
    return .visitChildren
  }

  override func visit(_ node: StructDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node.name)
    return .visitChildren
  }

  override func visit(_ node: EnumDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node.name)
    return .visitChildren
  }

  override func visit(_ node: ActorDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node.name)
    return .visitChildren
  }

  override func visit(_ node: TypeAliasDeclSyntax) -> SyntaxVisitorContinueKind {
    // `typealias Note = NotesSchemaV2.Note` names one of the types that have the name anyway.
    if node.initializer.value.plainLastName != node.name.plainName { found.add(node.name) }
    return .skipChildren
  }

  override func visit(_ node: MacroDeclSyntax) -> SyntaxVisitorContinueKind {
    found.add(node.name)
    return .skipChildren
  }
}

extension TokenSyntax {
  /// The name without backticks.
  fileprivate var plainName: String { identifier?.name ?? text }
}
