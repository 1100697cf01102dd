import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// What the compiler talks to: the macros this plugin can expand, found by their type names.
@main
struct InstarMacrosPlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    AttributeMacro.self,
    ColumnMacro.self,
    ConstraintMacro.self,
    InstarPluginMacro.self,
    ModelActorMacro.self,
    ModelMacro.self,
    PersistedPropertyMacro.self,
    PredicateMacro.self,
    RelationshipMacro.self,
    TableMacro.self,
    TransientMacro.self,
  ]
}
