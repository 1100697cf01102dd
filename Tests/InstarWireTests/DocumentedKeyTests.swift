import Foundation
import InstarSchema
import InstarWire
import Testing

/// The JSON keys that scripts rely on: a change here is a change of the contract.
@Suite("Documented JSON keys")
struct DocumentedKeyTests {
  private func keys(of value: some Encodable) throws -> [String] {
    let object = try JSONSerialization.jsonObject(with: WireCoder.encoder().encode(value))
    return try #require(object as? [String: Any]).keys.sorted()
  }

  @Test("a probe has its keys, and format and version also where they are unknown")
  func probe() throws {
    #expect(
      try keys(of: Sample.probe) == [
        "differences", "entities", "entityHashes", "error", "externalBytes", "externalFiles",
        "fingerprint", "format", "hold", "holders", "journalBytes", "journalMode", "nearestVersion",
        "pageSizeBytes", "plan", "planVersion", "plugin", "reason", "replicator", "sizeBytes",
        "state", "store", "toolVersions", "uuid", "version", "walBytes",
      ])
    #expect(
      try keys(of: ProbeReport(store: "/srv/a.txt", state: .notAStore)) == [
        "differences", "entities", "format", "holders", "state", "store", "version",
      ])
    let states: [StoreState] = [
      .current, .behind, .ahead, .unversioned, .unknown, .notAStore, .corrupt, .encrypted, .busy,
      .unreadable,
    ]
    #expect(
      states.map(\.rawValue) == [
        "current", "behind", "ahead", "unversioned", "unknown", "notAStore", "corrupt",
        "encrypted", "busy", "unreadable",
      ])
  }

  @Test("a run's report has its keys, as in the ledger")
  func run() throws {
    #expect(
      try keys(of: Sample.run) == [
        "backup", "backupCopy", "bytes", "copyTo", "cutover", "durationMicroseconds", "entities",
        "error",
        "from",
        "hold",
        "holders",
        "invariants", "leftovers", "manifest", "notes", "plan", "plugin", "relationships",
        "restoredRun",
        "result", "run",
        "stages", "startedAt", "store", "to",
      ])
    #expect(
      try keys(of: Sample.manifest) == [
        "bytes", "check", "contentHash", "externalBytes", "externalFiles", "format", "madeAt",
        "plan", "plugin",
        "run", "store", "tool", "version", "versionSource",
      ])
    #expect(try keys(of: Sample.probe.holders[0]) == ["command", "pid", "unit"])
    #expect(try keys(of: try #require(Sample.probe.replicator)) == ["folder", "name", "tables"])
    #expect(
      try keys(of: Sample.run.stages[0]) == ["durationMicroseconds", "from", "kind", "label", "to"])
    #expect(try keys(of: Sample.run.entities[0]) == ["name", "rowsAfter", "rowsBefore"])
    #expect(try keys(of: Sample.run.relationships[0]) == ["linksBefore", "name"])
    var rehearsal = RunReport.Rehearsal()
    (rehearsal.cloneBytes, rehearsal.neededBytes) = (1, 2)
    let fetch = WholeFetch(
      from: Sample.from, to: Sample.to, closure: "didMigrate", entity: "Note", rows: 3)
    for _ in 0...RunReport.Rehearsal.wholeFetchLimit { rehearsal.add(fetch) }
    #expect(try keys(of: rehearsal) == ["cloneBytes", "neededBytes", "wholeFetches"])
    #expect(try keys(of: fetch) == ["closure", "entity", "from", "rows", "to"])
    #expect(rehearsal.wholeFetches?.count == RunReport.Rehearsal.wholeFetchLimit)
  }

  @Test("a rollout over hosts has its keys")
  func rollout() throws {
    let host = RolloutReport.Host(
      host: "web1", wave: 1, state: "migrating", stores: 3, migrated: 1, failed: 1, deferred: 1,
      lastError: "cannot migrate", obstacle: "paused")
    let report = RolloutReport(
      id: "P-2.0.0-1", plan: "P", version: Schema.Version(2, 0, 0), state: "halted", why: "a test",
      wave: 1, waves: 2, isSoaking: false, slots: 2, slotsTaken: 1, budget: "1%",
      allowedFailures: 1, by: "anna", began: 1, hosts: [host, host])
    #expect(
      try keys(of: report) == [
        "allowedFailures", "began", "budget", "by", "failed", "hosts", "id", "isSoaking",
        "migrated", "plan", "slots", "slotsTaken", "state", "stores", "version", "wave", "waves",
        "why",
      ])
    #expect(
      try keys(of: host) == [
        "deferred", "failed", "host", "lastError", "migrated", "obstacle", "state", "stores",
        "wave",
      ])
    #expect((report.stores, report.migrated, report.failed) == (6, 2, 2))
  }

  @Test("a plan has its keys")
  func plan() throws {
    #expect(
      try keys(of: Sample.planReport) == [
        "error", "findings", "invariants", "migration", "probe", "store",
      ])
    let invariant = try #require(Sample.planReport.invariants?.first)
    #expect(try keys(of: invariant) == ["name", "rule"])
    #expect(try keys(of: Sample.migration) == ["from", "notes", "plan", "stages", "to"])
    let stage = try #require(Sample.migration.stages.first)
    #expect(
      try keys(of: stage) == ["changes", "from", "kind", "label", "planned", "statements", "to"])
    #expect(
      try keys(of: stage.planned[0]) == [
        "column", "entity", "kind", "property", "reason", "statements", "table",
      ])
    #expect(
      try keys(of: stage.planned[0].statements[0]) == ["comment", "position", "sql"])
    #expect(
      try keys(of: Sample.planReport.findings[0]) == ["code", "fix", "message", "rows", "severity"])
  }

  @Test("a verification has its keys")
  func verification() throws {
    #expect(
      try keys(of: Sample.verification) == [
        "durationMicroseconds", "errors", "format", "indexes", "plan", "rows", "state", "store",
        "version",
      ])
  }

  @Test("an error has its keys, and leaves out those without a value")
  func error() throws {
    #expect(
      try keys(of: Sample.error) == [
        "cause", "code", "next", "provesDamage", "rows", "stage", "state", "store", "what",
      ])
    #expect(try keys(of: try #require(Sample.error.rows)) == ["count", "keys"])
    #expect(
      try keys(of: InstarError(.internalError, "cannot go on", cause: "a defect")) == [
        "cause", "code", "what",
      ])
  }

  @Test("a phase record and a recovery have their keys")
  func recovery() throws {
    #expect(
      try keys(of: Sample.phase) == [
        "backup", "cloneInode", "contentDigest", "copyTo", "cutover", "declaredVersion",
        "earlierContentDigest", "earlierFingerprint", "fingerprint", "from", "keptStore",
        "manifest", "phase",
        "plan", "plugin", "restoredRun", "run", "startedAt", "store", "storeInode", "to",
        "usesLog",
        "versionSource",
      ])
    #expect(
      try keys(of: Sample.recovery) == [
        "backup", "cutover", "manifest", "notes", "outcome", "run", "store", "version",
      ])
  }

  @Test("a hold has its keys")
  func hold() throws {
    #expect(
      try keys(of: Sample.hold) == [
        "by", "createdNanoseconds", "device", "id", "inode", "run", "since", "store", "why",
      ])
  }

  @Test("an exported schema has its keys, and zeros for a computed default")
  func document() throws {
    var again = Sample.version
    again.schema.entities[0].attributes[0].storedDefault = .blob(Array(repeating: 9, count: 16))
    let document = SchemaDocument(Sample.version, plan: "Notes", again: again)
    #expect(
      try keys(of: document) == [
        "computedDefaults", "fingerprint", "instarSchema", "name", "plan", "schema",
      ])
    #expect(document.computedDefaults == ["Note.uid"])
    #expect(
      document.schema.entities[0].attributes[0].storedDefault
        == .blob(Array(repeating: 0, count: 16)))
    #expect(try SchemaDocument.read(Data(document.text.utf8), path: "a.json") == document)
  }
}
