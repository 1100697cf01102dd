import SwiftDiagnostics
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("@Model refuses the property")
struct ModelPropertyDiagnosticsTests {
  /// A model of its own around one member, which begins at line 2, column 3.
  private func model(_ member: String) -> String {
    """
    @Model final class Note {
      \(member)
      init() {}
    }
    """
  }

  @Test("@Model refuses a property with 'let', and offers 'var'")
  func constant() {
    expectDiagnostics(
      model("public let uid: String"),
      [
        DiagnosticSpec(
          message: """
            'uid' must be declared with 'var', because Instar fills it when the model is read \
            from a store, and Swift 6 mode allows no macro on a 'let'; write 'private(set) var' to keep others from \
            changing it.
            """,
          line: 2, column: 10, fixIts: [FixItSpec(message: "replace 'let' with 'var'")])
      ],
      fixed: model("public var uid: String"))
  }

  @Test("@Model refuses a property without type and initial value, and offers a place for the type")
  func missingType() {
    expectDiagnostics(
      model("var title"),
      [
        DiagnosticSpec(
          message: "'title' needs a type or an initial value; write 'var title: Type'.",
          line: 2, column: 7, fixIts: [FixItSpec(message: "insert a type")])
      ],
      fixed: model("var title: <#Type#>"))
  }

  @Test("@Model refuses a property that shares its 'var', and offers one each")
  func severalBindings() {
    expectDiagnostics(
      model(#"private var a, b: Int, c: String = "c""#),
      [
        DiagnosticSpec(
          message:
            "Each property of a model needs its own 'var'; write one declaration for each property.",
          line: 2, column: 15,
          fixIts: [FixItSpec(message: "declare each property with its own 'var'")])
      ],
      fixed: model(
        #"""
        private var a: Int
          private var b: Int
          private var c: String = "c"
        """#))
  }

  @Test("@Model refuses a property declared by a tuple pattern")
  func tuplePattern() {
    expectDiagnostics(
      model("var (a, b) = (1, 2)"),
      [
        DiagnosticSpec(
          message: """
            A tuple pattern cannot declare properties of a model; write a 'var' with a name and a \
            type for each one.
            """,
          line: 2, column: 7)
      ])
  }

  @Test("@Model refuses no property with observers, but says that they are not called")
  func observers() {
    expectDiagnostics(
      model(#"var title: String = "" { didSet { print(title) } }"#),
      [
        DiagnosticSpec(
          message: """
            Swift never calls the observers of 'title', because '@Model' replaces its accessors; mark it \
            '@Transient', or set it through a method that does what the observer does.
            """,
          line: 2, column: 26, severity: .warning)
      ])
  }

  @Test(
    "@Model refuses a property with 'weak', and offers to remove it",
    arguments: ["weak", "unowned", "unowned(unsafe)"])
  func reference(modifier: String) {
    let name = modifier.prefix { $0 != "(" }
    expectDiagnostics(
      model("\(modifier) var folder: Folder?"),
      [
        DiagnosticSpec(
          message: """
            'folder' cannot be '\(name)', because it is a relationship and the store keeps the \
            related model; remove '\(name)', or mark the property '@Transient'.
            """,
          line: 2, column: 3, fixIts: [FixItSpec(message: "remove '\(name)'")])
      ],
      fixed: model("var folder: Folder?"))
  }

  @Test("@Model refuses a property inside '#if', in every clause")
  func conditional() {
    let message = """
      A stored property of a model cannot depend on '#if', because the schema of a version is the \
      same in every build; declare the property unconditionally or mark it '@Transient'.
      """
    expectDiagnostics(
      """
      @Model final class Note {
        #if DEBUG
        var trace: String = ""
        @Transient var open = false
        #else
        var computed: Int { 1 }
        private var other: Int = 1
        #endif
        init() {}
      }
      """,
      [
        DiagnosticSpec(message: message, line: 3, column: 3),
        DiagnosticSpec(message: message, line: 7, column: 11),
      ])
  }

  @Test("@Model refuses a property that is both attribute and relationship")
  func contradictoryMarkers() {
    expectDiagnostics(
      model("@Attribute(.unique) @Relationship var folder: Folder?"),
      [
        DiagnosticSpec(
          message: """
            'folder' can have only one '@Attribute' or '@Relationship'; merge their arguments \
            into one, or remove one of them.
            """,
          line: 2, column: 23)
      ])
  }

  @Test(
    "@Model refuses a property with '@Transient' without initial value, and offers a place for one")
  func transientWithoutValue() {
    expectDiagnostics(
      model("@Transient var isOpen: Bool"),
      [
        DiagnosticSpec(
          message: """
            '@Transient' property 'isOpen' needs an initial value, because Instar calls no \
            initializer of the class when it reads a model from a store; add an initial value, or \
            make the property optional.
            """,
          line: 2, column: 18, fixIts: [FixItSpec(message: "insert an initial value")])
      ],
      fixed: model("@Transient var isOpen: Bool = <#initial value#>"))
  }

  @Test(
    "@Model refuses a property with '@Transient' that is an attribute too, and offers to remove that"
  )
  func transientAttribute() {
    expectDiagnostics(
      model("@Transient @Attribute(.unique) var isOpen: Bool = false"),
      [
        DiagnosticSpec(
          message: """
            '@Attribute' has no effect on a '@Transient' property, because it is not stored; \
            remove one of the two.
            """,
          line: 2, column: 14, fixIts: [FixItSpec(message: "remove '@Attribute'")])
      ],
      fixed: model("@Transient var isOpen: Bool = false"))
  }
}
