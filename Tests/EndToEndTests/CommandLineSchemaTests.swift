import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("instarctl schema")
struct CommandLineSchemaTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// The parts of `schema diff --json` that scripts rely on.
  private struct Difference: Decodable {
    struct Side: Decodable {
      var kind: String
      var version: Schema.Version?
    }
    struct Change: Decodable {
      var sentence: String
      var needsCustomStage: String?
    }
    var from: Side
    var to: Side
    var changes: [Change]
    var stage: String?
    var source: String?
  }

  private static let notesStore =
    CommandLineTool.repository.appendingPathComponent("Plugins/notes/stores/notes-1.store").path

  @Test("schema show lists the entities of a plugin's last version, or of the named one")
  func showPlugin() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let last = try await CommandLineTool.run("schema", "show", plugin)
    #expect(last.status == 0, Comment(rawValue: last.messages))
    #expect(last.output.contains("NotesMigrationPlan (NotesSchemaV2)"))
    #expect(last.output.contains("content    Data?"))
    #expect(last.output.contains("was contentNew"))
    #expect(last.output.contains("notes  → many Note  inverse folder, on delete cascade"))

    let first = try await CommandLineTool.run("schema", "show", "\(plugin)@1.0.0", "--json")
    struct Shown: Decodable {
      var kind: String
      var version: Schema.Version
      var schema: Schema
    }
    let shown = try #require(try first.objects(Shown.self).first)
    #expect(shown.kind == "plugin")
    #expect(shown.version == Schema.Version(1, 0, 0))
    #expect(shown.schema.entities.map(\.name) == ["Folder", "Note", "Tag"])
  }

  @Test("schema diff says what changes between two versions, and ends with the stage to paste")
  func diffVersions() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let answer = try await CommandLineTool.run(
      "schema", "diff", "\(plugin)@1.0.0", "\(plugin)@1.1.0")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    #expect(answer.output.contains("stage: lightweight"))
    #expect(
      answer.output.contains(
        ".lightweight(fromVersion: NotesSchemaV1.self, toVersion: NotesSchemaV1_1.self)"))

    let same = try await CommandLineTool.run("schema", "diff", plugin, plugin)
    #expect(same.output.contains("no difference"))
  }

  @Test("a store is compared with a version by what its tables show")
  func diffStore() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let equal = try await CommandLineTool.run(
      "schema", "diff", Self.notesStore, "\(plugin)@1.0.0", "--json")
    let nothing = try #require(try equal.objects(Difference.self).first)
    #expect(nothing.changes.map(\.sentence) == [])
    #expect(nothing.from.kind == "store")
    #expect(nothing.from.version == Schema.Version(1, 0, 0))

    let behind = try await CommandLineTool.run(
      "schema", "diff", Self.notesStore, plugin, "--json")
    let difference = try #require(try behind.objects(Difference.self).first)
    #expect(!difference.changes.isEmpty)
    #expect(difference.stage == "custom")
    // The store does not know what its version is called in the plan's source.
    #expect(
      difference.source?.contains("fromVersion: <#SchemaV1#>.self, toVersion: NotesSchemaV2.self")
        == true)
  }

  @Test("schema export writes the same text each time, and schema diff takes it on either side")
  func export() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let schemas = folder.path("schemas")
    let first = try await CommandLineTool.run("schema", "export", plugin, "-o", schemas)
    #expect(first.status == 0, Comment(rawValue: first.messages))
    let names = ["1.0.0", "1.1.0", "2.0.0"].map { "NotesMigrationPlan-\($0).json" }
    #expect(folder.names("schemas") == names)
    let second = try await CommandLineTool.run("schema", "export", plugin, "-o", schemas)
    #expect(second.output.split(separator: "\n").allSatisfy { $0.hasSuffix("unchanged") })

    let answer = try await CommandLineTool.run(
      "schema", "diff", "\(schemas)/\(names[0])", "\(plugin)@1.0.0", "--json")
    let difference = try #require(try answer.objects(Difference.self).first)
    #expect(difference.changes.isEmpty)
    #expect(difference.stage == nil)

    let one = try await CommandLineTool.run("schema", "export", plugin, "--version", "1.1.0")
    #expect(
      one.output == (try String(contentsOfFile: "\(schemas)/\(names[1])", encoding: .utf8)))
  }

  @Test("a default that is computed does not change what is exported")
  func computedDefaults() async throws {
    let source = folder.url.appendingPathComponent("Stamps.swift")
    try Data(
      """
      import Instar

      #InstarPlugin(StampPlan.self)

      enum StampPlan: SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [StampSchema.self] }
        static var stages: [MigrationStage] { [] }
      }

      enum StampSchema: VersionedSchema {
        static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
        static var models: [any PersistentModel.Type] { [Stamp.self] }

        @Model final class Stamp {
          var id: UUID = UUID()
          var madeAt: Date = Date.now
          var count: Int = 3
          init() {}
        }
      }
      """.utf8
    ).write(to: source)
    let plugin = folder.path("Stamps.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", source.path, "-o", plugin, "--debug")
    #expect(built.status == 0, Comment(rawValue: built.messages))
    let texts = [
      try await CommandLineTool.run("schema", "export", plugin).output,
      try await CommandLineTool.run("schema", "export", plugin).output,
    ]
    #expect(texts[0] == texts[1])
    let document = try JSONDecoder().decode(SchemaDocument.self, from: Data(texts[0].utf8))
    #expect(document.computedDefaults == ["Stamp.id", "Stamp.madeAt"])
    let stamp = try #require(document.schema.entity(named: "Stamp"))
    #expect(stamp.attributesByName["count"]?.storedDefault == .integer(3))
  }

  @Test("a file that cannot be read is refused with its code and status")
  func refusals() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let text = folder.path("text.store")
    try Data("no store, and long enough to be one".utf8).write(to: URL(fileURLWithPath: text))
    let document = folder.path("other.json")
    try Data("{}".utf8).write(to: URL(fileURLWithPath: document))
    let later = folder.path("later.json")
    try Data("{\"instarSchema\": 99}".utf8).write(to: URL(fileURLWithPath: later))
    let cases: [(arguments: [String], code: InstarError.Code, status: Int32)] = [
      (["show", text], .notAStore, 3),
      (["show", folder.path("none.store")], .missingStore, 5),
      (["show", folder.path("none.so")], .missingPlugin, 5),
      (["show", folder.path("none.json")], .missingFile, 5),
      (["show", document], .notASchema, 3),
      (["show", later], .notASchema, 3),
      (["show", "\(plugin)@9.0.0"], .unknownVersion, 3),
      (["show", plugin, "--plan", "None"], .noPlan, 3),
      (["export", plugin, "--version", "9.0.0"], .unknownVersion, 3),
      (["import", text], .notAStore, 3),
      (["import", Self.notesStore, "-o", text], .outputFailed, 1),
    ]
    for (arguments, code, status) in cases {
      let answer = try await CommandLineTool.run(["schema"] + arguments + ["--json"])
      #expect(answer.status == status, "\(arguments)")
      #expect(try answer.errors().map(\.code) == [code], "\(arguments): \(answer.messages)")
    }
    for arguments in [["show", "\(plugin)@last"], ["import", text, "--name", "2nd"]] {
      let answer = try await CommandLineTool.run(["schema"] + arguments)
      #expect(answer.status == 2, "\(arguments)")
    }
  }

  @Test("a migrated store contains its plan's schema, which is used while its tables match")
  func importFromMetadata() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let store = folder.path("a.store")
    try FileManager.default.copyItem(atPath: Self.notesStore, toPath: store)
    let run = try await CommandLineTool.run(
      "migrate", store, "--plugin", plugin, "--state-dir", folder.path("state"))
    try #require(run.status == 0, Comment(rawValue: run.messages))
    struct Imported: Decodable {
      var origin: String
      var source: String?
    }
    let source = folder.path("Again.swift")
    let first = try await CommandLineTool.run(
      "schema", "import", store, "--name", "Again", "-o", source, "--json")
    #expect(try first.objects(Imported.self).map(\.origin) == ["metadata"])

    let handle = try FileHandle(forWritingTo: URL(filePath: source))
    try handle.seekToEnd()
    try handle.write(
      contentsOf: Data(
        """

        #InstarPlugin(AgainPlan.self)

        enum AgainPlan: SchemaMigrationPlan {
          static var schemas: [any VersionedSchema.Type] { [Again.self] }
          static var stages: [MigrationStage] { [] }
        }
        """.utf8))
    try handle.close()
    let built = try await CommandLineTool.run(
      "plugin", "build", source, "-o", folder.path("Again.so"), "--debug")
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let equal = try await CommandLineTool.run(
      "schema", "diff", folder.path("Again.so"), plugin, "--json")
    #expect(try equal.objects(Difference.self).first?.changes.map(\.sentence) == [])

    let queue = try DatabaseQueue(path: store)
    try await queue.write { try $0.execute(sql: "ALTER TABLE ZNOTE ADD COLUMN ZEXTRA VARCHAR") }
    try queue.close()
    let second = try await CommandLineTool.run("schema", "import", store, "--json")
    #expect(try second.objects(Imported.self).map(\.origin) == ["tables"])
  }

  @Test("a store that Instar made is imported as source that builds")
  func importPlainly() async throws {
    let answer = try await CommandLineTool.run(
      "schema", "import", Self.notesStore, "--name", "Imported", "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    struct Imported: Decodable {
      var source: String
      var fingerprint: String
      var origin: String
    }
    let imported = try #require(try answer.objects(Imported.self).first)
    #expect(imported.origin == "tables")
    #expect(imported.source.contains("enum Imported: VersionedSchema {"))
  }
}
