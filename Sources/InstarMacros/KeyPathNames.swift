import SwiftSyntax

/// The names of properties in the key paths that code of a module may create. Such a property has a setter, because
/// code may write through its key path.
///
/// Swift makes key paths of `\.title`, of the arguments of macros such as `#Predicate`, and of any `.title` whose type
/// looks up members by key paths. All other key paths are parts of these.
struct KeyPathNames {
  private var names: Set<String> = []

  init(in files: [SourceFileSyntax]) {
    let reader = KeyPathReader(viewMode: .sourceAccurate)
    for file in files { reader.walk(file) }
    names = reader.names
  }

  /// Whether a key path may name a property of this name.
  func contains(_ name: String) -> Bool {
    names.contains(name) || !names.isDisjoint(with: Self.sourcesOfAnyName)
  }

  /// An attribute with which `.title` may be a key path, and members whose values are key paths.
  private static let sourcesOfAnyName = membersWithKeyPaths.union(["dynamicMemberLookup"])

  fileprivate static let membersWithKeyPaths: Set<String> = [
    "updatedAttributes", "tombstone", "keypath", "inverseKeyPath",
  ]
}

private final class KeyPathReader: SyntaxVisitor {
  private(set) var names: Set<String> = []

  private func addAll(in node: some SyntaxProtocol) -> SyntaxVisitorContinueKind {
    for token in node.tokens(viewMode: .sourceAccurate) {
      switch token.tokenKind {
      case .identifier, .keyword: names.insert(token.identifier?.name ?? token.text)
      default: break
      }
    }
    return .skipChildren
  }

  override func visit(_ node: KeyPathExprSyntax) -> SyntaxVisitorContinueKind { addAll(in: node) }
  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { addAll(in: node) }

  override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind {
    addAll(in: node)
  }

  override func visit(_ node: MacroExpansionDeclSyntax) -> SyntaxVisitorContinueKind {
    addAll(in: node)
  }

  override func visit(_ node: MemberAccessExprSyntax) -> SyntaxVisitorContinueKind {
    let name = node.declName.baseName.text
    if KeyPathNames.membersWithKeyPaths.contains(name) { names.insert(name) }
    return .visitChildren
  }
}
