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

  /// Sources that Swift 6 refuses, with what its errors and fix-its ask for. The rules are the compiler's own: no
  /// global variable that any thread can change (SE-0412), and no macro that gives a `let` accessors.
  private static let corrections = [
    "Contacts": [
      "static var versionIdentifier =": "static let versionIdentifier =",
      "private static var names": "nonisolated(unsafe) private static var names",
    ],
    "Habits": ["static var maximum =": "static let maximum ="],
    "Parcels": [
      "static var versionIdentifier =": "static let versionIdentifier =",
      "public let id:": "public var id:", "public let createdAt": "public var createdAt",
      " let id: UUID": " var id: UUID", " let sent": " var sent", " let kind": " var kind",
      " let weight": " var weight", " let place: String": " var place: String",
    ],
    "Trips": ["static var versionIdentifier =": "static let versionIdentifier ="],
  ]
  /// Instar warns about code that SwiftData ignores, and Swift about what is Sendable already. Where a file imports
  /// Foundation only, the SDK is imported as by `instarctl plugin build`.
  private static let options = [
    "Almanac": ["-no-warnings-as-errors"],
    "Clinic": ["-Xfrontend", "-import-module", "-Xfrontend", "Instar"],
    "Observatory": ["-no-warnings-as-errors"],
    "Parcels": ["-no-warnings-as-errors"], "Signals": ["-no-warnings-as-errors"],
    "Taproom": ["-no-warnings-as-errors", "-package-name", "taproom"],
  ]

  /// The apps that a plugin is built of, with their plans. A plugin has several, because each build takes seconds.
  private static let plugins = [
    [
      ("Trips", "TripsMigrationPlan"), ("Notebook", "NotebookMigrationPlan"),
      ("Recipes", "RecipeMigrationPlan"), ("Contacts", "ContactsMigrationPlan"),
      ("Harbor", "HarborMigrationPlan"), ("Garden", "GardenMigrationPlan"),
      ("Sightings", "SightingsMigrationPlan"), ("Parcels", "ParcelsPlan"),
      ("Clinic", "ClinicPlan"), ("Errands", "ErrandsPlan"),
    ],
    [
      ("Page", "PagePlan"), ("Kennel", "KennelPlan"), ("Almanac", "AlmanacPlan"),
      ("Taproom", "TaproomPlan"),
    ],
    [("Fitness", "FitMigrationPlan"), ("Accounts", "LedgerPlan")],
  ]

  private let scratch: TemporaryFolder

  init() throws { scratch = try TemporaryFolder() }

  /// The files of an app.
  private static func files(_ app: String) throws -> [String] {
    let files = try FileManager.default.contentsOfDirectory(
      atPath: folder.appendingPathComponent(app).path
    ).filter { $0.hasSuffix(".swift") }.sorted()
    return files.map { folder.appendingPathComponent("\(app)/\($0)").path }
  }

  /// The apps, linked once each in the latest mode of Swift that accepts their source.
  private actor Programs {
    static let shared = Programs()
    private var tasks: [String: Task<String, any Error>] = [:]

    func path(_ app: String) async throws -> String {
      let task =
        tasks[app]
        ?? Task {
          try await SourceShapeTests.build(
            app, languageMode: SourceShapeTests.corrections[app] == nil ? 6 : 5)
        }
      tasks[app] = task
      return try await task.value
    }
  }

  private static func build(
    _ app: String, languageMode: Int, options: [String] = [], name: String? = nil
  ) async throws -> String {
    let folder = CommandLineTool.productsFolder.appendingPathComponent("EndToEndTests.apps")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let program = folder.appendingPathComponent(name ?? "\(app)\(languageMode)").path
    let support = Self.folder.appendingPathComponent("Support.swift").path
    let answer = try await SwiftCompiler.link(
      try files(app) + [support], output: program, languageMode: languageMode,
      options: options + (Self.options[app] ?? []))
    try #require(answer.status == 0, Comment(rawValue: answer.messages))
    return program
  }

  @Test("sources written for SwiftData compile as an app, and behave", arguments: apps)
  func app(_ app: String) async throws {
    let run = try await Program.run(try await Programs.shared.path(app), [])
    #expect(run.status == 0, Comment(rawValue: run.messages))
  }

  /// Apps with nested, inherited, conditional and unusual models.
  @Test(
    "sources written for SwiftData compile with their models expanded, and behave",
    arguments: ["Accounts", "Fitness", "Garden", "Harbor", "Kennel", "Page", "Trips", "Zoo"])
  func expandedApp(_ app: String) async throws {
    let files = try Self.files(app)
    let pairs = files.map { ($0, scratch.path(URL(fileURLWithPath: $0).lastPathComponent)) }
    let expansion = try await Program.run(
      SwiftCompiler.products + "/InstarMacros-tool", ["expand"] + pairs.flatMap { [$0.0, $0.1] })
    #expect(expansion.status == 0, Comment(rawValue: expansion.messages))
    let expanded = pairs.filter { FileManager.default.fileExists(atPath: $0.1) }
    #expect(!expanded.isEmpty)
    let roots = expanded.map { ["type": "file", "name": $0.0, "external-contents": $0.1] }
    let overlay = scratch.path("overlay.json")
    try JSONSerialization.data(
      withJSONObject: ["version": 0, "use-external-names": "false", "roots": roots]
    ).write(to: URL(fileURLWithPath: overlay))
    let program = try await Self.build(
      app, languageMode: Self.corrections[app] == nil ? 6 : 5,
      options: ["-vfsoverlay", overlay], name: "\(app)-expanded")
    let run = try await Program.run(program, [])
    #expect(run.status == 0, Comment(rawValue: run.messages))
  }

  @Test(
    "sources written for SwiftData compile in Swift 5 mode too",
    arguments: apps.filter { corrections[$0] == nil })
  func swift5(_ app: String) async throws {
    let support = Self.folder.appendingPathComponent("Support.swift").path
    let answer = try await SwiftCompiler.run(
      ["-typecheck", "-warnings-as-errors"] + (Self.options[app] ?? []),
      files: try Self.files(app) + [support], languageMode: 5)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
  }

  @Test(
    "sources written for SwiftData that Swift 6 refuses break Swift's own rules",
    arguments: corrections.keys.sorted())
  func swift6(_ app: String) async throws {
    let answer = try await SwiftCompiler.run(
      ["-typecheck"], files: try Self.files(app).filter { !$0.hasSuffix("/main.swift") })
    let errors = answer.messages.split(separator: "\n").filter { $0.contains(" error: ") }
    #expect(!errors.isEmpty)
    for error in errors {
      #expect(
        error.contains("is not concurrency-safe because it is nonisolated global shared")
          || error.contains("must be declared with 'var'"), "\(error)")
    }
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

  @Test(
    "sources written for SwiftData behave in Swift 5 mode, and isolated to the main actor, as new projects are"
  )
  func otherModes() async throws {
    for (app, languageMode, options) in [
      ("Page", 5, []), ("Isolated", 6, ["-default-isolation", "MainActor"]),
    ] {
      let program = try await Self.build(app, languageMode: languageMode, options: options)
      let run = try await Program.run(program, [])
      #expect(run.status == 0, "\(app): \(run.messages)")
    }
  }

  @Test(
    "sources written for SwiftData compile as plugins, and migrate stores of their first versions",
    arguments: ["5", "6"], plugins.indices)
  func plugin(languageMode: String, number: Int) async throws {
    let apps = Self.plugins[number]
    let line = scratch.path("Plugin.swift")
    let plans = apps.map { "\($0.1).self" }.joined(separator: ", ")
    try Data("import Instar\n#InstarPlugin(\(plans))\n".utf8).write(to: URL(filePath: line))
    let plugin = scratch.path("Plans.so")
    let sources = try apps.flatMap { try self.sources($0.0, languageMode: languageMode) }
    let built = try await CommandLineTool.run(
      ["plugin", "build", "--debug", "--swift-version", languageMode, "-o", plugin, line] + sources)
    try #require(built.status == 0, Comment(rawValue: built.messages))

    for (app, _) in apps {
      let store = scratch.path("\(app).store")
      let making = try await Program.run(try await Programs.shared.path(app), [store])
      try #require(making.status == 0, Comment(rawValue: making.messages))
      let migrated = try await CommandLineTool.run(
        "migrate", store, "--plugin", plugin, "--state-dir", scratch.path("state"))
      #expect(migrated.status == 0, Comment(rawValue: migrated.messages + migrated.output))
      #expect(try rows(of: app, store) == Self.migratedRows[app])
    }
  }

  /// The files of an app without its program; for Swift 6, corrected copies where it refuses them.
  private func sources(_ app: String, languageMode: String) throws -> [String] {
    let files = try Self.files(app).filter { !$0.hasSuffix("/main.swift") }
    guard languageMode == "6", let corrections = Self.corrections[app] else { return files }
    return try files.map { file in
      var source = try String(contentsOfFile: file, encoding: .utf8)
      for (before, after) in corrections { source = source.replacing(before, with: after) }
      let copy = scratch.path(URL(filePath: file).lastPathComponent)
      try Data(source.utf8).write(to: URL(filePath: copy))
      return copy
    }
  }

  /// What the stages of each app make of its old store.
  private static let migratedRows = [
    "Accounts": [
      "2024-03 250 NOK", "Café 3 -12.25 2 labels", "Café https://c.no 600000", "Job - -",
      "Job 1 1000 0 labels", "Main 85.25 #FF0000", "Old 0 #FF0000", "Rainy 1007 #00FF00",
      "café* 2 kg 1", "food 0", "food/out 1", "tip 3 -3 1 labels",
    ],
    "Fitness": [
      "10k 40.0 770428800", #"5.0 km, 2 splits 55.0 {"heartRate":{"zone":3}}"#,
      "Ada King ak@example.com 1", "Asix 5.0 km", "Bo bo@z 0", "Squat 100.0 [300,100]",
      "best of 3", "volume 700.0",
    ],
    "Almanac": [
      #"1 0.5 ["t0","of 3"] ++++-"#, #"2 - ["t1","of 3"] ++++-"#, #"3 2.5 ["t2","of 3"] ++++-"#,
      "RED SKY",
    ],
    "Taproom": [
      #"north {"failed":{"code":2}} clean ale 2 of 0.75"#, #"south {"waiting":{}} - - 0 of 0.0"#,
    ],
    "Trips": ["Oslo Oslo 1", "Rome Rome 1"],
    "Notebook": ["Old first"],
    "Recipes": [#"Stew ["Read the old card."]"#],
    "Contacts": ["ada Ada King Lovelace", "grace Grace Hopper"],
    "Page": ["one text of one inbox migrated", "two text of two inbox migrated"],
    "Harbor": ["norway 7 2", "unknown 0 0"],
    "Sightings": ["0 5 -", "1 2 -", "2 1 dodo", "by migration"],
    "Garden": ["South unknown herbs sage", "South unknown herbs thyme"],
    "Parcels": ["Parcel 1.0.0 box 1.5 60 Oslo-Rome", "Parcel 1.0.0 letter 1.5 7 "],
    "Clinic": ["Ada due", "Bo -", "Cleo -", "Dana asked twice", "Eve -"],
    "Errands": ["Brush none of Paint", "Milk shop", "Paint home", "Rest none"],
    "Kennel": [
      #"a1 Ada 12.5 20.0kg {"park":[2,1]} 432000 puppy Bo of Eve"#, "g-a1 Ada (guide) city",
      "invoice a1: 1 nights", "invoice a1: 5 nights",
    ],
  ]

  private static let queries = [
    "Accounts":
      "SELECT ZNAME || ' ' || ZBALANCE || ' ' || ZCOLORHEX FROM ZACCOUNT "
      + "UNION SELECT ZMONTH || ' ' || ZAMOUNT || ' ' || ZCURRENCY FROM ZBUDGET "
      + "UNION SELECT ZPATH || ' ' || ZDEPTH FROM ZCATEGORY "
      + "UNION SELECT e.ZMEMO || ' ' || e.ZFLAGS || ' ' || e.ZVALUE || ' ' "
      + "|| (SELECT COUNT(*) FROM ZENTRYLABEL l WHERE l.ZENTRY = e.Z_PK) || ' labels' FROM ZENTRY e "
      + "UNION SELECT ZNAME || ' ' || ifnull(ZWEBSITE, '-') || ' ' || ifnull(ZLASTUSED, '-') FROM ZPAYEE "
      + "UNION SELECT ZPATTERN || ' ' || json_extract(CAST(ZLIMITS AS TEXT), '$.value') || ' ' "
      + "|| json_extract(CAST(ZLIMITS AS TEXT), '$.unit.symbol') || ' ' "
      + "|| (instr(CAST(ZACTIONS AS TEXT), 'migrated') > 0) FROM ZRULE",
    "Fitness":
      "SELECT ZFULLNAME || ' ' || ZEMAIL || ' ' || ZRUNCOUNT FROM ZATHLETE "
      + "UNION SELECT ZSUMMARY || ' ' || ZCLIMB || ' ' || CAST(ZINTENSITY AS TEXT) FROM ZACTIVITY "
      + "WHERE ZSUMMARY <> '' "
      + "UNION SELECT 'volume ' || ZVOLUME FROM ZACTIVITY WHERE ZVOLUME IS NOT NULL "
      + "UNION SELECT 'best of ' || ZREPS FROM ZEXERCISESET WHERE ZISPERSONALBEST "
      + "UNION SELECT ZTITLE || ' ' || ZTARGET || ' ' || ZDEADLINE FROM ZGOAL "
      + "UNION SELECT ZBRAND || ' ' || ZKILOMETERS || ' km' FROM ZGEAR "
      + "UNION SELECT ZEXERCISE || ' ' || ZKILOGRAMS || ' ' || CAST(ZHISTORY AS TEXT) FROM ZPERSONALRECORD",
    "Almanac":
      "SELECT Z_PHASE || ' ' || ifnull(ZWARMEST, '-') || ' ' || CAST(Z_TAGS AS TEXT) || ' ' || ZLOG FROM ZDAY "
      + "UNION SELECT ZTEXT FROM ZSAYING",
    "Taproom":
      "SELECT t.ZUID || ' ' || CAST(t.ZSTATE AS TEXT) || ' ' || ifnull(t.ZREMARK, '-') || ' ' "
      + "|| ifnull((SELECT l.ZTEXT FROM ZLABEL l WHERE l.Z_PK = t.ZLABEL), '-') || ' ' "
      + "|| (SELECT COUNT(*) || ' of ' || ifnull(SUM(p.ZAMOUNT), 0.0) FROM ZPOUR p WHERE p.ZTAP = t.Z_PK) "
      + "FROM ZTAP t",
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
    "Errands":
      "SELECT e.ZTITLE || ' ' || m.ZNAME || ifnull(' of ' || p.ZTITLE, '') FROM ZERRAND e "
      + "JOIN Z_1MARKS j ON j.Z_1ERRANDS = e.Z_PK JOIN ZMARK m ON m.Z_PK = j.Z_2MARKS "
      + "LEFT JOIN ZERRAND p ON p.Z_PK = e.ZPARENT",
    "Clinic": "SELECT ZNAME || ' ' || ifnull(ZNOTES, '-') FROM ZVISIT",
    "Kennel":
      "SELECT d.ZCHIP || ' ' || d.ZNAME || ' ' || d.ZFEE || ' ' || d.ZVALUE || d.ZUNIT || ' ' "
      + "|| CAST(d.ZWALKS AS TEXT) || ' ' || d.ZLASTSTAY || ' puppy ' || p.ZNAME || ' of ' || o.ZNAME "
      + "FROM ZDOG d JOIN ZDOG p ON p.ZDAM = d.Z_PK JOIN ZOWNER o WHERE d.ZPICTURE IS NOT NULL "
      + "UNION SELECT ZCHIP || ' ' || ZNAME || ' ' || ZSCHOOL FROM ZDOG WHERE ZSCHOOL IS NOT NULL "
      + "UNION SELECT 'invoice ' || i.ZCHIP || ': ' || l.ZNIGHTS || ' nights' "
      + "FROM ZINVOICE i JOIN ZLINE l ON l.ZINVOICE = i.Z_PK",
    "Contacts": "SELECT ZEMAIL || ' ' || ZGIVENNAME || ' ' || ZFAMILYNAME FROM ZPERSON",
  ]

  private func rows(of app: String, _ store: String) throws -> [String] {
    let query = try #require(Self.queries[app])
    return try DatabaseQueue(path: store).read { db in
      try String.fetchAll(db, sql: "SELECT * FROM (\(query)) ORDER BY 1")
    }
  }
}
