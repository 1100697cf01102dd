import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Plugins of the notes that several tests use, built once each.
enum BuiltPlugins {
  static let notes = Task {
    try await SharedPlugin.build(
      "Notes", from: [CommandLineTool.repository.appendingPathComponent("Plugins/notes").path])
  }

  /// The plan of the notes, but its custom stage never ends.
  static let hangingNotes = Task {
    let hanging = """
      import Instar

      #InstarPlugin(HangingPlan.self)

      enum HangingPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { NotesMigrationPlan.schemas }
        static var stages: [MigrationStage] {
          [
            NotesMigrationPlan.addParagraphs,
            .custom(
              fromVersion: NotesSchemaV1_1.self, toVersion: NotesSchemaV2.self,
              willMigrate: { _ in
                while true { Thread.sleep(forTimeInterval: 60) }
              }, didMigrate: nil),
          ]
        }
      }
      """
    // Without the sample's own `#InstarPlugin` line: a plugin has one.
    let sources = CommandLineTool.repository.appendingPathComponent("Plugins/notes/Sources/Notes")
    let plan = try String(
      contentsOf: sources.appendingPathComponent("NotesMigrationPlan.swift"), encoding: .utf8)
    let schemas = ["NotesSchemaV1", "NotesSchemaV1_1", "NotesSchemaV2", "Paragraph"].map {
      sources.appendingPathComponent("\($0).swift").path
    }
    return try await SharedPlugin.build(
      "Hanging", from: schemas,
      texts: [
        "Hanging.swift": hanging,
        "NotesMigrationPlan.swift": plan.replacing(
          "#InstarPlugin(NotesMigrationPlan.self)", with: ""),
      ])
  }
}

@Suite("instarctl plugin")
struct CommandLinePluginTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private struct Inspection: Decodable {
    var abi: UInt32
    var supportedABI: UInt32
    var planNames: [String]
    var plans: [PlanManifest]?
    var error: InstarError?
  }

  @Test("a plugin is built from a package's sources, and inspect shows its versions and stages")
  func inspect() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let text = try await CommandLineTool.run("plugin", "inspect", plugin)
    #expect(text.status == 0, Comment(rawValue: text.messages))
    #expect(text.output.contains("2.0.0    Folder, Note, Tag"))
    #expect(text.output.contains("1.1.0 → 2.0.0  custom"))

    let answer = try await CommandLineTool.run("plugin", "inspect", plugin, "--json")
    let inspection = try #require(try answer.objects(Inspection.self).first)
    #expect(inspection.planNames == ["NotesMigrationPlan"])
    let plan = try #require(inspection.plans?.first)
    #expect(plan.versions.map(\.schema.version.description) == ["1.0.0", "1.1.0", "2.0.0"])
    #expect(plan.stages.map(\.kind) == [.lightweight, .custom])
  }

  @Test("compiler messages are passed through, and an earlier plugin stays")
  func compilerError() async throws {
    let source = folder.url.appendingPathComponent("Broken.swift")
    try Data("import Instar\nlet number: Int = \"text\"\n".utf8).write(to: source)
    let plugin = folder.url.appendingPathComponent("Broken.so")
    try Data("as it was".utf8).write(to: plugin)

    let answer = try await CommandLineTool.run(
      "plugin", "build", source.path, "-o", plugin.path, "--json")
    #expect(answer.status == 1)
    #expect(answer.messages.contains("error: cannot convert value of type 'String'"))
    #expect(try answer.errors().map(\.code) == [.buildFailed])
    #expect(try String(contentsOf: plugin, encoding: .utf8) == "as it was")
    #expect(folder.names() == ["Broken.so", "Broken.swift"])
  }

  @Test(
    "errors in the plugin line that follow from another error are left out, and the others stay")
  func followUpErrors() async throws {
    func messages(_ function: String) async throws -> String {
      let source = try folder.write(
        """
        import Instar

        enum V1: VersionedSchema {
          static let versionIdentifier = Schema.Version(1, 0, 0)
          static var models: [any PersistentModel.Type] { [] }
        }

        enum Plan: SchemaMigrationPlan {
          static var schemas: [any VersionedSchema.Type] { [V1.self] }
          static var stages: [MigrationStage] { [] }
        }

        #InstarPlugin(Plan.self)

        \(function)
        """, to: "Broken.swift")
      let answer = try await CommandLineTool.run(
        "plugin", "build", source, "-o", folder.path("Broken.so"))
      #expect(answer.status == 1)
      return answer.messages
    }
    let late = try await messages("func number() -> Int { let y: Int; return y }")
    #expect(late.contains("error: constant 'y' used before being initialized"), "\(late)")
    #expect(!late.contains("@const") && !late.contains("@section"), "\(late)")
    #expect(late.contains("next:   fix the compiler errors above"), "\(late)")
  }

  @Test("a property of a type that cannot be stored is refused by its name, with what to do")
  func unsupportedPropertyType() async throws {
    let source = folder.url.appendingPathComponent("Broken.swift")
    try Data(
      """
      import Instar
      struct Socket { var descriptor: Int32 }
      @Model final class Device {
        var name: String
        var connection: Socket?
        var spare = Socket(descriptor: 1)
        init(name: String) { self.name = name }
      }
      """.utf8
    ).write(to: source)
    let answer = try await CommandLineTool.run(
      "plugin", "build", source.path, "-o", folder.path("Broken.so"))
    #expect(answer.status == 1)
    #expect(answer.messages.contains("'connection' cannot be stored: its type must be a model"))
    #expect(answer.messages.contains("'spare' cannot be stored: its type must be a model"))
    #expect(answer.messages.contains("mark the property '@Transient'"))
    #expect(answer.messages.contains("Broken.swift:5:"))
    #expect(answer.messages.contains("var connection: Socket?"))
  }

  @Test("sources without a plugin line are refused with the line to write")
  func noPluginLine() async throws {
    let source = folder.url.appendingPathComponent("Plain.swift")
    try Data("import Instar\npublic let number = 1\n".utf8).write(to: source)
    let answer = try await CommandLineTool.run(
      "plugin", "build", source.path, "-o", folder.path("Plain.so"))
    #expect(answer.status == 1)
    #expect(answer.messages.contains("#InstarPlugin("))
    #expect(folder.names() == ["Plain.swift"])
  }

  @Test("a plugin whose plan is invalid is not built, and the error is that of inspect")
  func invalidPlan() async throws {
    let source = folder.url.appendingPathComponent("Gap.swift")
    try Data(
      """
      import Instar

      #InstarPlugin(GapPlan.self)

      enum GapPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [GapSchema.self, GapSchema.self] }
        static var stages: [MigrationStage] { [] }
      }

      enum GapSchema: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Gap.self] }

        @Model final class Gap {
          var width: Int = 0
          init() {}
        }
      }
      """.utf8
    ).write(to: source)
    let plugin = folder.path("Gap.so")
    let answer = try await CommandLineTool.run(
      "plugin", "build", source.path, "-o", plugin, "--debug", "--json")
    #expect(answer.status == 3, Comment(rawValue: answer.messages))
    let error = try #require(try answer.errors().first)
    #expect(error.code == .invalidPlan)
    #expect(error.what == "cannot build plugin '\(plugin)'")
    #expect(!"\(error)".contains(".building"))
    #expect(folder.names() == [".Gap.so.objects", "Gap.swift"])
  }

  @Test("a missing source and a missing compiler are reported")
  func missingParts() async throws {
    let missing = try await CommandLineTool.run(
      "plugin", "build", folder.path("None.swift"), "-o", folder.path("None.so"))
    #expect(missing.status == 5)
    #expect(missing.messages.contains("does not exist"))

    let source = folder.url.appendingPathComponent("Empty.swift")
    try Data("import Instar\n".utf8).write(to: source)
    let answer = try await CommandLineTool.run(
      ["plugin", "build", source.path, "-o", folder.path("Empty.so")],
      environment: ["PATH": folder.path])
    #expect(answer.status == 1)
    #expect(answer.messages.contains("no 'swiftc' in PATH"))
  }

  @Test(
    "plugin inspect shows the note of a plugin for another ABI, with both numbers, and exits with 3"
  )
  func otherABI() async throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: try await BuiltPlugins.notes.value))
    // The note's name, padded, then the ABI number in four bytes.
    let number = withUnsafeBytes(of: PluginNote.supportedABI.littleEndian) { Data($0) }
    let note = try #require(bytes.range(of: Data("Instar\0\0".utf8) + number))
    bytes[note.upperBound - number.count] = 99
    let plugin = folder.url.appendingPathComponent("Other.so")
    try bytes.write(to: plugin)

    let answer = try await CommandLineTool.run("plugin", "inspect", plugin.path, "--json")
    #expect(answer.status == 3)
    let inspection = try #require(try answer.objects(Inspection.self).first)
    #expect(inspection.abi == 99)
    #expect(inspection.planNames == ["NotesMigrationPlan"])
    #expect(inspection.plans == nil)
    let error = try #require(inspection.error)
    #expect(error.code == .wrongABI)
    #expect(error.description.contains("ABI 99"))
    #expect(error.description.contains("ABI \(inspection.supportedABI)"))
  }

  @Test(
    "an error of one of several plugins names it, in the text and in the JSON of a run",
    arguments: ["migrate", "rehearse"])
  func brokenAmongSeveral(command: String) async throws {
    let store = try BoxStore("fine", in: folder)
    let whole = try await FixturePlugins.boxes.value
    let bytes = try Data(contentsOf: URL(filePath: whole))
    for (name, contents, cause) in [
      ("empty.so", Data(), "not a 64-bit ELF file"),
      ("half.so", bytes.prefix(bytes.count / 2), "the file is truncated"),
    ] {
      let plugin = folder.path(name)
      try contents.write(to: URL(filePath: plugin))
      let answer = try await CommandLineTool.run(
        command, "--plugin", plugin, "--plugin", whole, store.path, "--json",
        "--state-dir", folder.path("state"))
      #expect(answer.status == 3)
      let report = try #require(
        try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
      #expect(report.plugin == plugin)
      #expect(report.error?.code == .notAPlugin)
      #expect(report.error?.cause == "cannot use '\(plugin)' as a plugin: \(cause)")
    }
  }

  @Test("a file that is not a plugin is refused with 3, a missing one with 5")
  func noPlugin() async throws {
    let file = folder.url.appendingPathComponent("text.so")
    try Data("not an ELF file".utf8).write(to: file)
    let text = try await CommandLineTool.run("plugin", "inspect", file.path, "--json")
    #expect(text.status == 3)
    #expect(try text.errors().map(\.code) == [.notAPlugin])

    let missing = try await CommandLineTool.run(
      "plugin", "inspect", folder.path("none.so"), "--json")
    #expect(missing.status == 5)
    #expect(try missing.errors().map(\.code) == [.missingPlugin])
  }
}
