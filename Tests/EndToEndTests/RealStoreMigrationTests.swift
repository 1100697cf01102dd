import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Migrating stores that Apple's frameworks wrote")
struct RealStoreMigrationTests {
  @Test(
    "a migrated store has exactly the structure of the real store of that version, and keeps its Z_UUID",
    arguments: ["249d147-1.0.0-App|249d147-2.0.0-App", "App-1_0_0|App-2_0_0"])
  func freezeRay(pair: String) async throws {
    let names = pair.split(separator: "|").map { "TrinsicVentures__FreezeRay__\($0).sqlite" }
    let folder = try TemporaryFolder()
    guard let path = try RealStores.copy(names[0], to: folder),
      let target = try RealStores.copy(names[1], to: folder)
    else { return }
    let uuid = try StoreReader.withReadOnlyStore(path) { try CoreDataMetadata.read($0).uuid }

    let plugin = try await FixturePlugins.freezeRay.value
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))

    // All of it, also what the format keeps for itself.
    func everything(_ path: String) throws -> [String] {
      try StoreReader.withReadOnlyStore(path) { db in
        try String.fetchAll(
          db,
          sql: """
            SELECT 'column ' || m.name || '.' || c.name || ' ' || c.type
            FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'
            UNION ALL
            SELECT 'index ' || sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL
            ORDER BY 1
            """)
      }
    }
    #expect(try everything(path) == everything(target))
    let metadata = try StoreReader.withReadOnlyStore(path) { try CoreDataMetadata.read($0) }
    #expect(metadata.uuid == uuid)
    #expect(metadata.version == Schema.Version(2, 0, 0))

    let probe = try await CommandLineTool.run("probe", path, "--plugin", plugin, "--json")
    let report = try #require(try probe.objects(ProbeReport.self).first)
    #expect(report.version == Schema.Version(2, 0, 0))
    #expect(report.state == .current)
  }
}
