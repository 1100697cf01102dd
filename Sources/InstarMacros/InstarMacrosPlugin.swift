import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// The compiler plugin. The compiler finds a macro by the name of its type.
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
