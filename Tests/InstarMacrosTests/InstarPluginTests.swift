import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("#InstarPlugin")
struct InstarPluginTests {
  @Test("#InstarPlugin expands two plans to the entry point and a note that names them")
  func twoPlans() {
    // Six words of header, name and ABI number; then, as little-endian text,
    // "6.3\nNotesMigrationPlan\nOuter.OtherPlan\0\0". The first line follows the compiler in use.
    expectExpansion(
      """
      #InstarPlugin(NotesMigrationPlan.self, Outer.OtherPlan.self)
      """,
      """
      @_cdecl("instar_plugin_plans")
      public func instar_plugin_plans() -> UnsafeMutableRawPointer {
        InstarModel.PluginPlans.retained([NotesMigrationPlan.self, Outer.OtherPlan.self])
      }
      @section(".note.instar") @used
      let instar_plugin_note: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (
        0x00000007, 0x0000002C, 0x00000001, 0x74736E49, 0x00007261, 0x00000005, 0x0A332E36, 0x65746F4E,
        0x67694D73, 0x69746172, 0x6C506E6F, 0x4F0A6E61, 0x72657475, 0x68744F2E, 0x6C507265, 0x00006E61
      )
      """)
  }

  @Test("#InstarPlugin refuses to name no plan")
  func withoutPlans() {
    expectDiagnostics(
      "#InstarPlugin()",
      [
        DiagnosticSpec(
          message: """
            '#InstarPlugin' needs at least one migration plan; write \
            '#InstarPlugin(NotesMigrationPlan.self)'.
            """,
          line: 1, column: 1)
      ])
  }

  @Test("#InstarPlugin refuses a plan without '.self' and offers to append it")
  func withoutSelf() {
    expectDiagnostics(
      "#InstarPlugin(Outer.NotesMigrationPlan)",
      [
        DiagnosticSpec(
          message: """
            '#InstarPlugin' takes the names of types, followed by '.self'; write the plan's type \
            instead of 'Outer.NotesMigrationPlan', as in '#InstarPlugin(NotesMigrationPlan.self)'.
            """,
          line: 1, column: 15, fixIts: [FixItSpec(message: "append '.self'")])
      ],
      fixed: "#InstarPlugin(Outer.NotesMigrationPlan.self)")
  }

  @Test("#InstarPlugin refuses an expression that is not a type")
  func expression() {
    expectDiagnostics(
      "#InstarPlugin(plans())",
      [
        DiagnosticSpec(
          message: """
            '#InstarPlugin' takes the names of types, followed by '.self'; write the plan's type \
            instead of 'plans()', as in '#InstarPlugin(NotesMigrationPlan.self)'.
            """,
          line: 1, column: 15)
      ])
  }

  @Test("#InstarPlugin refuses a plan that is named twice")
  func namedTwice() {
    expectDiagnostics(
      "#InstarPlugin(NotesMigrationPlan.self, NotesMigrationPlan.self)",
      [
        DiagnosticSpec(
          message: "'#InstarPlugin' names plan 'NotesMigrationPlan' twice; name each plan once.",
          line: 1, column: 40)
      ])
  }

  @Test("#InstarPlugin refuses to stand inside of a type")
  func insideType() {
    expectDiagnostics(
      """
      enum Notes {
        #InstarPlugin(NotesMigrationPlan.self)
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '#InstarPlugin' declares a C entry point; write it at file scope, outside of any type.
            """,
          line: 2, column: 3)
      ])
  }
}
