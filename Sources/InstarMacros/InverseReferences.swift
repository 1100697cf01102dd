import SwiftSyntax

/// Which relationship names which other one as its inverse.
///
/// If both sides do, the macro of each needs the expansion of the other, and the compiler refuses them. Without macros
/// it would not, and a plan would compile here that an editor refuses.
struct InverseReferences {
  fileprivate struct Property: Hashable {
    /// The type around the class, which in a plan is the version; empty at file scope.
    var scope: String
    var model: String
    var name: String
  }

  fileprivate var inverses: [Property: [Property]] = [:]
  /// The names of the classes that the sources declare.
  private var classes: Set<String> = []

  init(in files: [SourceFileSyntax]) {
    let reader = InverseReader(viewMode: .sourceAccurate)
    for file in files { reader.walk(file) }
    inverses = reader.inverses
    classes = reader.classes
  }

  /// Whether some relationship may name itself, over any number of others. An inverse of a model that is not among the
  /// classes may be one of them by a type alias.
  var mayBeCircular: Bool {
    inverses.values.joined().contains { !classes.contains($0.model) } || areCircular
  }

  private var areCircular: Bool {
    inverses.keys.contains { start in
      var reached: Set<Property> = []
      var next = inverses[start] ?? []
      while let property = next.popLast() {
        if property == start { return true }
        if reached.insert(property).inserted { next += inverses[property] ?? [] }
      }
      return false
    }
  }
}

private final class InverseReader: SyntaxVisitor {
  private(set) var inverses: [InverseReferences.Property: [InverseReferences.Property]] = [:]
  private(set) var classes: Set<String> = []

  override func visit(_ node: ClassDeclSyntax) -> SyntaxVisitorContinueKind {
    if let name = node.name.identifier?.name { classes.insert(name) }
    return .visitChildren
  }

  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind {
    guard node.simpleName == "Relationship",
      let arguments = node.arguments?.as(LabeledExprListSyntax.self),
      let path = arguments.first(where: { $0.label?.text == "inverse" })?.expression
        .as(KeyPathExprSyntax.self),
      let variable = node.ancestor(VariableDeclSyntax.self),
      let name = variable.bindings.first?.name,
      let model = variable.ancestor(ClassDeclSyntax.self), path.names.count > 1
    else { return .skipChildren }
    let scope = model.enclosingTypeName
    let property = InverseReferences.Property(scope: scope, model: model.name.text, name: name)
    let names = path.names.suffix(3)
    let inverse = InverseReferences.Property(
      scope: names.count == 3 ? names[names.startIndex] : scope,
      model: names[names.endIndex - 2], name: names[names.endIndex - 1])
    inverses[property, default: []].append(inverse)
    return .skipChildren
  }
}

extension KeyPathExprSyntax {
  /// The names in the path: `V2`, `Book` and `shelf` of `\V2.Book.shelf?`.
  fileprivate var names: [String] {
    tokens(viewMode: .sourceAccurate).compactMap { $0.identifier?.name }
  }
}

extension SyntaxProtocol {
  fileprivate func ancestor<Node: SyntaxProtocol>(_ type: Node.Type) -> Node? {
    sequence(first: parent, next: { $0?.parent }).lazy.prefix { $0 != nil }
      .compactMap { $0?.as(type) }.first
  }

  /// The last name of the type that is declared or extended around the node; empty at file scope.
  fileprivate var enclosingTypeName: String {
    let group = sequence(first: parent, next: { $0?.parent }).lazy.prefix { $0 != nil }
      .compactMap { $0?.asProtocol((any DeclGroupSyntax).self) }.first
    if let extended = group?.as(ExtensionDeclSyntax.self) { return extended.extendedType.lastName }
    return group?.asProtocol((any NamedDeclSyntax).self)?.name.text ?? ""
  }
}
