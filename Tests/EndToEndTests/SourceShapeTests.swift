import Foundation
import GRDB
import InstarTestSupport
import Testing

/// The model code of apps, as their authors write it for SwiftData, with only the import changed.
@Suite("Sources written for SwiftData")
struct SourceShapeTests {
  private static let folder = CommandLineTool.repository
    .appendingPathComponent("Tests/Fixtures/Sources")

  static let apps: [String] = {
    let found = try? FileManager.default.contentsOfDirectory(
      at: folder, includingPropertiesForKeys: [.isDirectoryKey])
    return (found ?? []).filter(\.hasDirectoryPath).map(\.lastPathComponent).sorted()
  }()

  /// Those with global variables that can change, or with `let` in models, which Swift 6 refuses.
  private static let onlySwift5: Set = ["Contacts", "Habits", "Parcels", "Trips"]
  /// Instar warns about code that SwiftData ignores.
  private static let options = [
    "Observatory": ["-no-warnings-as-errors"], "Parcels": ["-no-warnings-as-errors"],
    "Signals": ["-no-warnings-as-errors"],
  ]

  private let scratch: TemporaryFolder

  init() throws { scratch = try TemporaryFolder() }

  /// The files of an app.
  private func files(_ app: String) throws -> [String] {
    let files = try FileManager.default.contentsOfDirectory(
      atPath: Self.folder.appendingPathComponent(app).path
    ).filter { $0.hasSuffix(".swift") }.sorted()
    return files.map { Self.folder.appendingPathComponent("\(app)/\($0)").path }
  }

  private func build(
    _ app: String, languageMode: Int, options: [String] = []
  ) async throws -> String {
    let program = scratch.path(app)
    let support = Self.folder.appendingPathComponent("Support.swift").path
    let answer = try await SwiftCompiler.link(
      try files(app) + [support], output: program, languageMode: languageMode,
      options: options + (Self.options[app] ?? []))
    try #require(answer.status == 0, Comment(rawValue: answer.messages))
    return program
  }

  @Test("compile as an app, and behave", arguments: apps)
  func app(_ app: String) async throws {
    let program = try await build(app, languageMode: Self.onlySwift5.contains(app) ? 5 : 6)
    let run = try await Program.run(program, [])
    #expect(run.status == 0, Comment(rawValue: run.messages))
  }

  @Test("compile in Swift 5 mode too", arguments: apps.filter { !onlySwift5.contains($0) })
  func swift5(_ app: String) async throws {
    let support = Self.folder.appendingPathComponent("Support.swift").path
    let answer = try await SwiftCompiler.run(
      ["-typecheck", "-warnings-as-errors"] + (Self.options[app] ?? []),
      files: try files(app) + [support], languageMode: 5)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
  }

  @Test("a 'let' in a model is an error in Swift 6 mode, with a fix-it")
  func constants() async throws {
    let answer = try await SwiftCompiler.run(
      ["-typecheck"], files: try files("Parcels").filter { !$0.hasSuffix("/main.swift") })
    #expect(answer.status != 0)
    #expect(answer.messages.contains("'id' must be declared with 'var'"))
  }

  @Test("a custom data store is refused with one sentence")
  func customStore() async throws {
    let file = scratch.path("Store.swift")
    try Data(
      """
      import Instar
      final class JSONStoreConfiguration: DataStoreConfiguration { typealias Store = JSONStore }
      final class JSONStore: DataStore {
        typealias Configuration = JSONStoreConfiguration
        typealias Snapshot = DefaultSnapshot
      }
      """.utf8
    ).write(to: URL(fileURLWithPath: file))
    let answer = try await SwiftCompiler.run(["-typecheck"], files: [file])
    let errors = answer.messages.split(separator: "\n").filter { $0.contains(" error: ") }
    let sentence =
      "Instar keeps models in SQLite stores only; describe the store with a ModelConfiguration"
    #expect(!errors.isEmpty && errors.allSatisfy { $0.contains(sentence) }, "\(answer.messages)")
  }

  @Test("behave in Swift 5 mode, and isolated to the main actor, as new projects are")
  func otherModes() async throws {
    for (app, languageMode, options) in [
      ("Page", 5, []), ("Isolated", 6, ["-default-isolation", "MainActor"]),
    ] {
      let program = try await build(app, languageMode: languageMode, options: options)
      let run = try await Program.run(program, [])
      #expect(run.status == 0, "\(app): \(run.messages)")
    }
  }

  @Test(
    "compile as a plugin, and migrate a store of their first version",
    arguments: [
      ("Trips", "TripsMigrationPlan"), ("Notebook", "NotebookMigrationPlan"),
      ("Recipes", "RecipeMigrationPlan"), ("Contacts", "ContactsMigrationPlan"),
      ("Page", "PagePlan"), ("Harbor", "HarborMigrationPlan"),
      ("Garden", "GardenMigrationPlan"), ("Sightings", "SightingsMigrationPlan"),
      ("Parcels", "ParcelsPlan"), ("Clinic", "ClinicPlan"),
    ])
  func plugin(_ app: String, plan: String) async throws {
    let program = try await build(app, languageMode: 5)
    let store = scratch.path("old.store")
    let making = try await Program.run(program, [store])
    try #require(making.status == 0, Comment(rawValue: making.messages))

    let line = scratch.path("Plugin.swift")
    try Data("import Instar\n#InstarPlugin(\(plan).self)\n".utf8)
      .write(to: URL(fileURLWithPath: line))
    let plugin = scratch.path("\(app)Plans.so")
    let sources = try files(app).filter { !$0.hasSuffix("/main.swift") }
    // The program above is in Swift 5 mode, so both modes compile each source that allows it.
    let languageMode = Self.onlySwift5.contains(app) ? "5" : "6"
    let built = try await CommandLineTool.run(
      ["plugin", "build", "--debug", "--swift-version", languageMode, "-o", plugin, line] + sources)
    try #require(built.status == 0, Comment(rawValue: built.messages))

    let migrated = try await CommandLineTool.run(
      "migrate", store, "--plugin", plugin, "--state-dir", scratch.path("state"))
    #expect(migrated.status == 0, Comment(rawValue: migrated.messages + migrated.output))
    #expect(try rows(of: app, store) == Self.migratedRows[app])
  }

  /// What the stages of each app make of its old store.
  private static let migratedRows = [
    "Trips": ["Oslo Oslo 1", "Rome Rome 1"],
    "Notebook": ["Old first"],
    "Recipes": [#"Stew ["Read the old card."]"#],
    "Contacts": ["ada Ada King Lovelace", "grace Grace Hopper"],
    "Page": ["one text of one inbox migrated", "two text of two inbox migrated"],
    "Harbor": ["norway 7 2", "unknown 0 0"],
    "Sightings": ["0 5 -", "1 2 -", "2 1 dodo", "by migration"],
    "Garden": ["South unknown herbs sage", "South unknown herbs thyme"],
    "Parcels": ["box 1.5 60 Oslo-Rome", "letter 1.5 7 "],
    "Clinic": ["Ada due", "Bo -", "Cleo -", "Dana asked twice", "Eve -"],
  ]

  private static let queries = [
    "Trips":
      "SELECT t.ZNAME || ' ' || l.ZADDRESS FROM ZTRIP t JOIN ZLIVINGACCOMMODATION l ON l.ZTRIP = t.Z_PK",
    "Notebook":
      "SELECT n.ZTITLE || ' ' || p.ZBODY FROM ZNOTEBOOK n JOIN ZPAGE p ON p.ZNOTEBOOK = n.Z_PK",
    "Recipes": "SELECT ZTITLE || ' ' || CAST(ZSTEPS AS TEXT) FROM ZRECIPE",
    "Page":
      "SELECT n.ZTITLE || ' ' || CAST(n.ZCONTENT AS TEXT) || ' ' || f.ZNAME || ' ' || t.ZNAME "
      + "FROM ZNOTE n JOIN ZFOLDER f ON n.ZFOLDER = f.Z_PK JOIN ZTAG t",
    "Harbor":
      "SELECT s.ZFLAG || ' ' || b.ZNUMBER || ' ' || (SELECT COUNT(*) FROM ZCARGO c WHERE c.ZSHIP = s.Z_PK) "
      + "FROM ZSHIP s JOIN ZBERTH b ON s.ZBERTH = b.Z_PK",
    "Sightings":
      "SELECT ZCHANGETYPE || ' ' || COUNT(*) || ' ' || ifnull(max(ZTOMBSTONE1), '-') FROM ACHANGE "
      + "GROUP BY ZCHANGETYPE UNION SELECT 'by ' || ZNAME FROM ATRANSACTIONSTRING WHERE ZNAME = 'migration'",
    "Garden":
      "SELECT g.ZNAME || ' ' || g.ZCITY || ' ' || b.ZTITLE || ' ' || p.ZNAME "
      + "FROM ZGARDEN g JOIN ZBED b ON b.ZGARDEN = g.Z_PK JOIN ZPLANT p ON p.ZBED = b.Z_PK",
    "Parcels": "SELECT ZSUMMARY FROM ZPARCEL",
    "Clinic": "SELECT ZNAME || ' ' || ifnull(ZNOTES, '-') FROM ZVISIT",
    "Contacts": "SELECT ZEMAIL || ' ' || ZGIVENNAME || ' ' || ZFAMILYNAME FROM ZPERSON",
  ]

  private func rows(of app: String, _ store: String) throws -> [String] {
    let query = try #require(Self.queries[app])
    return try DatabaseQueue(path: store).read { db in
      try String.fetchAll(db, sql: "SELECT * FROM (\(query)) ORDER BY 1")
    }
  }
}
