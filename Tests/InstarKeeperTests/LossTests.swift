import Foundation
import InstarKeeper
import InstarSchema
import InstarStore
import InstarWire
import Testing

@Suite("Values and rows that a stage would lose")
struct LossTests {
  private static let retype =
    "ALTER TABLE ZNOTE DROP COLUMN ZTITLE; ALTER TABLE ZNOTE ADD COLUMN ZTITLE INTEGER"

  @Test(
    "a change of type that nobody wrote the values of is refused, and the store stays as it was")
  func refused() throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let host = StageHost(title: .int64, kind: .custom, sql: Self.retype)
    let report = try migrate(fixture, host)
    #expect(report.result == .refused)
    #expect(report.error?.code == .unacceptedLoss)
    #expect(
      report.error?.cause
        == "the run drops 10 non-null values of Note.title: its type changes from String to Int; "
        + "the plan's code did not write them")
    #expect(
      report.error?.next
        == "write the values in didMigrate; or add \"Note.title\" to the plan's acceptedLosses; "
        + "or run: instarctl migrate --plugin '\(fixture.plugin)' --accept-loss '\(fixture.store)'")
    let after = fixture.state()
    #expect(after.bytes == before.bytes && after.instar?.isEmpty != false)
  }

  @Test(
    "the fix for lost values is one that the kind of the stage has",
    arguments: [
      (StageManifest.Kind.sql, "write the values in a statement of `after`; or add"),
      (.transform, "set the property in a Transform; or add"),
      (.bridge, "write the values in the stage's code; or add"),
    ])
  func fixOfKind(kind: StageManifest.Kind, fix: String) throws {
    let finding = try finding(
      try KeeperFixture(), StageHost(title: .int64, kind: kind, sql: Self.retype))
    #expect(finding?.fix?.hasPrefix(fix) == true, "\(finding?.fix ?? "")")
    #expect(finding?.message.contains("unless the stage's code writes them: ") == true)
  }

  @Test("no acceptance is advised where a required attribute without a default would have no value")
  func required() throws {
    let fixture = try KeeperFixture()
    var host = StageHost(title: .int64, kind: .custom, sql: Self.retype)
    host.requiresTitle = true
    let next = try #require(try finding(fixture, host)?.fix)
    #expect(
      next
        == "write the values in didMigrate; or give 'Note.title' a default or make it optional: it is "
        + "required in version 2.0.0, so the loss cannot be accepted")
  }

  @Test("the operator accepts the loss, and the report says how much it was")
  func acceptedByOperator() throws {
    let fixture = try KeeperFixture()
    let host = StageHost(title: .int64, kind: .custom, sql: Self.retype)
    let report = try migrate(fixture, host, acceptsLoss: true)
    #expect(report.result == .migrated)
    #expect(report.notes.contains("drops 10 non-null values of Note.title"))
  }

  @Test("a loss that the plan accepts is a note, and the store is migrated")
  func acceptedByPlan() throws {
    let fixture = try KeeperFixture()
    var host = StageHost(title: .int64, kind: .custom, sql: Self.retype)
    host.acceptedLosses = ["Note.title"]
    let finding = try finding(fixture, host)
    #expect(finding?.severity == .note)
    #expect(
      finding?.message
        == "drops 10 non-null values of Note.title (rows 1, 2, 3, 4, 5 and 5 others) unless didMigrate writes them: "
        + "its type changes from String to Int; the plan accepts the loss")
    #expect(try migrate(fixture, host).result == .migrated)
  }

  @Test("values that the code of the plan wrote are not a loss")
  func written() throws {
    let fixture = try KeeperFixture()
    let host = StageHost(
      title: .int64, kind: .custom, sql: Self.retype + "; UPDATE ZNOTE SET ZTITLE = Z_PK", lost: nil
    )
    let report = try migrate(fixture, host)
    #expect(report.result == .migrated && !report.notes.contains { $0.contains("Note.title") })
  }

  @Test("a plan warns of values that its code has to write, with the command")
  func planned() throws {
    let fixture = try KeeperFixture()
    let finding = try finding(
      fixture, StageHost(title: .int64, kind: .custom, sql: Self.retype))
    #expect(finding?.severity == .warning && finding?.code == .unacceptedLoss)
    #expect(
      finding?.fix?.hasSuffix(
        "instarctl migrate --plugin '\(fixture.plugin)' --accept-loss '\(fixture.store)'") == true)
  }

  @Test("a plan warns of integers that a narrower type cannot read, with the keys of their rows")
  func narrowed() throws {
    let fixture = try KeeperFixture()
    let host = StageHost(firstTitle: .int64, title: .int16, kind: .custom, sql: "")
    try fixture.execute(Self.retype + "; UPDATE ZNOTE SET ZTITLE = Z_PK")
    #expect(try finding(fixture, host) == nil)
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 70000 WHERE Z_PK IN (2, 7)")
    let finding = try finding(fixture, host)
    #expect(finding?.severity == .warning && finding?.code == .missingRequiredValues)
    #expect(
      finding?.message
        == "2 values of Note.title (rows 2, 7) do not fit Int16: the run fails unless the plan's code "
        + "changes them", "\(finding?.message ?? "")")
    #expect(finding?.rows == AffectedRows(count: 2, keys: ["2", "7"]))
  }

  @Test("integers that a narrower type cannot read refuse a lightweight run before it clones")
  func narrowedWithoutCode() throws {
    let fixture = try KeeperFixture()
    let host = StageHost(firstTitle: .int64, title: .int16, sql: "", lost: nil)
    try fixture.execute(Self.retype + "; UPDATE ZNOTE SET ZTITLE = 32767")
    #expect(try finding(fixture, host) == nil)
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 32768 WHERE Z_PK IN (2, 3, 4, 5, 6, 7)")
    let finding = try finding(fixture, host)
    #expect(finding?.severity == .error)
    let before = fixture.state()
    let report = try migrate(fixture, host)
    #expect(report.result == .refused && report.error?.code == .missingRequiredValues)
    #expect(
      report.error?.cause
        == "6 values of Note.title (rows 2, 3, 4, 5, 6 and 1 other) do not fit Int16, which version "
        + "2.0.0 reads", "\(report.error?.cause ?? "")")
    #expect(report.error?.cause == finding?.message && report.error?.next == finding?.fix)
    #expect(
      report.error?.rows == AffectedRows(count: 6, keys: ["2", "3", "4", "5", "6"]))
    #expect(fixture.state().bytes == before.bytes && fixture.state().instar == nil)
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = NULL WHERE ZTITLE = 32768")
    #expect(try migrate(fixture, host).result == .migrated)
  }

  @Test("a report about a property that the store does not have is refused, with its name")
  func unknownProperty() throws {
    let fixture = try KeeperFixture()
    var host = StageHost(title: .int64, kind: .custom, sql: Self.retype, lost: nil)
    host.others = [LostValues(version: Self.version, entity: "Sub", property: "title", count: 3)]
    let report = try migrate(fixture, host)
    #expect(report.result == .refused && report.error?.code == .unacceptedLoss)
    #expect(report.error?.cause.contains("drops 3 values of Sub.title:") == true)
    host.acceptedLosses = ["Sub.title"]
    #expect(try migrate(fixture, host).result == .migrated)
  }

  @Test("counts that a worker forges neither hide a loss nor end the daemon")
  func forgedCounts() throws {
    let fixture = try KeeperFixture()
    var host = StageHost(title: .int64, kind: .custom, sql: Self.retype)
    host.others = [-10, .max, .max].map {
      LostValues(version: Self.version, entity: "Note", property: "title", count: $0)
    }
    let report = try migrate(fixture, host)
    #expect(report.result == .refused)
    #expect(report.error?.cause.contains("drops \(Int.max) non-null values of Note.title") == true)
    host.others.removeLast(2)
    #expect(
      try migrate(fixture, host).error?.cause.contains("drops 10 non-null values of Note.title")
        == true)
  }

  @Test("a plan warns also of links that get another destination")
  func plannedLinks() throws {
    let fixture = try KeeperFixture()
    var host = StageHost(kind: .custom, sql: "")
    host.linksNotes = true
    let finding = try finding(fixture, host)
    #expect(finding?.severity == .warning && finding?.code == .unacceptedLoss)
    #expect(
      finding?.message.hasPrefix("drops 10 links of Note.folder unless didMigrate writes them")
        == true, "\(finding?.message ?? "")")
  }

  private static let version = Schema.Version(1, 0, 0)

  /// A field of a struct that each note must have.
  private static var field: Schema.Attribute {
    var field = Schema.Attribute(name: "mood.word", type: .string, isOptional: true)
    (field.declaration.isRequiredComposite, field.declaration.isRequiredField) = (true, true)
    return field
  }

  @Test(
    "rows without a value for a new required property refuse a lightweight stage beforehand",
    arguments: [
      (Schema.Attribute(name: "mood", type: .string), "ZMOOD"), (field, "ZWORD"),
    ])
  func rowsInNeed(_ attribute: Schema.Attribute, _ column: String) throws {
    let fixture = try KeeperFixture()
    let host = StageHost(
      added: attribute, sql: "ALTER TABLE ZNOTE ADD COLUMN \(column) VARCHAR")
    let planned = try finding(fixture, host)
    #expect(planned?.severity == .error)
    #expect(
      planned?.fix
        == "give the property an initial value, make it optional, or write the stage as a custom one"
    )
    let report = try migrate(fixture, host)
    #expect(report.result == .refused && report.error?.code == .needsCustomStage)
    #expect(
      report.error?.cause
        == "the stage from 1.0.0 to 2.0.0 is lightweight, but Note.mood is required, "
        + "and existing rows have no value for it: 10 rows of Note (rows 1, 2, 3, 4, 5 and 5 others)"
    )
    #expect(report.error?.rows == AffectedRows(count: 10, keys: ["1", "2", "3", "4", "5"]))
    #expect(fixture.state().instar == nil)
    try fixture.execute("DELETE FROM ZNOTE")
    #expect(try finding(fixture, host) == nil)
    #expect(try migrate(fixture, host).result == .migrated)
  }

  private func migrate(
    _ fixture: KeeperFixture, _ host: StageHost, acceptsLoss: Bool = false
  ) throws -> RunReport {
    var request = fixture.request()
    request.acceptsLoss = acceptsLoss
    let conversation = ScriptedConversation([.migrate(request)])
    try Keeper(conversation: conversation, host: host).serve()
    return try #require(conversation.reports.first)
  }

  /// What a plan says of the loss; `nil` for nothing.
  private func finding(_ fixture: KeeperFixture, _ host: StageHost) throws -> Finding? {
    let conversation = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: conversation, host: host).serve()
    return try #require(conversation.plans.first).findings.first
  }
}

/// One stage from the fixture's first version, which is SQL.
private struct StageHost: PluginHost {
  var firstTitle = Schema.AttributeType.string
  var title = Schema.AttributeType.string
  /// What each note has in the second version.
  var added: Schema.Attribute?
  var requiresTitle = false
  var kind = StageManifest.Kind.lightweight
  var acceptedLosses: [String] = []
  var sql: String
  /// What the host counts.
  var lost: Int? = 10
  var others: [LostValues] = []
  /// Whether the notes refer to notes, no longer to folders.
  var linksNotes = false

  private var versions: [Schema] {
    var first = KeeperFixture.first
    for index in first.entities.indices where first.entities[index].name == "Note" {
      first.entities[index].attributes[0].type = firstTitle
    }
    var second = first
    second.version = Schema.Version(2, 0, 0)
    for index in second.entities.indices where second.entities[index].name == "Note" {
      var attributes = second.entities[index].attributes.filter { $0.name != "title" }
      attributes.append(
        Schema.Attribute(name: "title", type: title, isOptional: title != .string && !requiresTitle)
      )
      if let added { attributes.append(added) }
      second.entities[index].attributes = attributes
    }
    if linksNotes {
      for index in second.entities.indices {
        second.entities[index].relationships =
          second.entities[index].name == "Note"
          ? [Schema.Relationship(name: "folder", destination: "Note", isToOneRelationship: true)]
          : []
      }
    }
    return [first, second]
  }

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    var manifests: [VersionManifest] = []
    for schema in versions {
      let structure = try CoreDataLayout(schema: schema).structure
      manifests.append(
        VersionManifest(schema: schema, structure: structure, fingerprint: structure.fingerprint))
    }
    var plan = PlanManifest(
      name: "NotesPlan", versions: manifests,
      stages: [
        StageManifest(from: Schema.Version(1, 0, 0), to: Schema.Version(2, 0, 0), kind: kind)
      ])
    plan.acceptedLosses = acceptedLosses
    return PluginManifest(plans: [plan])
  }

  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    PlannedMigration(plan: plan, from: version, to: Schema.Version(2, 0, 0), stages: [])
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    try SQLHost(kind: kind, sql: sql).migrate(work) { event throws(InstarError) in
      if case .stageFinished = event, let lost, kind == .custom {
        try onEvent(
          .valuesLost(
            LostValues(
              version: Schema.Version(1, 0, 0), entity: "Note", property: "title", count: lost)))
      }
      if case .stageFinished = event {
        for report in others { try onEvent(.valuesLost(report)) }
      }
      try onEvent(event)
    }
  }
}
