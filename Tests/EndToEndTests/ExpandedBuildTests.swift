import Foundation
import Glibc
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

        init(isbn: String) {
          self.isbn = isbn
          title = isbn
          place = nil
        }
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

  @Test("the compiler reads the expanded models, once")
  func expandedSources() async throws {
    let sources = [
      try write(Self.models, to: "Models.swift"), try write(Self.plan(""), to: "Plan.swift"),
    ]
    // Keeps each description of files that the compiler reads in place of others, with these files.
    let tools = folder.path("tools")
    try FileManager.default.createDirectory(atPath: tools, withIntermediateDirectories: false)
    let path = try #require(ProcessInfo.processInfo.environment["PATH"])
    let compiler = try #require(
      path.split(separator: ":").map { "\($0)/swiftc" }
        .first(where: FileManager.default.isExecutableFile))
    let script = try write(
      """
      #!/bin/bash
      echo run >>'\(tools)/runs'
      for argument; do
        case $argument in */overlay.json) cp -r "${argument%/*}" '\(tools)/expanded' ;; esac
      done
      exec '\(compiler)' "$@"
      """, to: "tools/swiftc")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script)
    let answer = try await CommandLineTool.run(
      ["plugin", "build"] + sources + ["-o", folder.path("Shelf.so")],
      environment: ["PATH": "\(tools):\(path)"])
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    #expect(try String(contentsOfFile: "\(tools)/runs", encoding: .utf8) == "run\n")
    // In the order of their paths. The file of the plan has no model, so the compiler reads it as it is.
    let expanded = try String(contentsOfFile: "\(tools)/expanded/0.swift", encoding: .utf8)
    #expect(expanded.contains("init(_modelStorage"))
    #expect(!expanded.contains("@Model"))
    #expect(!FileManager.default.fileExists(atPath: "\(tools)/expanded/1.swift"))
    let overlay = try String(contentsOfFile: "\(tools)/expanded/overlay.json", encoding: .utf8)
    #expect(overlay.replacing("\\/", with: "/").contains("\"\(sources[0])\""))
  }

  @Test(
    "a build removes the files of killed builds of the plugin, and no others"
  )
  func killedBuilds() async throws {
    let ended = Process()
    ended.executableURL = URL(fileURLWithPath: "/bin/true")
    try ended.run()
    ended.waitUntilExit()
    let abandoned = ".Shelf.so.building-\(ended.processIdentifier)"
    let kept = [
      ".Shelf.so.building-\(getpid())", ".Shelf.so.building-notes",
      ".Other.so.building-\(ended.processIdentifier)",
    ]
    for name in [abandoned] + kept {
      _ = try write("", to: name)
      let expanded = folder.path(name + ".expanded")
      try FileManager.default.createDirectory(atPath: expanded, withIntermediateDirectories: false)
      _ = try write("", to: name + ".expanded/0.swift")
    }
    // The build fails, which makes no difference.
    let source = try write("import Instar\n", to: "Nothing.swift")
    let answer = try await CommandLineTool.run(
      "plugin", "build", source, "-o", folder.path("Shelf.so"))
    #expect(answer.status == 1, Comment(rawValue: answer.messages))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        == (["Nothing.swift"] + kept + kept.map { $0 + ".expanded" }).sorted())
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
      (
        "a property that an initializer assigns again",
        ["self.isbn = isbn": "self.isbn = \"\"; self.isbn = isbn"]
      ),
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

  @Test("a source that is named by a path with many '..' stays as it is")
  func pathOutOfFolder() async throws {
    let model =
      "import Instar\n\n@Model final class Item {\n  var name: String = \"\"\n  init() {}\n}\n"
    let source = try write(model, to: "Item.swift")
    let plan = try write(
      """
      import Instar

      enum ItemsV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Item.self] }
      }
      enum ItemsPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [ItemsV1.self] }
        static var stages: [MigrationStage] { [] }
      }
      #InstarPlugin(ItemsPlan.self)
      """, to: "Plan.swift")
    let root = String(repeating: "../", count: 40).dropLast()
    let answer = try await CommandLineTool.run(
      ["plugin", "build", root + source, root + plan, "-o", folder.path("Items.so")])
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    #expect(try String(contentsOfFile: source, encoding: .utf8) == model)
    #expect(try await plans(of: folder.path("Items.so")).map(\.name) == ["ItemsPlan"])
  }
}
