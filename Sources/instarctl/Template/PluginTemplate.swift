import Foundation
import InstarSchema
import InstarSource

/// The files of a new plugin: a plan with its versions, tests, and the program that makes its sample store.
struct PluginTemplate {
  /// One version of the models.
  struct Version {
    /// "NotesV1".
    var typeName: String
    var number: Schema.Version
    /// The file with the `VersionedSchema`.
    var source: String
  }

  /// "Notes".
  var name: String
  /// Oldest first; at least two. The last one has the example change.
  var versions: [Version]
  /// The elements of the plan's `stages`, and the declarations that they name.
  var stages: [String]
  var stageDeclarations: String
  /// The tests of the example change, in the test suite.
  var exampleTests: String
  /// The body of the closure that fills the sample store; `nil` for random models.
  var sample: String?
  /// The line of the README that says what the example change does.
  var exampleChange: String
  /// The build folder of Instar, where it is not installed.
  var buildFolder: String?

  var planName: String { "\(name)Plan" }
  /// The sample store is at the first version.
  var samplePath: String { "Stores/\(versions[0].number).store" }
  var snapshotPath: String { "Tests/\(name)Tests/\(planName).sql" }

  /// The contents of the files, by their paths in the folder.
  var files: [String: String] {
    var files = [
      "Package.swift": manifest,
      "README.md": readme,
      ".gitignore": ".build/\n*.so\n*.so.sig\n.*.objects/\n",
      "Sources/\(name)/\(planName).swift": plan,
      "Tests/\(name)Tests/\(planName)Tests.swift": tests,
      "\(name).referencestores/README.md": referenceReadme,
    ]
    for version in versions { files["Sources/\(name)/\(version.typeName).swift"] = version.source }
    return files
  }

  private var plan: String {
    let schemas = versions.map { "\($0.typeName).self" }.joined(separator: ", ")
    return """
      import Instar

      /// The versions of the app's models, and the stages between them.
      enum \(planName): SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [\(schemas)] }
        static var stages: [MigrationStage] {
      \(Self.list(stages))
        }\(stageDeclarations.isEmpty ? "" : "\n\n" + Self.indented(stageDeclarations))
      }

      #InstarPlugin(\(planName).self)

      """
  }

  private static func list(_ elements: [String]) -> String {
    if elements.count == 1, !elements[0].contains("\n"), elements[0].count < 80 {
      return "    [\(elements[0])]"
    }
    return
      (["    ["] + elements.map { indented(indented(indented($0))) + "," } + ["    ]"])
      .joined(separator: "\n")
  }

  static func indented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.isEmpty ? "" : "  \($0)" }.joined(separator: "\n")
  }

  private var tests: String {
    let last = versions[versions.count - 1]
    return """
      import Foundation
      import Instar
      import InstarTesting
      import Testing

      @testable import \(name)

      @Suite("\(planName)")
      struct \(planName)Tests {
        let test = MigrationTest(\(planName).self)

      \(Self.indented(exampleTests))

        @Test("the sample store migrates, and keeps its rows and links")
        func sampleStore() throws {
          let store = try test.store(copying: "\(samplePath)")
          try store.migrate()
          #expect(try store.version() == \(last.typeName).versionIdentifier)
          try store.expectRowsKept()
        }

        @Test("a migrated store has the structure of a new one")
        func structure() throws {
          let store = try test.store(copying: "\(samplePath)")
          try store.migrate()
          try store.expectStructure(equals: test.store(at: \(last.typeName).self))
        }

        @Test("stores of every version migrate to every later one, with random models")
        func everyVersion() throws {
          try test.expectEveryVersionMigrates(seed: 1)
        }

        @Test("a failure at any row that the plan writes leaves the store as it was")
        func failures() throws {
          let store = try test.store(copying: "\(samplePath)")
          try test.expectUnchangedAfterFailure(atEachRowOf: store)
        }

        @Test("the plan makes the statements that were reviewed")
        func statements() throws {
          try test.expectStatements(match: "\(snapshotPath)")
        }
      }

      """
  }

  /// The program that makes the sample store and the snapshot of the statements, in the folder that it is given.
  var sampleProgram: String {
    let first = versions[0].typeName
    let store =
      sample.map {
        "test.store(at: \(first).self) { context in\n\(Self.indented(Self.indented(Self.indented($0))))\n    }"
      }
      ?? "test.randomStore(at: \(first).self, rows: 20, seed: 1)"
    return """
      import Foundation
      import Instar
      import InstarTesting

      @testable import \(name)

      @main enum MakeSamples {
        static func main() throws {
          let folder = URL(fileURLWithPath: CommandLine.arguments[1], isDirectory: true)
          let test = MigrationTest(\(planName).self)
          let store = try \(store)
          try FileManager.default.copyItem(
            at: store.url, to: folder.appendingPathComponent("\(samplePath)"))
          try Data(test.statements(from: \(first).self).utf8).write(
            to: folder.appendingPathComponent("\(snapshotPath)"))
        }
      }

      """
  }

  private var manifest: String {
    let libraries = buildFolder.map { String(reflecting: $0) } ?? "\"/usr/lib/instar\""
    let sdk = buildFolder.map { String(reflecting: $0) } ?? "\"/usr/lib/instar/sdk\""
    return """
      // swift-tools-version: 6.2
      // For editors, debuggers and 'swift test'. 'instarctl plugin build' and 'plugin test' do not need it.
      import PackageDescription

      /// Where Instar is installed. INSTAR_BUILD_DIR names a build folder of Instar to use instead.
      let buildFolder = Context.environment["INSTAR_BUILD_DIR"]
      let libraries = buildFolder ?? \(libraries)
      let sdk = buildFolder ?? \(sdk)

      let imports: [SwiftSetting] = [
        .unsafeFlags([
          "-I", "\\(sdk)/Modules",
          "-load-plugin-executable", "\\(sdk)/InstarMacros-tool#InstarMacros",
        ])
      ]
      let links: [LinkerSetting] = [
        .unsafeFlags(["-L", libraries, "-lInstar", "-Xlinker", "-rpath", "-Xlinker", libraries])
      ]

      let package = Package(
        name: "\(name)",
        products: [.library(name: "\(name)", type: .dynamic, targets: ["\(name)"])],
        targets: [
          .target(
            name: "\(name)",
            swiftSettings: imports + [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "Instar"])],
            linkerSettings: links),
          .testTarget(
            name: "\(name)Tests", dependencies: ["\(name)"], exclude: ["\(planName).sql"],
            swiftSettings: imports, linkerSettings: links),
        ],
        swiftLanguageModes: [.v5]
      )

      """
  }
}
