import SwiftDiagnostics
import SwiftSyntaxMacros

/// The section of the documentation that explains a problem, as a note below its message.
///
/// A diagnostic can have a category with an address, but the compiler (6.3) takes none from a macro.
enum DocumentationPage: String {
  case plugin = "The-plugin"
  case stricterRules = "Where-Instar-is-stricter"
  case withoutEffect = "If-changing-the-import-line-is-not-enough"

  init(_ problem: any DiagnosticMessage) {
    switch problem as? Problem {
    case .pluginNotAtFileScope, .pluginPlanNamedTwice, .pluginPlanWithoutSelf, .pluginWithoutPlans:
      self = .plugin
    default:
      self = problem.severity == .warning ? .withoutEffect : .stricterRules
    }
  }
}

extension DocumentationPage: NoteMessage {
  var message: String {
    "see file:///usr/share/doc/instar/html/FromSwiftDataToInstar.html#\(rawValue) (package instar-doc)"
  }

  var noteID: MessageID { MessageID(domain: "InstarMacros", id: rawValue) }
}

extension MacroExpansionContext {
  /// Reports a problem, with the page that explains it.
  func report(_ diagnostic: Diagnostic) {
    diagnose(
      Diagnostic(
        node: diagnostic.node, position: diagnostic.position, message: diagnostic.diagMessage,
        highlights: diagnostic.highlights,
        notes: diagnostic.notes + [
          Note(
            node: diagnostic.node, position: diagnostic.position,
            message: DocumentationPage(diagnostic.diagMessage))
        ],
        fixIts: diagnostic.fixIts))
  }
}
