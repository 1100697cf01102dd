import SwiftDiagnostics
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("@Model refuses")
struct ModelDiagnosticsTests {
  @Test("@Model refuses a struct, and offers a final class")
  func structure() {
    expectDiagnostics(
      """
      @Model struct Note {
        var title: String
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '@Model' cannot be applied to struct 'Note', because a row is one object that all \
            references to it share; write 'final class Note'.
            """,
          line: 1, column: 8, fixIts: [FixItSpec(message: "replace with 'final class'")])
      ],
      fixed: """
        @Model final class Note {
          var title: String
        }
        """)
  }

  @Test("@Model refuses an enum, which cannot simply become a class")
  func enumeration() {
    expectDiagnostics(
      "@Model enum Note { case a }",
      [
        DiagnosticSpec(
          message: """
            '@Model' cannot be applied to enum 'Note', because a row is one object that all \
            references to it share; write 'final class Note'.
            """,
          line: 1, column: 8)
      ])
  }

  @Test("@Model refuses an actor, and offers a final class")
  func actor() {
    expectDiagnostics(
      "@Model public actor Note {}",
      [
        DiagnosticSpec(
          message: """
            '@Model' cannot be applied to actor 'Note', because a row is one object that all \
            references to it share; write 'final class Note'.
            """,
          line: 1, column: 15, fixIts: [FixItSpec(message: "replace with 'final class'")])
      ],
      fixed: "@Model public final class Note {}")
  }

  @Test("@Model refuses an extension")
  func extensionOfAType() {
    expectDiagnostics(
      "@Model extension Note {}",
      [
        DiagnosticSpec(
          message: "'@Model' can only be applied to a class; write it before 'final class'.",
          line: 1, column: 1)
      ])
  }

  @Test("@Model refuses a generic class")
  func generic() {
    expectDiagnostics(
      """
      @Model final class Note<Content> {
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: """
            Model 'Note' cannot be generic, because each entity of a schema is one \
            concrete type; \
            declare one class for each kind of value.
            """,
          line: 1, column: 24)
      ])
  }

  @Test("@Model refuses a class without initializer, and offers one for all properties")
  func missingInitializer() {
    expectDiagnostics(
      """
      enum NotesSchemaV1 {
        @Model public final class Note {
          var title: String
          var `default`: Int = 3
          var folder: Folder?
          @Transient var isOpen = false
        }
      }
      """,
      [
        DiagnosticSpec(
          message: """
            Model 'Note' needs an initializer of its own, because '@Model' adds one and Swift \
            then no longer provides 'init()'; write one that sets its properties.
            """,
          line: 2, column: 29,
          fixIts: [FixItSpec(message: "insert an initializer for all properties")])
      ],
      fixed: """
        enum NotesSchemaV1 {
          @Model public final class Note {
            var title: String
            var `default`: Int = 3
            var folder: Folder?
            @Transient var isOpen = false

            public init(title: String, `default`: Int = 3, folder: Folder? = nil) {
              self.title = title
              self.`default` = `default`
              self.folder = folder
            }
          }
        }
        """)
  }

  @Test("@Model refuses an empty class, and offers an empty initializer")
  func emptyClass() {
    expectDiagnostics(
      "@Model final class Note {}",
      [
        DiagnosticSpec(
          message: """
            Model 'Note' needs an initializer of its own, because '@Model' adds one and Swift \
            then no longer provides 'init()'; write one that sets its properties.
            """,
          line: 1, column: 20,
          fixIts: [FixItSpec(message: "insert an initializer for all properties")])
      ],
      fixed: """
        @Model final class Note {
          init() {
          }
        }
        """)
  }

  @Test("@Model refuses nothing about an initializer that stands inside '#if'")
  func conditionalInitializer() {
    expectDiagnostics(
      """
      @Model final class Note {
        #if DEBUG
        init() {}
        #else
        init(debug: Bool = false) {}
        #endif
      }
      """, [])
  }
}
