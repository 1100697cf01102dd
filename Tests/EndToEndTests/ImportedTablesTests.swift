import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("imported tables")
struct ImportedTablesTests {
  private struct Imported: Decodable {
    var source: String
    var notes: [String]
  }

  @Test("the models read off a store of tables compile, and know the store again")
  func compiled() async throws {
    let names = ["alembic", "django", "golang", "grdb", "odd", "room"]
    let folder = try TemporaryFolder()
    var stores: [TableStore] = []
    var plans: [String] = []
    for name in names {
      let store = try TableStore(name)
      stores.append(store)
      let answer = try await CommandLineTool.run(
        "schema", "import", store.path, "--name", "\(name.capitalized)Schema", "--json")
      #expect(answer.status == 0, Comment(rawValue: answer.messages))
      let imported = try #require(try answer.objects(Imported.self).first)
      try Data(imported.source.utf8).write(to: folder.url.appendingPathComponent("\(name).swift"))
      plans.append(
        """
        enum \(name.capitalized)Plan: SchemaMigrationPlan {
          static var schemas: [any VersionedSchema.Type] { [\(name.capitalized)Schema.self] }
          static var stages: [MigrationStage] { [] }
        }
        """)
    }
    let list = names.map { "\($0.capitalized)Plan.self" }.joined(separator: ", ")
    let source = (["import Instar", "#InstarPlugin(\(list))"] + plans).joined(separator: "\n\n")
    try Data(source.utf8).write(to: folder.url.appendingPathComponent("Plans.swift"))
    let plugin = folder.path("Imported.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", folder.path, "-o", plugin, "--debug")
    try #require(built.status == 0, Comment(rawValue: built.messages))
    for (name, store) in zip(names, stores) {
      let answer = try await CommandLineTool.run("probe", store.path, "--plugin", plugin, "--json")
      let report = try #require(try answer.objects(ProbeReport.self).first)
      let comment = Comment(rawValue: "\(name): \(answer.output)")
      #expect(report.plan == "\(name.capitalized)Plan", comment)
      // Only Room's store says its version where others look for it.
      #expect(report.state == (name == "room" ? .current : .unversioned), comment)
      let version = name == "room" ? "3.0.0" : "1.0.0"
      let difference = try await CommandLineTool.run(
        "schema", "diff", store.path, "\(plugin)@\(version)", "--plan",
        "\(name.capitalized)Plan")
      #expect(difference.output.contains("no difference"), Comment(rawValue: difference.output))
    }
  }

  @Test("what the tables tell becomes keys, relationships, links and encodings")
  func told() async throws {
    let store = try TableStore("alembic")
    let answer = try await CommandLineTool.run("schema", "import", store.path, "--json")
    let imported = try #require(try answer.objects(Imported.self).first)
    for line in [
      #"@Column(.type("VARCHAR(200)"), .collation("NOCASE")) var title: String"#,
      #"@Column(.type("DATETIME"), .encoding(.dateTime)) var createdAt: Date"#,
      "var folder: Folder?",
      #"@Column(.junction("note_tag", own: "note_id", other: "tag_id"))"#,
    ] {
      #expect(imported.source.contains(line), Comment(rawValue: imported.source))
    }
    #expect(imported.notes.contains { $0.contains("note_fts") })
    #expect(imported.notes.contains { $0.contains(#".alembic("ae1027a6acf")"#) })
  }
}
