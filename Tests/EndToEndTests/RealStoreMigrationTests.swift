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
    #expect(notes.contains { $0.hasPrefix("Apple's frameworks may not recognize version 2.0.0") })

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
    #expect(seen.entities == [CountedEntity(name: "User", rows: 3)])
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

  /// The exact statements of a schema.
  private func statements(_ path: String) throws -> Set<String> {
    try StoreReader.withReadOnlyStore(path) { db in
      try String.fetchSet(
        db,
        sql: """
          SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL
            AND name NOT IN ('Z_PRIMARYKEY', 'Z_METADATA', 'Z_MODELCACHE')
          """)
    }
  }

  @Test("SampleModel ends as Apple's own migration of it ended: every table, index, row and link")
  func sampleModel() async throws {
    let folder = try TemporaryFolder()
    let path = try #require(
      try RealStores.copy("alemar11__CoreDataPlus__SampleModel_V1.sqlite", to: folder))
    let target = try #require(
      try RealStores.copy("alemar11__CoreDataPlus__SampleModel_V2.sqlite", to: folder))
    let rows = """
      SELECT Z_PK || ' ' || Z_ENT || ' ' || Z_OPT || ' ' || ifnull(ZOWNER, '') || ZNUMBERPLATE
      FROM ZCAR ORDER BY Z_PK
      """
    let before = try StoreReader.withReadOnlyStore(path) { try String.fetchAll($0, sql: rows) }
    let plugin = try await FixturePlugins.cars.value
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--adopt", "1.0.0", "--state-dir",
      folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    #expect(try statements(path) == statements(target))
    #expect(
      try StoreReader.withReadOnlyStore(path) { try String.fetchAll($0, sql: rows) } == before)
    let report = try #require(try answer.objects(RunReport.self).first)
    let luxury = try #require(report.entities.first { $0.name == "LuxuryCar" })
    #expect(luxury.rowsBefore == luxury.rowsAfter)
    let (ours, theirs) = try (
      StoreReader.withReadOnlyStore(path) { try CoreDataMetadata.read($0) },
      StoreReader.withReadOnlyStore(target) { try CoreDataMetadata.read($0) }
    )
    #expect(ours.uuid == theirs.uuid)
  }

  @Test(
    "each step of Moody's five versions ends with the tables, indexes and values of the real store",
    arguments: 1...4)
  func moody(from version: Int) async throws {
    func name(_ version: Int) -> String {
      "objcio__core-data__Moody\(version == 1 ? "" : "\(version)").moody"
    }
    let folder = try TemporaryFolder()
    let plugin = try await Self.moodyPlugin(versions: version + 1, in: folder)
    let path = try #require(try RealStores.copy(name(version), to: folder))
    let target = try #require(try RealStores.copy(name(version + 1), to: folder))
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--adopt", "\(version).0.0", "--state-dir",
      folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    #expect(try statements(path) == statements(target))
    let (ours, theirs) = try (moodyValues(path), moodyValues(target))
    #expect(!ours.isEmpty)
    #expect(ours == theirs)
  }

  @Test("Moody goes through all its versions at once to the values of the last real store")
  func moody() async throws {
    let plugin = try await FixturePlugins.moody.value
    let folder = try TemporaryFolder()
    let path = try #require(try RealStores.copy("objcio__core-data__Moody.moody", to: folder))
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--adopt", "1.0.0", "--state-dir",
      folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    let target = try #require(try RealStores.copy("objcio__core-data__Moody5.moody", to: folder))
    #expect(try statements(path) == statements(target))
    #expect(try moodyValues(path) == moodyValues(target))
  }

  /// The plan with its first versions only.
  private static func moodyPlugin(
    versions: Int, in folder: TemporaryFolder
  ) async throws -> String {
    let file = CommandLineTool.repository.appendingPathComponent(
      "Tests/Fixtures/Plugins/Moody.swift")
    let source = try String(contentsOf: file, encoding: .utf8)
      .replacingOccurrences(of: "versionCount = 5", with: "versionCount = \(versions)")
    let copy = folder.url.appendingPathComponent("Moody.swift")
    try Data(source.utf8).write(to: copy)
    let plugin = folder.path("Moody.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", copy.path, "-o", plugin, "--debug")
    try #require(built.status == 0, Comment(rawValue: built.messages))
    return plugin
  }

  /// The content of a Moody store of any version. Apple's migration by mapping models changed the keys of rows, so rows
  /// are matched by their values.
  private func moodyValues(_ path: String) throws -> [String] {
    try StoreReader.withReadOnlyStore(path) { db in
      let (regions, continents, countries): (String, String, String)
      if try db.tableExists("ZGEOGRAPHICREGION") {
        (regions, continents, countries) = (
          "ZGEOGRAPHICREGION", "WHERE Z_ENT = 2", "WHERE Z_ENT = 3"
        )
      } else {
        (regions, continents, countries) = (
          try db.tableExists("ZCONTINENT") ? "ZCONTINENT" : "", "", ""
        )
      }
      let countryTable = regions == "ZGEOGRAPHICREGION" ? regions : "ZCOUNTRY"
      let moods = try db.columns(in: "ZMOOD").map(\.name)
      func column(_ name: String) -> String { moods.contains(name) ? "ifnull(\(name), '-')" : "''" }
      let remoteID = moods.contains("ZREMOTEID") ? "ZREMOTEID" : "ZREMOTEIDENTIFIER"
      var lines: [String] = []
      if !regions.isEmpty {
        lines += try String.fetchAll(
          db,
          sql: """
            SELECT 'continent ' || ZNUMERICISO3166CODE || ' ' || ZNUMBEROFMOODS || ' '
              || ZNUMBEROFCOUNTRIES || ' ' || ZUPDATEDAT FROM \(regions) \(continents)
            """)
      }
      let continent =
        regions.isEmpty
        ? "ZISOCONTINENT"
        : "(SELECT r.ZNUMERICISO3166CODE FROM \(regions) AS r WHERE r.Z_PK = c.ZCONTINENT)"
      lines += try String.fetchAll(
        db,
        sql: """
          SELECT 'country ' || ZNUMERICISO3166CODE || ' ' || ZNUMBEROFMOODS || ' ' || ZUPDATEDAT
            || ' ' || ifnull(\(continent), '-') FROM \(countryTable) AS c \(countries)
          """)
      let moodContinent =
        moods.contains("ZCONTINENT")
        ? "ifnull((SELECT r.ZNUMERICISO3166CODE FROM \(regions) AS r WHERE r.Z_PK = m.ZCONTINENT), '-')"
        : "''"
      lines += try String.fetchAll(
        db,
        sql: """
          SELECT 'mood ' || \(remoteID) || ' ' || c.ZNUMERICISO3166CODE || ' ' || \(moodContinent)
            || ' ' || \(column("ZRATING")) || ' ' || ZDATE || ' ' || ZLATITUDE || ' ' || ZLONGITUDE
            || ' ' || ZCREATORID || ' ' || ZMARKEDFORREMOTEDELETION || ' ' || hex(ZCOLORS)
          FROM ZMOOD AS m JOIN \(countryTable) AS c ON c.Z_PK = m.ZCOUNTRY
          """)
      return lines.sorted()
    }
  }

  @Test("a store migrated with a reference store is what Apple's frameworks know as the version")
  func referenceStore() async throws {
    let folder = try TemporaryFolder()
    let name = "TrinsicVentures__FreezeRay__App-1_0_0.sqlite"
    let path = try #require(try RealStores.copy(name, to: folder))
    let target = try #require(
      try RealStores.copy("TrinsicVentures__FreezeRay__App-2_0_0.sqlite", to: folder))
    let plugin = folder.path("FreezeRay.so")
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.freezeRay.value, toPath: plugin)
    let references = folder.path("FreezeRay.referencestores")
    try FileManager.default.createDirectory(
      atPath: references, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: target, toPath: references + "/2.0.0.sqlite")
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    #expect(try answer.objects(RunReport.self).flatMap(\.notes).isEmpty)
    let ours = try StoreReader.withReadOnlyStore(path) { try CoreDataMetadata.read($0) }
    let theirs = try StoreReader.withReadOnlyStore(target) { try CoreDataMetadata.read($0) }
    #expect(ours.entityHashes == theirs.entityHashes)
    for key in [
      "NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey",
      "NSStoreModelVersionIdentifiers",
    ] {
      #expect("\(ours.plist[key] ?? "-")" == "\(theirs.plist[key] ?? "-")")
    }
    let cache = "SELECT hex(Z_CONTENT) FROM Z_MODELCACHE"
    let (one, two) = try (
      StoreReader.withReadOnlyStore(path) { try String.fetchOne($0, sql: cache) },
      StoreReader.withReadOnlyStore(target) { try String.fetchOne($0, sql: cache) }
    )
    #expect(one == two)
    #expect(ours.version == Schema.Version(2, 0, 0))

    // One that is a store of another version is of no use, and said to be so before anything is touched.
    try FileManager.default.removeItem(atPath: references + "/2.0.0.sqlite")
    let again = try TemporaryFolder()
    let other = try #require(try RealStores.copy(name, to: again))
    try FileManager.default.copyItem(atPath: other, toPath: references + "/2.0.0.sqlite")
    let refused = try await CommandLineTool.run(
      "migrate", other, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(refused.status != 0)
    #expect(refused.output.contains("I207"))
  }
}
