import GRDB
import InstarKeeper
import InstarSchema
import InstarStore
import InstarWire
import Testing

/// What `instarctl plan` says of the values of a store, which is why the run would be refused later.
@Suite("A plan warns of values in an ordinary table")
struct PlannedValuesTests {
  private static func attribute(
    _ type: Schema.AttributeType, isOptional: Bool = false, default value: AttributeValue? = nil
  ) -> Schema.Attribute {
    Schema.Attribute(name: "size", type: type, isOptional: isOptional, defaultValue: value)
  }

  /// The findings of a plan from one form of a column to another.
  private func findings(
    _ column: String, _ values: String, _ old: Schema.Attribute, _ new: Schema.Attribute,
    isUnique: Bool = false, shapes: [ValueShape?] = [nil, nil],
    kind: StageManifest.Kind = .custom, computed: [String]? = nil
  ) throws -> [Finding] {
    let fixture = try KeeperFixture()
    let store = fixture.folder + "/items.db"
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction {
      try $0.execute(
        sql: "CREATE TABLE item (id INTEGER PRIMARY KEY, size \(column)); "
          + "INSERT INTO item VALUES \(values); PRAGMA user_version = 1")
    }
    try queue.close()
    let versions = try zip([old, new], shapes).enumerated().map { index, version in
      var item = Schema.Entity(
        name: "Item", attributes: [Schema.Attribute(name: "id", type: .int64), version.0],
        uniquenessConstraints: isUnique ? [["size"]] : [])
      item.table = Schema.Table("item")
      let schema = Schema(entities: [item], version: Schema.Version(index + 1, 0, 0))
      let structure = try schema.layout().structure
      var manifest = VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
      manifest.valueShapes = version.1.map { ["Item.size": $0] } ?? [:]
      return manifest
    }
    let host = ManifestHost(
      plan: PlanManifest(
        name: "Plan", versions: versions,
        stages: [
          StageManifest(
            from: Schema.Version(1, 0, 0), to: Schema.Version(2, 0, 0), kind: kind,
            computedProperties: computed)
        ]))
    let conversation = ScriptedConversation([
      .plan(stores: [store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: conversation, host: host).serve()
    let report = try #require(conversation.plans.first)
    #expect(report.error == nil)
    return report.findings
  }

  @Test(
    "a plan warns of values that do not convert and have no default in a required column (I204)")
  func required() throws {
    let findings = try findings(
      "REAL NOT NULL", "(1, 2), (2, 2.5), (3, 3.5)", Self.attribute(.double),
      Self.attribute(.int64))
    #expect(findings.map(\.code) == [.missingRequiredValues])
    #expect(findings.map(\.severity) == [.warning])
    #expect(
      findings.map(\.message) == [
        "2 values of Item.size (rows 2, 3) do not convert from Double to Int, and its column is required and has no "
          + "default: the run fails unless willMigrate changes them"
      ])
    #expect(findings.first?.fix?.hasPrefix("let willMigrate write values that convert; or") == true)
  }

  @Test(
    "a plan warns of values with advice for the kind of the stage, and of none that a transform computes"
  )
  func kinds() throws {
    func finding(
      _ kind: StageManifest.Kind, isOptional: Bool = false, computed: [String]? = nil
    ) throws -> Finding? {
      try findings(
        isOptional ? "REAL" : "REAL NOT NULL", "(1, 2), (2, 2.5)",
        Self.attribute(.double, isOptional: isOptional),
        Self.attribute(.int64, isOptional: isOptional), kind: kind, computed: computed
      ).first
    }
    let transform = try finding(.transform)
    #expect(transform?.message.hasSuffix("the run fails unless a Transform computes them") == true)
    #expect(transform?.fix == "set the property in a Transform")
    #expect(
      try finding(.sql)?.fix == "write values that convert in a statement of `before`")
    #expect(
      try finding(.bridge)?.fix?.hasPrefix("let willMigrate of a custom stage write") == true)
    #expect(try finding(.transform, isOptional: true)?.code == .unacceptedLoss)
    for isOptional in [false, true] {
      #expect(
        try finding(.transform, isOptional: isOptional, computed: ["Item.size"]) == nil)
      #expect(
        try finding(.transform, isOptional: isOptional, computed: ["Item.other"]) != nil)
    }
  }

  @Test("the plan warns of an original name that the version of the store does not have")
  func originalName() throws {
    func warnings(_ originalName: String) throws -> [String] {
      try findings(
        "REAL", "(1, NULL)", Self.attribute(.double, isOptional: true),
        Schema.Attribute(
          name: "width", originalName: originalName, type: .double, isOptional: true)
      ).map(\.message)
    }
    #expect(
      try warnings("syze") == [
        "originalName 'syze' of Item.width in 2.0.0 names no property of 1.0.0"
      ])
    #expect(try warnings("size").isEmpty)
  }

  @Test(
    "a plan warns of values that do not convert and would all get the default of a unique column (I205)"
  )
  func unique() throws {
    func warnings(_ values: String) throws -> [Finding] {
      try findings(
        "REAL NOT NULL UNIQUE", values, Self.attribute(.double),
        Self.attribute(.int64, default: .integer(0)), isUnique: true)
    }
    let two = try warnings("(1, 2), (2, 2.5), (3, 3.5)")
    #expect(two.map(\.code) == [.duplicateUniqueValues])
    #expect(
      two.first?.message
        == "2 values of Item.size (rows 2, 3) do not convert from Double to Int, and its column is unique, and all "
        + "would get its default: the run fails unless willMigrate changes them")
    // One row can have the default: the value is lost then, and nothing is refused for its uniqueness.
    #expect(try warnings("(1, 2), (2, 2.5)").map(\.code) == [.unacceptedLoss])
    #expect(try warnings("(1, 2), (2, 3)").isEmpty)
  }

  @Test(
    "a plan warns of values that an enum has no case for, with their rows",
    arguments: [StageManifest.Kind.lightweight, .custom])
  func cases(kind: StageManifest.Kind) throws {
    let shapes: [ValueShape?] = [
      .rawValues(of: [.text("a"), .text("b")]),
      .optional(of: .rawValues(of: [.text("a"), .text("c")])),
    ]
    func warnings(_ values: String) throws -> [Finding] {
      try findings(
        "TEXT", values, Self.attribute(.string, isOptional: true),
        Self.attribute(.string, isOptional: true), shapes: shapes, kind: kind)
    }
    let found = try warnings("(1, 'b'), (2, 'a'), (3, NULL), (4, 'b')")
    #expect(found.map(\.code) == [.missingRequiredValues])
    #expect(found.map(\.severity) == [.warning])
    #expect(
      found.first?.message
        == "version 2.0.0 may be unable to read 2 values of Item.size (rows 1, 4); it lists 'a' | 'c': the run "
        + "fails unless the plan's code changes these values or the type accepts them", "\(found)")
    #expect(try warnings("(1, 'a'), (2, NULL)").isEmpty)
  }

  @Test(
    "a manifest's texts never become SQL: raw values are bound, and names of cases are not compared"
  )
  func namesAreNoSQL() throws {
    let optional = Self.attribute(.string, isOptional: true)
    let hostile = try findings(
      "TEXT", "(1, 'a')", optional, optional,
      shapes: [nil, .rawValues(of: [.text("a') OR (1 = 1"), .integer(7)])])
    #expect(hostile.map(\.code) == [.missingRequiredValues])
    let names = try findings(
      "TEXT", "(1, 'open')", Self.attribute(.codable), Self.attribute(.codable),
      shapes: [.cases(names: ["open"]), .cases(names: ["closed"])])
    #expect(names.map(\.severity) == [.note])
  }

  @Test("a plan notes values that only its own types can read: the run reads them all")
  func elements() throws {
    let found = try findings(
      "TEXT", "(1, '[]')", Self.attribute(.codable), Self.attribute(.codable),
      shapes: [.list(of: .named(type: "String")), .list(of: .named(type: "Int"))])
    #expect(found.map(\.severity) == [.note])
    #expect(
      found.map(\.message) == [
        "version 2.0.0 reads the values of Item.size as [Int] instead of [String]: the run reads all of them, "
          + "and fails if the new type cannot read one of them"
      ])
  }
}

/// Describes one plan, and runs nothing.
struct ManifestHost: PluginHost {
  var plan: PlanManifest

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    PluginManifest(plans: [plan])
  }

  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    PlannedMigration(plan: plan, from: version, to: Schema.Version(2, 0, 0), stages: [])
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    throw InstarError(.unsupported, "cannot migrate", cause: "the plan is only described")
  }
}
