import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Plugins in the modes of Swift, and their check")
struct PluginCheckTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private struct Check: Decodable {
    var planNames: [String]
    var findings: [Finding]?
    var error: InstarError?
  }

  private static let models = """
    import Instar

    #InstarPlugin(ShelfPlan.self)

    enum ShelfV1: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 0, 0)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        var pages: String?
        var rank: Int
        init(title: String, rank: Int) { (self.title, self.rank) = (title, rank) }
      }
    }

    enum ShelfV2: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 1, 0)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        var pages: String?
        var rank: Int
        init(title: String, rank: Int) { (self.title, self.rank) = (title, rank) }
      }
    }

    enum ShelfV3: VersionedSchema {
      static let versionIdentifier = Schema.Version(2, 0, 0)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        var pages: Int?
        init(title: String) { self.title = title }
      }
    }

    enum ShelfPlan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [ShelfV1.self, ShelfV2.self, ShelfV3.self] }
      static var stages: [MigrationStage] { [same, numbers] }

      static let same = MigrationStage.lightweight(
        fromVersion: ShelfV1.self, toVersion: ShelfV2.self)
      static let numbers = MigrationStage.custom(
        fromVersion: ShelfV2.self, toVersion: ShelfV3.self,
        willMigrate: { context in
          let books = try context.fetch(FetchDescriptor(predicate: highAndNamed(2)))
          for book in books { book.pages = nil }
        },
        didMigrate: { context in
          for book in try context.fetch(FetchDescriptor<ShelfV3.Book>()) { book.pages = 7 }
        })
    }
    """

  /// Foundation's own `#Predicate` refuses `evaluate` on Linux; the SDK's accepts it.
  private static let filter = """
    import Foundation

    func highAndNamed(_ least: Int) -> Predicate<ShelfV2.Book> {
      let isHigh = #Predicate<ShelfV2.Book> { $0.rank > least }
      let isNamed = #Predicate<ShelfV2.Book> { !$0.title.isEmpty }
      return #Predicate<ShelfV2.Book> { isHigh.evaluate($0) && isNamed.evaluate($0) }
    }
    """

  @Test(
    "a file that imports Foundation only uses the SDK, in both modes, and check finds what a plan loses",
    arguments: ["5", "6"])
  func check(mode: String) async throws {
    var sources = [
      // Code of an app may name its own module.
      try folder.write(
        Self.models.replacing("[ShelfV1.self", with: "[Library.ShelfV1.self"), to: "Shelf.swift"),
      try folder.write(Self.filter, to: "Filter.swift"),
    ]
    // With more than four files the compiler writes other outputs.
    for number in 1...4 {
      sources.append(try folder.write("let part\(number) = \(number)", to: "Part\(number).swift"))
    }
    let current = URL(filePath: folder.path("current"))
    try FileManager.default.createDirectory(at: current, withIntermediateDirectories: true)
    let plugin = folder.path("Shelf.so")
    let built = try await CommandLineTool.run(
      ["plugin", "build", "--debug", "--swift-version", mode, "--module-name", "Library"]
        + ["-o", plugin] + sources, in: current)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let left = try FileManager.default.contentsOfDirectory(atPath: current.path)
    #expect(left == [], "the current folder gets no file")

    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    let check = try #require(try answer.objects(Check.self).first)
    #expect(check.planNames == ["ShelfPlan"] && check.error == nil)
    let findings = try #require(check.findings)
    #expect(findings.allSatisfy { $0.severity == .warning && $0.fix?.isEmpty == false })
    #expect(
      findings.map(\.message) == [
        "ShelfPlan: 1.0.0 and 1.1.0 have the same structure: a store that declares no version may be at either",
        "ShelfPlan: 1.1.0 → 2.0.0 removes Book.rank with its values",
        "ShelfPlan: 1.1.0 → 2.0.0 changes the type of Book.pages from String to Int: a run is refused if values or links of Book.pages are neither converted nor written by code",
      ])
    let text = try await CommandLineTool.run("plugin", "check", plugin)
    #expect(text.output.contains("  warning: ShelfPlan: 1.1.0 → 2.0.0 removes Book.rank"))
  }

  @Test("a stage that cannot run is an error of the check, which exits with 3")
  func refused() async throws {
    let source = try folder.write(
      Self.models.replacing("[same, numbers]", with: "[light]").replacing(
        "  static let same",
        with: """
            static let light = MigrationStage.lightweight(
              fromVersion: ShelfV2.self, toVersion: ShelfV3.self)
            static let same
          """
      ).replacing(
        "var pages: Int?", with: "var pages: Int?; var stars: Int? = 3; @Transient func open() {}")
        + "\n" + Self.filter, to: "Shelf.swift")
    let plugin = folder.path("Shelf.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    #expect(
      built.messages.matches(of: /: warning: '@Transient' has no effect/).count == 1,
      "a warning is printed once")
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    #expect(answer.status == 3)
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    #expect(findings.contains { $0.message.contains("no stage from 1.0.0 to 1.1.0; Instar adds") })
    #expect(
      findings.contains {
        $0.message.hasPrefix("ShelfPlan: 1.1.0 → 2.0.0 adds Book.stars, which is optional")
      })
    let error = try #require(findings.first { $0.severity == .error })
    #expect(error.code == .needsCustomStage)
    #expect(
      error.message.hasPrefix("ShelfPlan: 1.1.0 → 2.0.0 is lightweight, but values of Book.pages"))
    #expect(error.fix?.contains("instarctl schema diff '\(plugin)@1.1.0'") == true)
  }

  @Test("a name in acceptedLosses that no version has is found, with the nearest one")
  func unknownLosses() async throws {
    let source = try folder.write(
      Self.models.replacing(
        "static var stages: [MigrationStage] {",
        with: """
          static var acceptedLosses: [String] { ["Book.rnak", "Book.pages", "Shelf"] }
              static var stages: [MigrationStage] {
          """) + "\n" + Self.filter, to: "Shelf.swift")
    let plugin = folder.path("Shelf.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    let losses = findings.filter { $0.message.contains("acceptedLosses") }
    #expect(
      losses.map(\.message)
        == ["Book.rnak", "Shelf"].map {
          "ShelfPlan: acceptedLosses names '\($0)', which no version before the last one has"
        })
    #expect(losses.map(\.fix) == ["write \"Book.rank\"", "remove it"])
    #expect(losses.allSatisfy { $0.severity == .warning && $0.code == .invalidPlan })
    #expect(!findings.contains { $0.message.contains("changes the type of Book.pages") })
  }

  @Test("a plugin that uses UserDefaults gets a warning with what to write")
  func userDefaults() async throws {
    let source = Self.models + "\n" + Self.filter
    let plugin = folder.path("Shelf.so")
    for isUsed in [false, true] {
      let file = try folder.write(
        isUsed
          ? source.replacing(
            "book.pages = nil",
            with: "book.pages = UserDefaults.standard.string(forKey: \"pages\")") : source,
        to: "Shelf.swift")
      let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, file)
      try #require(built.status == 0, Comment(rawValue: built.messages))
      let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
      #expect(answer.status == 0)
      let findings = try #require(try answer.objects(Check.self).first?.findings)
      let found = findings.filter { $0.message.contains("UserDefaults") }
      #expect(found.count == (isUsed ? 1 : 0))
      #expect(found.allSatisfy { $0.severity == .warning })
      #expect(found.allSatisfy { $0.fix?.contains("context.scratchpad") == true })
    }
  }

  @Test("an original name that no property had, and a foreign key without an index, are warnings")
  func addedProperties() async throws {
    let source = try folder.write(
      """
      import Instar

      #InstarPlugin(ShopPlan.self)

      enum ShopV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Author.self, Book.self] }

        @Table @Model final class Author {
          var id: Int
          init() { id = 0 }
        }

        @Table @Model final class Book {
          var id: Int
          var title: String?
          init() { id = 0 }
        }
      }

      enum ShopV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Author.self, Book.self] }

        @Table @Model final class Author {
          var id: Int
          @Relationship(inverse: \\Book.author) var books: [Book] = []
          @Relationship(inverse: \\Book.editor) var edited: [Book] = []
          init() { id = 0 }
        }

        @Table @Model final class Book {
          #Index<Book>([\\.editor])
          var id: Int
          @Attribute(originalName: "titel") var heading: String?
          var author: Author?
          var editor: Author?
          init() { id = 0 }
        }
      }

      enum ShopPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ShopV1.self, ShopV2.self] }
        static var stages: [MigrationStage] { [] }
      }
      """, to: "Shop.swift")
    let plugin = folder.path("Shop.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    func fixes(_ text: String) -> [String?] {
      findings.filter { $0.severity == .warning && $0.message.contains(text) }.map(\.fix)
    }
    #expect(
      fixes("originalName 'titel' of Book.heading in 2.0.0 names no property of 1.0.0")
        == ["write originalName: \"title\""], "\(findings)")
    #expect(
      fixes("removes Book.title with its values") == [
        "if Book.heading is title under a new name, write @Attribute(originalName: \"title\") before heading; else "
          + "check that nothing needs them; only the backup of a store keeps them"
      ], "\(findings)")
    #expect(
      fixes("a foreign key without an index") == ["write #Index<Book>([\\.author]) in the model"],
      "\(findings)")
  }

  @Test(
    "a new required column of an ordinary table needs no stage with code, but a value: check and schema diff say which"
  )
  func newColumn() async throws {
    let source = try folder.write(
      """
      import Instar

      #InstarPlugin(LightPlan.self, CodePlan.self, TransformPlan.self)

      enum ShopV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Customer.self] }

        @Table("customer") @Model final class Customer {
          var id: Int
          var name: String
          init(name: String) { (id, self.name) = (0, name) }
        }
      }

      enum ShopV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Customer.self] }

        @Table("customer") @Model final class Customer {
          var id: Int
          var name: String
          var city: String
          init(name: String) { (id, self.name, city) = (0, name, "") }
        }
      }

      enum LightPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ShopV1.self, ShopV2.self] }
        static var stages: [MigrationStage] {
          [.lightweight(fromVersion: ShopV1.self, toVersion: ShopV2.self)]
        }
      }

      enum CodePlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ShopV1.self, ShopV2.self] }
        static var stages: [MigrationStage] {
          [
            .custom(
              fromVersion: ShopV1.self, toVersion: ShopV2.self, willMigrate: nil,
              didMigrate: { context in
                for customer in try context.fetch(FetchDescriptor<ShopV2.Customer>()) {
                  customer.city = "Kiel"
                }
              })
          ]
        }
      }

      enum TransformPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ShopV1.self, ShopV2.self] }
        static var stages: [MigrationStage] { [cities] }
        static let cities = MigrationStage.transform(
          fromVersion: ShopV1.self, toVersion: ShopV2.self
        ) {
          Transform(ShopV1.Customer.self, ShopV2.Customer.self)
            .set(\\.city, from: \\.name) { name in name }
        }
      }
      """, to: "Shop.swift")
    let plugin = folder.path("Shop.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    #expect(
      findings.map(\.message).sorted() == [
        "CodePlan: 1.0.0 → 2.0.0: a run fails if Customer has rows: Customer.city is required, and existing rows have "
          + "no value for it, and didMigrate runs too late for a column of an ordinary table; only willMigrate can "
          + "remove the rows first",
        "LightPlan: 1.0.0 → 2.0.0: a run is refused if Customer has rows: Customer.city is required, and existing "
          + "rows have no value for it",
      ])
    let cure =
      "give Customer.city an initial value, which didMigrate can replace; or set it in a Transform of a transform "
      + "stage; or add Customer.city as optional in one version, set it in didMigrate, and require it in the next "
      + "version"
    #expect(findings.map(\.fix) == [cure, cure])

    let difference = try await CommandLineTool.run(
      "schema", "diff", "\(plugin)@1.0.0", plugin, "--plan", "LightPlan")
    #expect(
      difference.output.contains(
        "    needs a value in existing rows before didMigrate runs: \(cure)\n"),
      "\(difference.output)")
    #expect(
      difference.output.contains(
        """
        stage: lightweight

        // Before you use this stage: \(cure).
        .lightweight(fromVersion: ShopV1.self, toVersion: ShopV2.self)
        """), "\(difference.output)")
    #expect(!difference.output.contains("custom"), "\(difference.output)")
  }

  @Test("a property that a transform computes is not reported as lost, and another one is")
  func transformed() async throws {
    let transform = """
          static let numbers = MigrationStage.transform(
            fromVersion: ShelfV2.self, toVersion: ShelfV3.self
          ) {
            Transform(ShelfV2.Book.self, ShelfV3.Book.self)
              .set(\\.pages, from: \\.pages) { pages in pages.flatMap { Int($0) } }
          }
      """
    let start = try #require(Self.models.range(of: "  static let numbers"))
    let source = try folder.write(
      Self.models[..<start.lowerBound].replacing(
        "var rank: Int\n", with: "var rank: Int; var code: String?\n"
      )
      .replacing("var pages: Int?", with: "var pages: Int?; var code: Int?")
        + transform + "\n}\n", to: "Shelf.swift")
    let plugin = folder.path("Shelf.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    #expect(!findings.contains { $0.message.contains("Book.pages") })
    let code = try #require(findings.first { $0.message.contains("Book.code") })
    #expect(code.fix?.hasPrefix("set the property in a Transform, or add \"Book.code\"") == true)
  }

  @Test(
    "the way to keep rows and values is one that the kind of the stage has",
    arguments: [
      (
        "custom(fromVersion: HouseV1.self, toVersion: HouseV2.self, willMigrate: nil) { _ in }",
        "insert the rows of Hut in didMigrate", "move the values in willMigrate"
      ),
      (
        "sql(fromVersion: HouseV1.self, toVersion: HouseV2.self, after: [\"DELETE FROM ZHOUSE\"])",
        "make the stage a bridge or a custom one, and insert the rows of Hut there",
        "move the values in a statement of `before`"
      ),
      (
        "bridge(fromVersion: HouseV1.self, toVersion: HouseV2.self) { _, _ in }",
        "insert the rows of Hut in the stage's code",
        "read the values from the old context in the stage's code"
      ),
    ])
  func fixOfKind(stage: String, rows: String, values: String) async throws {
    let source = try folder.write(
      """
      import Instar

      enum HouseV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [House.self, Villa.self, Hut.self] }

        @Model class House {
          var name: String
          var pool: String?
          init(name: String) { self.name = name }
        }
        @Model final class Villa: House {
          override init(name: String) { super.init(name: name) }
        }
        @Model final class Hut {
          var wood: String?
          init() {}
        }
      }

      enum HouseV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [House.self, Villa.self, Hut.self] }

        @Model class House {
          var name: String
          init(name: String) { self.name = name }
        }
        @Model final class Villa: House {
          var pool: String?
          override init(name: String) { super.init(name: name) }
        }
        @Model final class Hut: House {
          var wood: String?
          override init(name: String) { super.init(name: name) }
        }
      }

      enum HousePlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [HouseV1.self, HouseV2.self] }
        static var stages: [MigrationStage] { [.\(stage)] }
      }

      #InstarPlugin(HousePlan.self)
      """, to: "House.swift")
    let plugin = folder.path("House.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    let fixes = findings.compactMap(\.fix)
    #expect(
      fixes.contains("\(rows), or add \"Hut\" to the plan's acceptedLosses"), "\(findings)")
    #expect(fixes.contains { $0.hasPrefix("\(values), or add \"House.pool\"") }, "\(findings)")
  }

  @Test("an enum that loses its raw values is a warning, and so is a new one without a value")
  func enums() async throws {
    let source = try folder.write(
      """
      import Instar

      #InstarPlugin(TaskPlan.self)

      enum TaskV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Task.self] }

        enum State: String, Codable { case open, closed, later }
        @Model final class Task {
          var state: State
          init(state: State) { self.state = state }
        }
      }

      enum TaskV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Task.self] }

        enum State: Codable { case open, closed }
        struct Place: Codable { var name: String, floor: Int? }
        @Model final class Task {
          var state: State
          var other: State
          var third: State = State.open
          var fourth: State?
          var place: Place
          init(state: State, place: Place) { (self.state, other, self.place) = (state, state, place) }
        }
      }

      enum TaskPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [TaskV1.self, TaskV2.self] }
        static var stages: [MigrationStage] {
          [.lightweight(fromVersion: TaskV1.self, toVersion: TaskV2.self)]
        }
      }
      """, to: "Task.swift")
    let plugin = folder.path("Task.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    #expect(answer.status == 0)
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    #expect(findings.allSatisfy { $0.severity == .warning })
    #expect(
      findings.map(\.message) == [
        "TaskPlan: 1.0.0 → 2.0.0 changes the type of Task.state from String to an enum without raw values, and keeps "
          + "the values that are names of its cases (closed, open)",
        "TaskPlan: 1.0.0 → 2.0.0: a run is refused if Task has rows: Task.other is required, and existing rows have "
          + "no value for it",
        "TaskPlan: 1.0.0 → 2.0.0: a run is refused if Task has rows: Task.place is required, and existing rows have "
          + "no value for it",
      ])
    #expect(
      findings.first?.fix?.hasSuffix("@Attribute(originalName: \"state\") var stateText: String?")
        == true)
    #expect(
      findings.last?.fix?.hasPrefix(
        "give the property an initial value, make it optional, or write a custom stage; run: instarctl "
      ) == true)
  }

  @Test(
    "two arrays without inverse are a warning of check, inspect and plan, until a version joins them"
  )
  func separateArrays() async throws {
    func version(_ number: Int, _ marker: String = "") -> String {
      """
      enum ClubV\(number): VersionedSchema {
        static let versionIdentifier = Schema.Version(\(number), 0, 0)
        static var models: [any PersistentModel.Type] { [Team.self, Player.self] }

        @Model final class Team {
          \(marker)var players: [Player] = []
          init() {}
        }
        @Model final class Player {
          var teams: [Team] = []
          init() {}
        }
      }

      """
    }
    let joined = version(3, "@Relationship(inverse: \\Player.teams) ")
    let plan = """
      import Instar

      #InstarPlugin(ClubPlan.self)

      enum ClubPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ClubV1.self, ClubV2.self, ClubV3.self] }
        static var stages: [MigrationStage] { [] }
      }

      """
    let apart = version(3).replacing("init() {}", with: "var name: String?; init() {}")
    let source = try folder.write(plan + version(1) + version(2) + apart, to: "Club.swift")
    let plugin = folder.path("Club.so")
    let built = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let sentence =
      "in 1.0.0, 2.0.0, 3.0.0, Player.teams and Team.players are arrays without inverse, so each has links of its own"
    let answer = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let findings = try #require(try answer.objects(Check.self).first?.findings)
    let warning = try #require(findings.first { $0.message.contains(sentence) })
    #expect(warning.severity == .warning)
    #expect(
      warning.fix?.hasPrefix(
        "write @Relationship(inverse: \\Team.players) before Player.teams in a new version") == true
    )
    let inspected = try await CommandLineTool.run("plugin", "inspect", plugin)
    #expect(inspected.output.contains("  warning: ClubPlan: \(sentence)"))

    _ = try folder.write(plan + version(1) + version(2) + joined, to: "Club.swift")
    let again = try await CommandLineTool.run("plugin", "build", "--debug", "-o", plugin, source)
    try #require(again.status == 0, Comment(rawValue: again.messages))
    let repaired = try await CommandLineTool.run("plugin", "check", plugin, "--json")
    let note = try #require(
      try repaired.objects(Check.self).first?.findings?.first {
        $0.message.contains("in 1.0.0, 2.0.0, Player.teams and Team.players")
      })
    #expect(note.severity == .note && note.fix == nil)
  }

  /// A plan that shares an object and a main actor's function with a stage. Beyond that, `shared` is a constant.
  private static func concurrent(version: String, shared: String) -> String {
    """
    import Instar

    #InstarPlugin(ShelfPlan.self)

    enum ShelfV1: VersionedSchema {
      \(version)
      static var models: [any PersistentModel.Type] { [Book.self] }

      @Model final class Book {
        var title: String
        init(title: String) { self.title = title }
      }
    }

    final class Counter { var count = 0 }
    @MainActor func shorten(_ text: String) -> String { String(text.prefix(9)) }

    enum ShelfPlan: SchemaMigrationPlan {
      \(shared)
      static var schemas: [any VersionedSchema.Type] { [ShelfV1.self] }
      static var stages: [MigrationStage] {
        let counter = Counter()
        return [
          .custom(
            fromVersion: ShelfV1.self, toVersion: ShelfV1.self,
            willMigrate: { context in counter.count += 1 },
            didMigrate: { context in _ = shorten("a title") })
        ]
      }
    }
    """
  }

  @Test("the concurrency errors of Swift 6 are explained with their fix, after the compiler's own")
  func concurrencyErrors() async throws {
    let source = try folder.write(
      Self.concurrent(
        version: "static var versionIdentifier = Schema.Version(1, 0, 0)",
        shared: "static let counter = Counter()"), to: "Shelf.swift")
    let answer = try await CommandLineTool.run(
      "plugin", "build", "--debug", "--swift-version", "6", "-o", folder.path("Shelf.so"), source)
    #expect(answer.status == 1)
    let messages = answer.messages
    #expect(messages.contains("error: static property 'versionIdentifier' is not concurrency-safe"))
    #expect(messages.contains("Shelf.swift:6: any thread can change a static or global 'var'"))
    #expect(messages.contains("Shelf.swift:19: a static or global 'let' holds a value that is not"))
    #expect(
      messages.contains("next:   fix the compiler errors above and build again, or build with"))

    let usage = try await CommandLineTool.run(
      "plugin", "build", "--swift-version", "4", "-o", folder.path("Shelf.so"), source)
    #expect(usage.status == 2)
  }

  @Test("the warnings of Swift 6 about captured objects and the main actor are explained")
  func concurrencyWarnings() async throws {
    let source = try folder.write(
      Self.concurrent(
        version: "static let versionIdentifier = Schema.Version(1, 0, 0)",
        shared: "static let number = 7"), to: "Shelf.swift")
    let answer = try await CommandLineTool.run(
      "plugin", "build", "--debug", "--swift-version", "6", "-o", folder.path("Shelf.so"), source)
    let messages = answer.messages
    #expect(
      messages.contains("Shelf.swift:26: the closure of a stage uses a variable or an object"))
    #expect(messages.contains("Shelf.swift:27: a plan does not run on the main actor"))
  }
}
