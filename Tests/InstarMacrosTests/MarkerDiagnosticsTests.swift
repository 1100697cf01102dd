import SwiftDiagnostics
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite("A marker without effect is reported and offered for removal")
struct MarkerDiagnosticsTests {
  @Test("@Transient on a static or lazy property is not reported as a marker without effect")
  func transientWithoutNeed() {
    expectDiagnostics(
      """
      @Model final class Note {
        @Transient static var count = 0
        @Transient lazy var last: Tag? = nil
        init() {}
      }
      """, [])
  }

  @Test(
    "a marker on a computed property is reported and offered for removal",
    arguments: ["@Attribute(.unique)", #"@Relationship(inverse: \Tag.notes)"#, "@Transient"])
  func computed(marker: String) {
    let name = marker.prefix { $0 != "(" }
    expectDiagnostics(
      """
      @Model final class Note {
        \(marker) public var shout: String { "x" }
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '\(name)' has no effect on 'shout', because a computed property is not stored; \
            remove '\(name)', or make 'shout' a stored property.
            """,
          line: 2, column: 3, severity: .warning,
          fixIts: [FixItSpec(message: "remove '\(name)'")])
      ],
      fixed: """
        @Model final class Note {
          public var shout: String { "x" }
          init() {}
        }
        """)
  }

  @Test("a marker on a static property is reported and offered for removal")
  func staticProperty() {
    expectDiagnostics(
      """
      @Model final class Note {
        @Attribute(.unique) static var count: Int = 0
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '@Attribute' has no effect on 'count', because a static property is not part of a row; \
            remove '@Attribute', or make 'count' an instance property.
            """,
          line: 2, column: 3, severity: .warning,
          fixIts: [FixItSpec(message: "remove '@Attribute'")])
      ],
      fixed: """
        @Model final class Note {
          static var count: Int = 0
          init() {}
        }
        """)
  }

  @Test("a marker on a lazy property is reported and offered for removal")
  func lazyProperty() {
    expectDiagnostics(
      """
      @Model final class Note {
        @Relationship lazy var first: Tag? = nil
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '@Relationship' has no effect on 'first', because a lazy property is not persisted; \
            remove '@Relationship', or remove 'lazy'.
            """,
          line: 2, column: 3, severity: .warning,
          fixIts: [FixItSpec(message: "remove '@Relationship'")])
      ],
      fixed: """
        @Model final class Note {
          lazy var first: Tag? = nil
          init() {}
        }
        """)
  }

  @Test("a marker on a method is reported and offered for removal")
  func method() {
    expectDiagnostics(
      """
      @Model final class Note {
        @Transient func open() {}
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '@Transient' has no effect here, because only stored properties are persisted; remove '@Transient'.
            """,
          line: 2, column: 3, severity: .warning,
          fixIts: [FixItSpec(message: "remove '@Transient'")])
      ],
      fixed: """
        @Model final class Note {
          func open() {}
          init() {}
        }
        """)
  }

  @Test("a marker in a class that is not a model is reported")
  func outsideModel() {
    expectDiagnostics(
      """
      final class Note {
        @Attribute(originalName: "text") var title: String = ""
      }
      """,
      [
        DiagnosticSpec(
          message: """
            '@Attribute' has an effect only in a class marked '@Model'; mark the class, or \
            remove '@Attribute'.
            """,
          line: 2, column: 3, fixIts: [FixItSpec(message: "remove '@Attribute'")])
      ],
      fixed: """
        final class Note {
          var title: String = ""
        }
        """)
  }

  @Test(
    "a '#Unique' with the paths of another model, and an '#Index' outside of a model, are reported")
  func constraints() {
    expectDiagnostics(
      #"""
      @Model final class Note {
        #Unique<Folder>([\.uid])
        var uid: String
        init(uid: String) { self.uid = uid }
      }
      """#,
      [
        DiagnosticSpec(
          message:
            "'#Unique<Folder>' has no effect in model 'Note', because its key paths belong to another model; write '#Unique<Note>'.",
          line: 2, column: 11, fixIts: [FixItSpec(message: "name 'Note'")])
      ],
      fixed:
        #"""
        @Model final class Note {
          #Unique<Note>([\.uid])
          var uid: String
          init(uid: String) { self.uid = uid }
        }
        """#)
    expectDiagnostics(
      #"#Index<Note>([\.uid])"#,
      [
        DiagnosticSpec(
          message:
            "'#Index' has an effect only in the body of a class marked '@Model'; move it there.",
          line: 1, column: 1)
      ])
  }

  @Test("a '#Unique' whose paths name its model is not reported")
  func constraintWithRootedPaths() {
    expectDiagnostics(
      #"""
      @Model final class Note {
        #Unique([\Note.uid], [\Note.title, \Note.uid])
        #Index(.binary([\Note.title]))
        var uid: String
        var title: String
        init(uid: String) { self.uid = uid }
      }
      """#, [])
  }

  @Test("a '#Unique' that does not name its model is reported, with an offer to name it")
  func constraintWithoutModel() {
    expectDiagnostics(
      #"""
      @Model final class Note {
        #Unique([\.uid])
        var uid: String
        init(uid: String) { self.uid = uid }
      }
      """#,
      [
        DiagnosticSpec(
          message:
            "'#Unique' needs the name of its model to give its key paths a type; write '#Unique<Note>'.",
          line: 2, column: 3, fixIts: [FixItSpec(message: "name 'Note'")])
      ],
      fixed:
        #"""
        @Model final class Note {
          #Unique<Note>([\.uid])
          var uid: String
          init(uid: String) { self.uid = uid }
        }
        """#)
  }

  @Test("an option that does not exist is reported, with the one that was meant")
  func unknownOptions() {
    expectDiagnostics(
      """
      @Model final class Note {
        @Attribute(.uniqe, originalName: "id") var uid: String
        @Attribute(.transformabel(by: "X")) var tint: Tint
        @Attribute(.indexed) var title: String
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: attributeOptions(unlike: "uniqe"), line: 2, column: 14,
          fixIts: [FixItSpec(message: "replace with '.unique'")]),
        DiagnosticSpec(
          message: attributeOptions(unlike: "transformabel"), line: 3, column: 14,
          fixIts: [FixItSpec(message: "replace with '.transformable'")]),
        DiagnosticSpec(message: attributeOptions(unlike: "indexed"), line: 4, column: 14),
      ],
      fixed: """
        @Model final class Note {
          @Attribute(.unique, originalName: "id") var uid: String
          @Attribute(.transformable(by: "X")) var tint: Tint
          @Attribute(.indexed) var title: String
          init() {}
        }
        """)
  }

  private func attributeOptions(unlike name: String) -> String {
    "'@Attribute' has no option '.\(name)'; its options are '.allowsCloudEncryption', '.codable', '.derived', "
      + "'.ephemeral', '.externalStorage', '.preserveValueOnDeletion', '.spotlight', '.transformable', '.unique'."
  }

  @Test("a delete rule among the options is reported, with its label")
  func deleteRuleAsOption() {
    expectDiagnostics(
      """
      @Model final class Folder {
        @Relationship(.cascade) var notes: [Note]
        init() {}
      }
      """,
      [
        DiagnosticSpec(
          message: "'.cascade' is a delete rule, not an option; write 'deleteRule: .cascade'.",
          line: 2, column: 17, fixIts: [FixItSpec(message: "write 'deleteRule: .cascade'")])
      ],
      fixed: """
        @Model final class Folder {
          @Relationship(deleteRule: .cascade) var notes: [Note]
          init() {}
        }
        """)
  }

  @Test("a property that overrides an inherited one is reported")
  func overriddenProperty() {
    expectDiagnostics(
      """
      @Model final class Country: Region {
        override var name: String
        init() { super.init(name: "") }
      }
      """,
      [
        DiagnosticSpec(
          message:
            "'name' cannot override a property of the superclass, because the row has one value for both; remove it, and set the inherited property in an initializer.",
          line: 2, column: 3)
      ])
  }

  @Test("a subclass without initializer is reported, with one that calls that of its superclass")
  func missingInitializerOfSubclass() {
    expectDiagnostics(
      """
      @Model final class Country: Region {
        var capital: String
      }
      """,
      [
        DiagnosticSpec(
          message:
            "Model 'Country' needs an initializer of its own, because '@Model' adds one and Swift then does not inherit the initializers of 'Region'; write one that sets its properties and calls 'super.init'.",
          line: 1, column: 20,
          fixIts: [FixItSpec(message: "insert an initializer that calls 'super.init'")])
      ],
      fixed: """
        @Model final class Country: Region {
          var capital: String

          init(capital: String) {
            self.capital = capital
            super.init(\("<" + "#arguments#>"))
          }
        }
        """, isSubclass: true)
  }
}
