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
