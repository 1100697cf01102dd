import SwiftDiagnostics
public import SwiftSyntax
public import SwiftSyntaxMacros

// The markers expand to nothing, because `@Model` reads them. Their own expansion only warns where they have no effect.

/// A marker on a property.
public protocol PropertyMarkerMacro: PeerMacro {}

extension PropertyMarkerMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    PropertyMarker(node)?.check(declaration, in: context)
    return []
  }
}

/// `@Attribute`: options and the former name of a property that holds a value.
public struct AttributeMacro: PropertyMarkerMacro {}

/// `@Relationship`: delete rule, inverse and limits of a property that references other models.
public struct RelationshipMacro: PropertyMarkerMacro {}

/// `@Transient`: keeps a property out of the store.
public struct TransientMacro: PropertyMarkerMacro {}

/// `@Column`: the column of a property in a plain store.
public struct ColumnMacro: PropertyMarkerMacro {}

/// `@Table`: the table of a model in a plain store.
public struct TableMacro: PeerMacro {
  public static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard declaration.as(ClassDeclSyntax.self)?.attributes.first(named: "Model") == nil else {
      return []
    }
    context.report(Diagnostic(node: node, message: Problem.tableOutsideModel))
    return []
  }
}

extension PropertyMarker {
  /// Reports if the marker has no effect on `declaration`.
  fileprivate func check(
    _ declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) {
    guard let problem = problem(on: declaration, in: context) else { return }
    context.report(
      Diagnostic(
        node: attribute, message: problem,
        fixIt: .remove(attribute, message: .removeMarker(kind))))
  }

  private func problem(
    on declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) -> Problem? {
    guard
      let variable = declaration.as(VariableDeclSyntax.self),
      let name = variable.bindings.first?.name
    else { return .markerOnOtherDeclaration(kind) }
    // `@Transient` says of a static or lazy property, which has memory, what is true anyway.
    if kind == .transient, !variable.isInstanceProperty || variable.isLazy { return nil }
    if !variable.isInstanceProperty {
      return .markerOnStaticProperty(kind, property: name)
    }
    if !variable.storesValue {
      return .markerOnComputedProperty(kind, property: name)
    }
    if variable.isLazy {
      return .markerOnLazyProperty(kind, property: name)
    }
    let isInModel =
      context.lexicalContext.first?.as(ClassDeclSyntax.self)?.attributes.contains(named: "Model")
    return isInModel == true ? nil : .markerOutsideModel(kind)
  }
}
