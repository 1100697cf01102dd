import Glibc
import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// Runs the compiler plugin, or expands the models of whole files for `instarctl plugin build`.
@main
enum InstarMacrosProgram {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    // The compiler passes no arguments.
    if arguments.first == "expand" {
      exit(ExpandedFiles(paths: Array(arguments.dropFirst())).write() ? 0 : 1)
    }
    try InstarMacrosPlugin.main()
  }
}

/// The compiler plugin. The compiler finds a macro by the name of its type.
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
