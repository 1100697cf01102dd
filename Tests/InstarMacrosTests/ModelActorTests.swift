import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("@ModelActor")
struct ModelActorTests {
  @Test(
    "@ModelActor gives an actor its container, its executor and an initializer, as visible as the actor"
  )
  func actor() {
    expectExpansion(
      """
      @ModelActor public actor Importer {
        func run() {}
      }
      """,
      """
      public actor Importer {
        func run() {}

        nonisolated public let modelExecutor: any InstarModel.ModelExecutor

        nonisolated public let modelContainer: InstarModel.ModelContainer

        public init(modelContainer: InstarModel.ModelContainer) {
          let modelContext = InstarModel.ModelContext(modelContainer)
          self.modelExecutor = InstarModel.DefaultSerialModelExecutor(modelContext: modelContext)
          self.modelContainer = modelContainer
        }
      }

      extension Importer: InstarModel.ModelActor {
      }
      """)
  }

  @Test(
    "@ModelActor leaves the initializer to the actor",
    arguments: [
      ("@ModelActor(disableGenerateInit: true)", "init(_ container: ModelContainer) {}"),
      ("@ModelActor", "init(modelContainer: ModelContainer) {}"),
    ])
  func ownInitializer(attribute: String, initializer: String) {
    expectExpansion(
      """
      \(attribute) actor Importer {
        \(initializer)
      }
      """,
      """
      actor Importer {
        \(initializer)

        nonisolated let modelExecutor: any InstarModel.ModelExecutor

        nonisolated let modelContainer: InstarModel.ModelContainer
      }

      extension Importer: InstarModel.ModelActor {
      }
      """)
  }

  @Test("@ModelActor refuses a class, and offers an actor")
  func ofAClass() {
    expectDiagnostics(
      "@ModelActor class Importer {}",
      [
        DiagnosticSpec(
          message: """
            '@ModelActor' can only be applied to an actor, because only one thread at a \
            time can use a context.
            """,
          line: 1, column: 13, fixIts: [FixItSpec(message: "replace with 'actor'")])
      ],
      fixed: "@ModelActor actor Importer {}")
  }
}
