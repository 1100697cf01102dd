import Foundation
import GRDB
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

  @Test("the plugin changes rows as the one that the compiler makes of the macros")
  func sameRows() async throws {
    let old = try write(
      """
      import Instar

      enum EditionsV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Edition.self] }
        @Model final class Edition {
          var title: String
          init(title: String) { self.title = title }
        }
      }
      """, to: "EditionsV1.swift")
    // The first stage finds its key paths when it runs. The second one makes, reads and changes objects.
    let plan = try write(
      """
      import Foundation
      import Instar

      protocol Shelved: AnyObject { var shelf: String { get set } }
      struct Place: Codable { var room = 1 }

      enum EditionsV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Edition.self] }
        @Model final class Edition {
          var title: String
          var shelf: String = "new"
          private(set) var count: Int = 7
          var place: Place = Place()
          init(title: String, shelf: String) { self.title = title; self.shelf = shelf }
          func add() { count += 1 }
        }
      }
      extension EditionsV2.Edition: Shelved {}

      enum EditionsPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [EditionsV1.self, EditionsV2.self] }
        static func mark(_ context: ModelContext) throws {
          for transaction in try context.fetchHistory(
            HistoryDescriptor<DefaultHistoryTransaction>())
          {
            for case .update(let update as DefaultHistoryUpdate<EditionsV1.Edition>)
              in transaction.changes
            {
              guard let edition = context.model(for: update.changedPersistentIdentifier)
                as? EditionsV1.Edition
              else { continue }
              for path in update.updatedAttributes {
                if let text = path as? ReferenceWritableKeyPath<EditionsV1.Edition, String> {
                  edition[keyPath: text] += "*"
                }
              }
            }
          }
          try context.save()
        }
        static var stages: [MigrationStage] {
          [
            .custom(
              fromVersion: EditionsV1.self, toVersion: EditionsV2.self,
              willMigrate: { try mark($0) },
              didMigrate: { context in
                for edition in try context.fetch(FetchDescriptor<EditionsV2.Edition>()) {
                  edition.add()
                  edition.place.room = 3
                  let shelved: any Shelved = edition
                  shelved.shelf += "er"
                }
                context.insert(EditionsV2.Edition(title: "made", shelf: "last"))
                try context.save()
              })
          ]
        }
      }
      #InstarPlugin(EditionsPlan.self)
      """, to: "EditionsPlan.swift")
    let app = folder.path("app")
    try await SwiftCompiler.buildApp(
      app, models: old, version: "EditionsV1",
      body: """
        for number in 0..<3 { context.insert(EditionsV1.Edition(title: "Emma \\(number)")) }
        try context.save()
        for edition in try context.fetch(FetchDescriptor<EditionsV1.Edition>()) {
          edition.title += " edited"
        }
        """)

    let plugins = ["Expanded.so", "Debug.so", "Macros.so"].map { folder.path($0) }
    for (plugin, options) in [(plugins[0], []), (plugins[1], ["--debug"])] {
      let built = try await CommandLineTool.run(
        ["plugin", "build", old, plan, "-o", plugin] + options)
      try #require(built.status == 0, Comment(rawValue: built.messages))
    }
    let compilation = try await compile([old, plan], to: plugins[2])
    try #require(compilation.status == 0, Comment(rawValue: compilation.messages))

    var results: [[[String]]] = []
    for plugin in plugins {
      let store = plugin + ".store"
      let made = try await Program.run(app, [store])
      try #require(made.status == 0, Comment(rawValue: made.messages))
      let answer = try await CommandLineTool.run(
        "migrate", "--plugin", plugin, "--state-dir", folder.path("state"), store)
      try #require(answer.status == 0, Comment(rawValue: answer.messages))
      let rows = try await DatabaseQueue(path: store).read { db in
        try Row.fetchAll(
          db, sql: "SELECT ZTITLE, ZSHELF, ZCOUNT, ZROOM FROM ZEDITION ORDER BY Z_PK"
        ).map { $0.databaseValues.map(\.description) }
      }
      results.append(rows)
    }
    #expect(results[0].first == ["\"Emma 0 edited*\"", "\"newer\"", "8", "3"])
    #expect(results[0].last == ["\"made\"", "\"last\"", "7", "1"])
    #expect(results[1] == results[0] && results[2] == results[0])
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
    // Last in the output, and left out: what only follows from another error.
    let followUp = "\nmacro expansion #InstarPlugin:"
    let own = compilation.messages.split(separator: followUp, maxSplits: 1).first ?? ""
    #expect(
      answer.messages.hasPrefix(own),
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
