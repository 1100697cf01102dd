import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("Matching a store with the plans of several plugins")
struct StoreMatchTests {
  private static let v1 = Schema.Version(1, 0, 0)
  private static let v2 = Schema.Version(2, 0, 0)
  private static let v3 = Schema.Version(3, 0, 0)

  private func schema(_ schema: Schema, _ version: Schema.Version) -> Schema {
    var copy = schema
    copy.version = version
    return copy
  }

  private func plan(_ name: String, _ schemas: [Schema]) throws -> PluginCatalog.Plan {
    let versions = try schemas.map { schema in
      let structure = try CoreDataLayout(schema: schema).structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    let stages = zip(schemas, schemas.dropFirst()).map {
      StageManifest(from: $0.version, to: $1.version, kind: .lightweight)
    }
    return PluginCatalog.Plan(
      plugin: "/plugins/\(name).so",
      manifest: PlanManifest(name: name, versions: versions, stages: stages))
  }

  /// A store with the structure of a schema.
  private func identity(
    _ schema: Schema = KeeperFixture.first, declares version: Schema.Version?
  ) throws -> StoreIdentity {
    let structure = try CoreDataLayout(schema: schema).structure
    return StoreIdentity(
      format: .coredata, version: version, entityNames: ["Note", "Folder"], structure: structure,
      fingerprint: structure.fingerprint)
  }

  private func match(
    _ identity: StoreIdentity, _ plans: [PluginCatalog.Plan]
  ) throws -> StoreMatch {
    try #require(try StoreMatch(of: identity, hashes: [:], among: plans))
  }

  @Test("without a plan there is no match")
  func noPlan() throws {
    #expect(try StoreMatch(of: identity(declares: Self.v1), hashes: [:], among: []) == nil)
  }

  @Test("the plan with the highest last version is used where two plans know a store")
  func furthest() throws {
    let short = try plan("Short", [KeeperFixture.first])
    let long = try plan("Long", [KeeperFixture.first, KeeperFixture.second])
    let store = try identity(declares: Self.v1)
    for plans in [[short, long], [long, short]] {
      let found = try match(store, plans)
      #expect(found.plan.manifest.name == "Long")
      #expect(found.match.state == .behind)
    }
  }

  @Test("a store that no plan knows is compared with the one that shares its tables")
  func sharedTables() throws {
    var other = KeeperFixture.first
    other.entities = [
      Schema.Entity(name: "Wine", attributes: [Schema.Attribute(name: "year", type: .int64)])
    ]
    var near = KeeperFixture.first
    for index in near.entities.indices {
      near.entities[index].attributes += ["one", "two", "three"].map {
        Schema.Attribute(name: $0, type: .string)
      }
    }
    let plans = try [plan("Wines", [other]), plan("Notes", [near])]
    let found = try match(identity(declares: Self.v1), plans)
    #expect(found.match.state == .unknown)
    #expect(found.plan.manifest.name == "Notes")
  }

  @Test(
    "if only the declared type of a column differs, the advice begins with what the model can say")
  func declaredType() throws {
    var rating = Schema.Entity(
      name: "Rating",
      attributes: [
        Schema.Attribute(name: "id", type: .int64), Schema.Attribute(name: "at", type: .int64),
      ])
    rating.table = Schema.Table("rating")
    let schema = Schema(entities: [rating], version: Self.v1)
    let structure = try schema.layout().structure
    let manifest = PlanManifest(
      name: "Ratings",
      versions: [
        VersionManifest(schema: schema, structure: structure, fingerprint: structure.fingerprint)
      ], stages: [])
    let plans = [PluginCatalog.Plan(plugin: "/plugins/Ratings.so", manifest: manifest)]
    func advice(_ columns: [StoreStructure.Column]) throws -> String? {
      let table = StoreStructure.Table(name: "rating", columns: columns)
      let found = StoreStructure(tables: [table], indexes: [])
      let identity = StoreIdentity(
        format: .plain, version: nil, entityNames: [], structure: found,
        fingerprint: found.fingerprint)
      let error = try #require(throws: InstarError.self) {
        _ = try match(identity, plans).start(
          adopt: nil, adoptsDifferences: false,
          command: MigrationCommand(store: "/srv/a.db", plugins: []))
      }
      return error.next
    }
    let id = StoreStructure.Column(name: "id", type: "INTEGER")
    let retyped = try #require(try advice([id, .init(name: "at", type: "REAL")]))
    #expect(
      retyped.hasPrefix(
        "if the table of the app has that type, write @Column(.type(\"REAL\")) before the property of rating.at, "
          + "build the plugin again and install it; else, to write the store's schema, run: "),
      "\(retyped)")
    #expect(try advice([id])?.hasPrefix("to write the store's schema, run: ") == true)
  }

  @Test("two plans that end at the same version are refused with both names")
  func ambiguous() throws {
    let schemas = [KeeperFixture.first, KeeperFixture.second]
    let plans = try [plan("One", schemas), plan("Two", schemas)]
    let error = try #require(throws: InstarError.self) {
      try match(identity(declares: Self.v1), plans)
    }
    #expect(error.code == .ambiguousPlan)
    for name in ["'One' of '/plugins/One.so'", "'Two' of '/plugins/Two.so'", "2.0.0"] {
      #expect(error.cause.contains(name), "\(error)")
    }
    #expect(error.next?.contains("--plan NAME") == true)
    // The name of the plan does not choose between two files with the same plan.
    var copy = plans[0]
    copy.plugin = "/plugins/Old.so"
    let same = try #require(throws: InstarError.self) {
      try match(identity(declares: Self.v1), [plans[0], copy])
    }
    #expect(same.next?.contains("--plan") == false)
    #expect(same.next?.contains("'/plugins/One.so', '/plugins/Old.so'") == true, "\(same)")
  }

  @Test(
    "a plan that has the declared version goes before one that leads further from the structure")
  func declaredFirst() throws {
    let declaring = try plan("Declaring", [KeeperFixture.first])
    let resembling = try plan(
      "Resembling", [schema(KeeperFixture.first, Self.v2), schema(KeeperFixture.second, Self.v3)])
    let found = try match(identity(declares: Self.v1), [resembling, declaring])
    #expect(found.plan.manifest.name == "Declaring")
    #expect(found.match.state == .current)
  }

  @Test("a store that no plan knows gets the plan with the fewest differences")
  func nearest() throws {
    let far = try plan("Far", [schema(KeeperFixture.second, Self.v3)])
    let near = try plan("Near", [schema(KeeperFixture.first, Self.v2)])
    var store = try identity(declares: nil)
    store.structure.tables[0].columns.append(.init(name: "ZOTHER", type: "INTEGER"))
    let found = try match(store, [far, near])
    #expect(found.plan.manifest.name == "Near")
    #expect(found.match.reason == "the store's structure matches no version of any plan")
    #expect(
      try match(store, [near]).match.reason
        == "the store's structure matches no version of the plan")
  }

  @Test("the stage to write names the type of the plan's version, or leaves it to the author")
  func stageToWrite() throws {
    var store = try identity(declares: nil)
    store.structure.tables[0].columns.removeLast()
    for (name, text) in [
      ("NotesV1", "toVersion: NotesV1.self"), (nil, "<#the plan's 1.0.0#>.self"),
    ] {
      var plan = try plan("Plan", [KeeperFixture.first])
      plan.manifest.versions[0].name = name
      let error = try #require(throws: InstarError.self) {
        try match(store, [plan]).start(
          adopt: nil, adoptsDifferences: false,
          command: MigrationCommand(store: "/srv/a.store", plugins: ["/plugins/Plan.so"]))
      }
      #expect(error.code == .unknownVersion && error.next?.contains(text) == true, "\(error)")
      // With a version of the plan, or a later one, the plan would not build.
      #expect(error.next?.contains("--name FoundSchema --version 0.9.0 ") == true, "\(error)")
    }
  }

  @Test("a store that shares no table with the plan is not given a stage to write")
  func otherApp() throws {
    var wines = KeeperFixture.first
    wines.entities = [
      Schema.Entity(name: "Wine", attributes: [Schema.Attribute(name: "year", type: .int64)])
    ]
    let plan = try plan("Wines", [wines])
    for adopt in [nil, Self.v1] {
      let error = try #require(throws: InstarError.self) {
        try match(identity(declares: nil), [plan]).start(
          adopt: adopt, adoptsDifferences: true,
          command: MigrationCommand(store: "/srv/a.store", plugins: ["/plugins/Wines.so"]))
      }
      #expect(error.code == .unknownVersion)
      #expect(
        error.next
          == "use the plugin of the app that wrote the store: '/plugins/Wines.so' has none of "
          + "the store's tables, so it may belong to another app")
    }
  }

  @Test("a store with the structure of several versions is adopted as the one that is named")
  func severalVersions() throws {
    let plan = try plan(
      "Plan",
      [
        KeeperFixture.second, schema(KeeperFixture.first, Self.v2),
        schema(KeeperFixture.first, Self.v3),
      ].enumerated().map { schema($1, Schema.Version($0 + 1, 0, 0)) })
    // As a store of models without a version declares it.
    let found = try match(identity(declares: Self.v1), [plan])
    #expect(found.match.state == .unversioned)
    func start(_ adopt: Schema.Version?) throws -> StoreMatch.Start {
      try found.start(
        adopt: adopt, adoptsDifferences: false,
        command: MigrationCommand(store: "/srv/a.store", plugins: ["/plugins/Plan.so"]))
    }
    let error = try #require(throws: InstarError.self) { try start(nil) }
    #expect(error.code == .unversionedStore)
    #expect(error.cause.contains("2.0.0, 3.0.0"))
    #expect(
      error.next?.contains(
        "instarctl migrate --plugin '/plugins/Plan.so' --adopt VERSION '/srv/a.store'") == true)
    #expect(try start(Self.v2).version == Self.v2)
    #expect(try start(Self.v3).version == Self.v3)
    #expect(throws: InstarError.self) { try start(Self.v1) }
  }

  @Test("a probe reports that it cannot choose between two plugins, with the code")
  func probe() throws {
    let fixture = try KeeperFixture()
    let other = fixture.folder + "/Other.so"
    try FileManager.default.copyItem(atPath: fixture.plugin, toPath: other)
    let conversation = ScriptedConversation([
      .probe(
        stores: [fixture.store], plans: [fixture.plugin, other], rows: .none, findsHolders: true)
    ])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    guard case .probed(let encoded) = conversation.events.first else {
      Issue.record("\(conversation.events)")
      return
    }
    let report = try encoded.report()
    #expect(report.state == .unknown)
    #expect(report.error?.code == .ambiguousPlan)
    #expect(report.reason?.contains(other) == true)
  }

  @Test(
    "a store is compared with the plans that are named only; one that no plugin has is an error")
  func namedPlans() throws {
    let fixture = try KeeperFixture()
    let name = try SQLHost().describe(plugin: fixture.plugin).plans[0].name
    func report(_ names: String...) throws -> (ProbeReport?, RunReport?) {
      var request = fixture.request(run: "r1")
      request.plans.names = names
      let conversation = ScriptedConversation([
        .probe(
          stores: [fixture.store], plans: PlanSelection(plugins: [fixture.plugin], names: names),
          rows: .none, findsHolders: true), .migrate(request),
      ])
      try Keeper(conversation: conversation, host: SQLHost()).serve()
      return (
        try conversation.events.lazy.compactMap {
          if case .probed(let report) = $0 { report } else { nil }
        }
        .first?.report(),
        conversation.events.lazy.compactMap {
          if case .finished(let report) = $0 { report } else { nil }
        }.first
      )
    }
    let (unknown, refused) = try report("Other", "Third")
    #expect(unknown?.state == .unknown)
    #expect(unknown?.reason == "no usable plugin has a plan named 'Other' or 'Third'")
    #expect(refused?.result == .refused && refused?.error?.code == .noPlan)
    #expect(refused?.error?.cause == unknown?.reason)
    let (behind, migrated) = try report("Other", name)
    #expect(behind?.state == .behind && migrated?.result == .migrated)
  }

  @Test("a folder of reference stores that cannot be read is an error with its path")
  func unreadableReferences() throws {
    let fixture = try KeeperFixture()
    let folder = fixture.folder + "/Notes.referencestores"
    try Data().write(to: URL(fileURLWithPath: folder))
    let (report, _) = try fixture.migrate()
    #expect(report.error?.code == .unreadableStore)
    #expect(report.error?.next?.contains(folder) == true, "\(String(describing: report.error))")
  }

  @Test("a run that a reference store ends names the reference store, not the store")
  func unusableReference() throws {
    let fixture = try KeeperFixture()
    let folder = fixture.folder + "/Notes.referencestores"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false)
    try Data("no store".utf8).write(to: URL(fileURLWithPath: folder + "/2.0.0.sqlite"))
    let (report, _) = try fixture.migrate()
    let error = try #require(report.error)
    #expect(error.code == .invalidPlan)
    #expect(error.cause.contains(": reference store '\(folder)/2.0.0.sqlite'"), "\(error)")
  }

  /// A plan with two versions of one schema.
  private struct UnchangedHost: PluginHost {
    let plan: PlanManifest

    func describe(plugin: String) throws(InstarError) -> PluginManifest {
      PluginManifest(plans: [plan])
    }

    func plan(
      _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
    ) throws(InstarError) -> PlannedMigration {
      try SQLHost().plan(plan, from: version, plugin: plugin, store: store)
    }

    func migrate(
      _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
    ) throws(InstarError) {
      for stage in plan.stages {
        try onEvent(.stageStarted(stage))
        try onEvent(.stageFinished(stage))
      }
    }
  }

  @Test("the archived model stays where no entity changes, and the report is silent about hashes")
  func unchanged() throws {
    let fixture = try KeeperFixture()
    try fixture.execute("INSERT INTO Z_MODELCACHE VALUES (x'01')")
    let queue = try DatabaseQueue(path: fixture.store)
    try queue.write { db in
      try db.execute(sql: "DELETE FROM Z_METADATA")
      try db.execute(
        sql: CoreDataMetadata.insertStatement(frameworkVersion: 1523, isMadeByInstar: false))
    }
    try queue.close()
    let plan = try plan("Plan", [KeeperFixture.first, schema(KeeperFixture.first, Self.v2)])
    let conversation = ScriptedConversation([.migrate(fixture.request(adopt: Self.v1))])
    try Keeper(conversation: conversation, host: UnchangedHost(plan: plan.manifest)).serve()
    let report = try #require(conversation.reports.first)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(!report.notes.contains { $0.contains("hashes") }, "\(report.notes)")
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM Z_MODELCACHE") == 1)
  }
}
