import SwiftSyntax

/// The names of properties that code of a module may assign other than in the initializer that first sets them.
///
/// A name that is missing here costs time only: the compiler refuses an assignment to a property without a setter, and
/// then compiles the sources as they are.
struct AssignedNames {
  private let names: Set<String>

  init(in files: [SourceFileSyntax]) {
    let reader = ReferenceReader(viewMode: .sourceAccurate)
    for file in files { reader.walk(file) }
    names = reader.names
  }

  func contains(_ name: String) -> Bool { names.contains(name) }
}

/// Collects every name that an expression mentions, and those of properties that a protocol requires.
private final class ReferenceReader: SyntaxVisitor {
  private(set) var names: Set<String> = []
  /// The parameters of the initializer that is read.
  private var parameters: Set<String> = []

  override func visit(_ node: DeclReferenceExprSyntax) -> SyntaxVisitorContinueKind {
    let name = node.baseName.identifier?.name ?? node.baseName.text
    let isMember = node.parent?.is(MemberAccessExprSyntax.self) ?? false
    if isMember || !parameters.contains(name) { names.insert(name) }
    return .visitChildren
  }

  override func visit(_ node: ProtocolDeclSyntax) -> SyntaxVisitorContinueKind {
    for member in node.memberBlock.members {
      guard let variable = member.decl.as(VariableDeclSyntax.self) else { continue }
      names.formUnion(variable.bindings.compactMap(\.name))
    }
    return .visitChildren
  }

  override func visit(_ node: InitializerDeclSyntax) -> SyntaxVisitorContinueKind {
    guard !node.modifiers.contains(.convenience), let body = node.body else {
      return .visitChildren
    }
    walk(node.signature)
    let outer = parameters
    parameters = Set(
      node.signature.parameterClause.parameters.compactMap {
        ($0.secondName ?? $0.firstName).identifier?.name
      })
    for statement in body.statements { read(statement) }
    parameters = outer
    return .skipChildren
  }

  /// Reads all of a statement but the property that it sets.
  private func read(_ statement: CodeBlockItemSyntax) {
    guard let parts = statement.item.as(SequenceExprSyntax.self).map({ Array($0.elements) }),
      parts.count > 2, parts[1].is(AssignmentExprSyntax.self), parts[0].isPropertyOfSelf
    else {
      walk(statement)
      return
    }
    for part in parts.dropFirst(2) { walk(part) }
  }
}

extension ExprSyntax {
  /// Whether the expression is `self.title` or `title`.
  fileprivate var isPropertyOfSelf: Bool {
    guard let member = self.as(MemberAccessExprSyntax.self) else {
      return self.is(DeclReferenceExprSyntax.self)
    }
    return member.base?.as(DeclReferenceExprSyntax.self)?.baseName.tokenKind == .keyword(.self)
  }
}
