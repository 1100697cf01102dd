import SwiftSyntax

/// The names of properties that code of a module may assign other than in the initializer that first sets them.
///
/// If a name is missing here, the compiler refuses the assignment, and `plugin build` compiles the sources as they are.
/// Assignments by key paths that code finds only when it runs do not show here: for these see `KeyPathNames`.
struct AssignedNames {
  private let names: Set<String>
  /// What initializers of models set.
  private let namesInInitializers: Set<String>

  init(in files: [SourceFileSyntax]) {
    let reader = ReferenceReader(viewMode: .sourceAccurate)
    for file in files { reader.walk(file) }
    names = reader.names
    namesInInitializers = reader.namesInInitializers
  }

  /// Whether code may call the setter of a property of this name.
  ///
  /// - Parameter hasInitialValue: Whether the property is set already when an initializer of its class begins.
  func contains(_ name: String, hasInitialValue: Bool) -> Bool {
    names.contains(name) || hasInitialValue && namesInInitializers.contains(name)
  }
}

/// Collects every name that an expression mentions, and those of properties that a protocol requires.
private final class ReferenceReader: SyntaxVisitor {
  private(set) var names: Set<String> = []
  /// The properties that initializers of models set once, which `names` may have too.
  private(set) var namesInInitializers: Set<String> = []
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
    guard node.isOfModel, node.isDesignated, let body = node.body else {
      return .visitChildren
    }
    walk(node.signature)
    let outer = parameters
    parameters = Set(
      node.signature.parameterClause.parameters.compactMap {
        ($0.secondName ?? $0.firstName).identifier?.name
      })
    var set: Set<String> = []
    for statement in body.statements {
      guard let assignment = Assignment(statement) else {
        walk(statement)
        continue
      }
      // The second time it is the setter that is called.
      if !set.insert(assignment.property).inserted { names.insert(assignment.property) }
      for part in assignment.value { walk(part) }
    }
    namesInInitializers.formUnion(set)
    parameters = outer
    return .skipChildren
  }
}

/// `self.title = value` or `title = value`.
private struct Assignment {
  let property: String
  let value: ArraySlice<ExprSyntax>

  init?(_ statement: CodeBlockItemSyntax) {
    guard let parts = statement.item.as(SequenceExprSyntax.self).map({ Array($0.elements) }),
      parts.count > 2, parts[1].is(AssignmentExprSyntax.self),
      let property = parts[0].propertyOfSelf
    else { return nil }
    self.property = property
    value = parts.dropFirst(2)
  }
}

extension InitializerDeclSyntax {
  /// Whether the initializer is in the body of a model.
  fileprivate var isOfModel: Bool {
    let block = parent?.parent?.parent?.as(MemberBlockSyntax.self)
    return block?.parent?.as(ClassDeclSyntax.self)?.attributes.contains(named: "Model") ?? false
  }
}

extension ExprSyntax {
  /// The name in `self.title` or `title`.
  fileprivate var propertyOfSelf: String? {
    let reference: DeclReferenceExprSyntax
    if let member = self.as(MemberAccessExprSyntax.self) {
      guard member.base?.as(DeclReferenceExprSyntax.self)?.baseName.tokenKind == .keyword(.self)
      else { return nil }
      reference = member.declName
    } else if let name = self.as(DeclReferenceExprSyntax.self) {
      reference = name
    } else {
      return nil
    }
    return reference.baseName.identifier?.name
  }
}
