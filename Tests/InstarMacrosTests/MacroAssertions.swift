import InstarMacroExpansion
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

/// All macros, under the names people write.
private let macros: [String: MacroSpec] = [
  "Attribute": MacroSpec(type: AttributeMacro.self),
  "Column": MacroSpec(type: ColumnMacro.self),
  "Index": MacroSpec(type: ConstraintMacro.self),
  "InstarPlugin": MacroSpec(type: InstarPluginMacro.self),
  "ModelActor": MacroSpec(
    type: ModelActorMacro.self,
    conformances: [TypeSyntax(IdentifierTypeSyntax(name: .identifier("ModelActor")))]),
  "Model": MacroSpec(
    type: ModelMacro.self,
    conformances: [TypeSyntax(IdentifierTypeSyntax(name: .identifier("PersistentModel")))]),
  "Predicate": MacroSpec(type: PredicateMacro.self),
  "Relationship": MacroSpec(type: RelationshipMacro.self),
  "Table": MacroSpec(type: TableMacro.self),
  "Transient": MacroSpec(type: TransientMacro.self),
  "Unique": MacroSpec(type: ConstraintMacro.self),
  "_PersistedProperty": MacroSpec(type: PersistedPropertyMacro.self),
]

/// Expands the macros of `source` and compares the whole outcome.
///
/// `@_PersistedProperty` is expanded only where the source has it: what `@Model` attaches is
/// qualified by its module, and stays visible in the expansion.
///
/// - Parameter isSubclass: whether the compiler would find that the model has its conformance from a superclass.
func expectExpansion(
  _ source: String, _ expanded: String, isSubclass: Bool = false,
  sourceLocation: Testing.SourceLocation = #_sourceLocation
) {
  var macros = macros
  if isSubclass { macros["Model"] = MacroSpec(type: ModelMacro.self) }
  assertMacroExpansion(
    source, expandedSource: expanded, macroSpecs: macros, indentationWidth: .spaces(2),
    failureHandler: { Issue.record(Comment(rawValue: $0.message), sourceLocation: sourceLocation) })
}

/// Expands the macros of `source` and compares what they report, and the source with all fix-its
/// applied.
///
/// What the source expands to in spite of its problems is left open: it never gets to run.
///
/// - Parameters:
///   - fixed: The source with the fix-its applied; `nil` where none is offered.
///   - isSubclass: whether the compiler would find that the model has its conformance from a superclass.
func expectDiagnostics(
  _ source: String, _ diagnostics: [DiagnosticSpec], fixed: String? = nil,
  isSubclass: Bool = false, sourceLocation: Testing.SourceLocation = #_sourceLocation
) {
  var macros = macros
  if isSubclass { macros["Model"] = MacroSpec(type: ModelMacro.self) }
  assertMacroExpansion(
    source, expandedSource: "", diagnostics: diagnostics.map(withPage), macroSpecs: macros,
    fixedSource: fixed ?? source, indentationWidth: .spaces(2),
    failureHandler: { failure in
      if failure.message.hasPrefix(differentExpansion) { return }
      Issue.record(Comment(rawValue: failure.message), sourceLocation: sourceLocation)
    })
}

/// The diagnostic with its note: each one names the page of the documentation about it.
private func withPage(_ diagnostic: DiagnosticSpec) -> DiagnosticSpec {
  let section =
    diagnostic.message.hasPrefix("'#InstarPlugin'")
    ? "The-plugin"
    : diagnostic.severity == .warning
      ? "If-changing-the-import-line-is-not-enough" : "Where-Instar-is-stricter"
  let page = "file:///usr/share/doc/instar/html/FromSwiftDataToInstar.html#\(section)"
  return DiagnosticSpec(
    message: diagnostic.message, line: diagnostic.line, column: diagnostic.column,
    severity: diagnostic.severity, highlights: diagnostic.highlights,
    notes: [
      NoteSpec(
        message: "see \(page) (package instar-doc)", line: diagnostic.line,
        column: diagnostic.column)
    ], fixIts: diagnostic.fixIts)
}

/// How `assertMacroExpansion` begins its report that the expanded source is another one.
private let differentExpansion =
  "Macro expansion did not produce the expected expanded source"
