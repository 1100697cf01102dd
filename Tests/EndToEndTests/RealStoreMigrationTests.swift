import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite(
  "Migrating stores that Apple's frameworks wrote",
  .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
struct RealStoreMigrationTests {
  @Test(
    "a migrated store has exactly the structure of the real store of that version, and keeps its Z_UUID",
    arguments: ["249d147-1.0.0-App|249d147-2.0.0-App", "App-1_0_0|App-2_0_0"])
  func freezeRay(pair: String) async throws {
    let names = pair.split(separator: "|").map { "TrinsicVentures__FreezeRay__\($0).sqlite" }
    let folder = try TemporaryFolder()
    let path = try #require(try RealStores.copy(names[0], to: folder))
    let target = try #require(try RealStores.copy(names[1], to: folder))
    let uuid = try StoreReader.withReadOnlyStore(path) { try CoreDataMetadata.read($0).uuid }

    let plugin = try await FixturePlugins.freezeRay.value
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))

    let notes = try answer.objects(RunReport.self).flatMap(\.notes)
    #expect(notes.contains { $0.hasPrefix("Apple's frameworks may not recognise version 2.0.0") })

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

  @Test("rows that are only in the -wal file are probed and migrated with the others")
  func rowsInLog() async throws {
    let original = try TemporaryFolder()
    let copies = try TemporaryFolder()
    let open = try #require(
      try RealStores.copy("TrinsicVentures__FreezeRay__249d147-1.0.0-App.sqlite", to: original))
    let path = copies.path("a.store")
    // Copied while the app has it open: a store as it is after the app was killed.
    let queue = try DatabaseQueue(path: open)
    try await queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;
          INSERT INTO ZUSER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZCREATEDAT)
          VALUES (1, 1, 1, 'Ann', 100), (2, 1, 1, 'Bo', 200), (3, 1, 1, 'Cy', 300);
          UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_ENT = 1;
          """)
    }
    // `cp`: this process must not open and close files of a store that it has open.
    for side in ["", "-wal"] {
      let copying = try Process.run(
        URL(filePath: "/bin/cp"), arguments: [open + side, path + side])
      copying.waitUntilExit()
    }
    try queue.close()
    let plugin = try await FixturePlugins.freezeRay.value

    let probe = try await CommandLineTool.run("probe", path, "--plugin", plugin, "--json")
    let seen = try #require(try probe.objects(ProbeReport.self).first)
    #expect(seen.state == .behind)
    #expect(seen.entities == [ProbeReport.Entity(name: "User", rows: 3)])
    #expect((seen.walBytes ?? 0) > 0)
    #expect(copies.names() == ["a.store", "a.store-wal"])

    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", original.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    let report = try #require(try answer.objects(RunReport.self).first)
    #expect(
      report.entities == [RunReport.Entity(name: "User", rowsBefore: 3, rowsAfter: 3)])
    let names = try StoreReader.withReadOnlyStore(path) { db in
      try String.fetchAll(db, sql: "SELECT ZNAME FROM ZUSER WHERE ZEMAIL IS NULL ORDER BY Z_PK")
    }
    #expect(names == ["Ann", "Bo", "Cy"])
  }
}
