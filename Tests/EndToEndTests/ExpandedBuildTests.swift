import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// `plugin build` expands the macros of models before the compiler reads the sources. Nothing but the time may show it.
@Suite("instarctl plugin build with models expanded")
struct ExpandedBuildTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func write(_ text: String, to name: String) throws -> String {
    let path = folder.path(name)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  /// The compiler with the macros, and otherwise as `plugin build` runs it.
  private func compile(_ sources: [String], to plugin: String) async throws
    -> SwiftCompiler.Answer
  {
    try await Program.run(
      "swiftc",
      ["-emit-library", "-parse-as-library", "-module-name", "Shelf", "-package-name", "Shelf"]
        + ["-swift-version", "5", "-Xfrontend", "-import-module", "-Xfrontend", "Instar", "-wmo"]
        + ["-O", "-I", SwiftCompiler.products + "/Modules"]
        + [
          "-load-plugin-executable",
          SwiftCompiler.products + "/InstarMacros-tool#InstarMacros",
        ]
        + ["-L", SwiftCompiler.products, "-lInstar", "-o", plugin] + sources)
  }

  private struct Inspection: Decodable {
    var plans: [PlanManifest]?
  }

  private func plans(of plugin: String) async throws -> [PlanManifest] {
    let answer = try await CommandLineTool.run("plugin", "inspect", plugin, "--json")
    return try #require(try answer.objects(Inspection.self).first?.plans)
  }

  private static let models = #"""
    import Foundation
    import Instar

    struct Place: Codable { var shelf = 0 }

    enum ShelfV1: VersionedSchema {
      static let versionIdentifier = Schema.Version(1, 0, 0)
      static var models: [any PersistentModel.Type] { [Book.self, Reader.self, Pupil.self] }

      @Model final class Book {
        #Unique<Book>([\.title, \.created])
        @Attribute(.unique) var isbn: String
        var title = ""
        var created: Date = Date.now
        var place: Place?
        var pages: [Int] = [
          1,  // the first
          2,
        ]
        @Relationship(deleteRule: .nullify, inverse: \Reader.books) var readers: [Reader] = []
        @Transient var isOpen = false

        init(isbn: String) { self.isbn = isbn }
      }

      @Model class Reader: CustomStringConvertible {
        fileprivate(set) var name: String
        var `default` = Place()
        var books: [Book]
        var description: String { name }

        init(name: String) {
          self.name = name
          books = []
        }
      }

      @Model final class Pupil: Reader {
        var form: Int?
        init(form: Int) {
          self.form = form
          super.init(name: "")
        }
      }
    }

    """#

  private static func plan(_ invariants: String, _ code: String = "") -> String {
    """
    import Instar

    enum ShelfPlan: SchemaMigrationPlan {
      static var schemas: [any VersionedSchema.Type] { [ShelfV1.self] }
      static var stages: [MigrationStage] { [] }
      static var invariants: [Invariant] { [\(invariants)] }
      static func sort() {
        \(code)
      }
    }

    #InstarPlugin(ShelfPlan.self)
    """
  }

  @Test("the plugin has the plan that the compiler makes of the macros, and the author's lines")
  func samePlan() async throws {
    let models = Self.models.replacing(
      "init(isbn:",
      with: "static var place: String { \"\\(#fileID):\\(#line):\\(#column)\" }\n    init(isbn:")
    let sources = [
      try write(models, to: "Models.swift"),
      try write(
        Self.plan(".rowsKept(of: ShelfV1.Book.self, named: ShelfV1.Book.place)"), to: "Plan.swift"),
    ]
    let expanded = folder.path("Shelf.so")
    let answer = try await CommandLineTool.run(["plugin", "build"] + sources + ["-o", expanded])
    try #require(answer.status == 0, Comment(rawValue: answer.messages))
    let other = folder.path("Other.so")
    let compilation = try await compile(sources, to: other)
    try #require(compilation.status == 0, Comment(rawValue: compilation.messages))

    let found = try await plans(of: expanded)
    #expect(try await plans(of: other).flatMap(\.invariants) == found.flatMap(\.invariants))
    var schemas: [String] = []
    for plugin in [expanded, other] {
      let export = try await CommandLineTool.run("schema", "export", plugin, "--version", "1.0.0")
      #expect(export.status == 0, Comment(rawValue: export.messages))
      schemas.append(export.output)
    }
    #expect(schemas[0].contains("isbn"))
    #expect(schemas[0] == schemas[1])
    let lines = models.split(separator: "\n", omittingEmptySubsequences: false)
    let line = try #require(lines.firstIndex { $0.contains("#line") }) + 1
    #expect(
      found.flatMap(\.invariants).map(\.name).first?.hasPrefix("Shelf/Models.swift:\(line):")
        == true)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        == ["Models.swift", "Other.so", "Plan.swift", "Shelf.so"])
  }

  @Test(
    "the compiler's messages are those about the sources as they are",
    arguments: [
      // Far from all models, on the line of a property, and of a macro.
      ("warnings", ["init(form: Int) {": "init(form: Int) {\n      let unused = 1"]),
      ("a warning of a macro", ["var description": "@Transient var description"]),
      (
        "a warning about a property",
        [
          "struct Place": "@available(*, deprecated) struct Old: Codable {}\nstruct Place",
          "var form: Int?": "var form: Int?\n    var old: Old?",
        ]
      ),
      ("an error in an initial value", ["var title = \"\"": "var title: String = 5"]),
      ("an error in a marker", ["deleteRule: .nullify": "deleteRule: .never"]),
      ("a property without a value", ["books = []": ""]),
    ])
  func messages(about: String, changes: [String: String]) async throws {
    var models = Self.models
    for (old, new) in changes {
      #expect(models.contains(old))
      models = models.replacing(old, with: new)
    }
    let sources = [
      try write(models, to: "Models.swift"),
      try write(Self.plan("", "let unused = 1"), to: "Plan.swift"),
    ]
    let answer = try await CommandLineTool.run(
      ["plugin", "build"] + sources + ["-o", folder.path("Shelf.so")])
    let compilation = try await compile(sources, to: folder.path("Other.so"))
    #expect(compilation.messages.contains("Plan.swift") || compilation.status != 0)
    #expect((answer.status == 0) == (compilation.status == 0))
    #expect(
      answer.messages.hasPrefix(compilation.messages),
      "\(about): \(answer.messages)\n--- instead of\n\(compilation.messages)")
  }

  @Test(
    "a debug build keeps what did not change, also after an error, and follows a model to another file"
  )
  func debugBuild() async throws {
    let region =
      "import Instar\n\n@Model class Region {\n  var name: String = \"\"\n  init() {}\n}\n"
    let country = """
      import Instar

      @Model final class Country: Region {
        var capital: String?
        override init() { super.init() }
      }
      """
    let plan = """
      import Instar

      enum WorldV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Country.self] }
      }
      enum WorldPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [WorldV1.self] }
        static var stages: [MigrationStage] { [] }
      }
      #InstarPlugin(WorldPlan.self)
      """
    let sources = [
      try write(region, to: "Region.swift"), try write(country, to: "Country.swift"),
      try write(plan, to: "Plan.swift"),
    ]
    let plugin = folder.path("World.so")
    let build = ["plugin", "build", "--debug"] + sources + ["-o", plugin]
    func objects() throws -> [Date] {
      try sources.prefix(2).map {
        let path = folder.path(".World.so.objects/sources\($0).o")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.modificationDate] as? Date)
      }
    }
    func expanded(_ source: String) throws -> String {
      try String(
        contentsOfFile: folder.path(".World.so.objects/expanded\(source)"), encoding: .utf8)
    }
    let first = try await CommandLineTool.run(build)
    try #require(first.status == 0, Comment(rawValue: first.messages))
    let before = try objects()
    let overlay = try String(
      contentsOfFile: folder.path(".World.so.objects/expanded/overlay.json"), encoding: .utf8)
    #expect(overlay.contains("Region.swift") && overlay.contains("Country.swift"))
    #expect(!overlay.contains("Plan.swift"))
    #expect(try expanded(sources[1]).contains("superclass: Region.self"))

    // An error in the plan: the models keep their objects.
    _ = try write(plan + "\nlet wrong: Int = \"\"\n", to: "Plan.swift")
    let second = try await CommandLineTool.run(build)
    #expect(second.status == 1)
    #expect(
      second.messages.contains("Plan.swift:12:18: error:"), Comment(rawValue: second.messages))
    #expect(try objects() == before)

    // `Country` is expanded in another way, although its source is the same.
    _ = try write("protocol Region {}\nextension Region {}\n", to: "Region.swift")
    _ = try write(plan, to: "Plan.swift")
    _ = try write(
      country.replacing("override init() { super.init() }", with: "init() {}"), to: "Country.swift")
    let third = try await CommandLineTool.run(build)
    try #require(third.status == 0, Comment(rawValue: third.messages))
    #expect(try !expanded(sources[1]).contains("superclass:"))
    #expect(try await plans(of: plugin).map(\.name) == ["WorldPlan"])
  }
}
