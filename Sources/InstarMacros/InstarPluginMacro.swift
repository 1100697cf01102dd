import SwiftDiagnostics
public import SwiftSyntax
import SwiftSyntaxBuilder
public import SwiftSyntaxMacros

/// `#InstarPlugin(A.self, …)`: makes a shared library an Instar plugin.
///
/// Declares the C entry point that the worker calls to get the plans, and the note with which other programs list the
/// plans without loading the library.
public struct InstarPluginMacro: DeclarationMacro {
  public static func expansion(
    of node: some FreestandingMacroExpansionSyntax,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard context.lexicalContext.isEmpty else {
      context.report(Diagnostic(node: node, message: Problem.pluginNotAtFileScope))
      return []
    }
    guard let names = planNames(node, in: context) else { return [] }
    let note = PluginNote(compilerVersion: PluginNote.sdkCompilerVersion, planNames: names)
    let words = note.words
    let types = words.map { _ in "UInt32" }
    let plans = names.map { "\($0).self" }
    return [
      """
      @_cdecl("instar_plugin_plans")
      public func instar_plugin_plans() -> UnsafeMutableRawPointer {
        InstarModel.PluginPlans.retained([\(raw: plans.joined(separator: ", "))])
      }
      """,
      """
      @section("\(raw: PluginNote.sectionName)") @used
      let instar_plugin_note: (\(raw: types.joined(separator: ", "))) = (
      \(raw: lines(of: words))
      )
      """,
    ]
  }

  /// Returns the plans as written, without `.self`, or `nil` after reporting an error.
  private static func planNames(
    _ node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
  ) -> [String]? {
    if node.arguments.isEmpty {
      context.report(Diagnostic(node: node, message: Problem.pluginWithoutPlans))
      return nil
    }
    var names: [String] = []
    var isValid = true
    for argument in node.arguments {
      guard let name = typeName(argument.expression) else {
        context.report(withoutSelf(argument.expression))
        isValid = false
        continue
      }
      if names.contains(name) {
        context.report(
          Diagnostic(node: argument, message: Problem.pluginPlanNamedTwice(name: name)))
        isValid = false
      }
      names.append(name)
    }
    return isValid ? names : nil
  }

  /// `NotesMigrationPlan` for `NotesMigrationPlan.self`, `nil` for any other expression.
  private static func typeName(_ expression: ExprSyntax) -> String? {
    guard
      let access = expression.as(MemberAccessExprSyntax.self),
      access.declName.baseName.tokenKind == .keyword(.self),
      let base = access.base
    else { return nil }
    // A line break in a name would split it into two names in the note.
    return base.trimmedDescription.filter { !$0.isWhitespace }
  }

  private static func withoutSelf(_ expression: ExprSyntax) -> Diagnostic {
    let isName =
      expression.is(DeclReferenceExprSyntax.self)
      || expression.is(MemberAccessExprSyntax.self)
    return Diagnostic(
      node: expression,
      message: Problem.pluginPlanWithoutSelf(expression: expression.trimmedDescription),
      fixIts: isName ? [.insert(".self", after: expression, message: .appendSelf)] : [])
  }

  /// The words as hexadecimal literals, eight to a line.
  private static func lines(of words: [UInt32]) -> String {
    stride(from: 0, to: words.count, by: 8).map { start in
      let line = words[start..<min(start + 8, words.count)].map(hexadecimal)
      return "  " + line.joined(separator: ", ")
    }.joined(separator: ",\n")
  }

  private static func hexadecimal(_ word: UInt32) -> String {
    let digits = String(word, radix: 16, uppercase: true)
    return "0x" + String(repeating: "0", count: 8 - digits.count) + digits
  }
}
