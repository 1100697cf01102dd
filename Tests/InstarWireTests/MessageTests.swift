import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Messages between processes")
struct MessageTests {
  private func roundTrip<Message: Codable & Hashable>(_ message: Message) throws {
    let line = try WireCoder.line(message)
    #expect(line.last == 0x0A)
    #expect(line.dropLast().allSatisfy { $0 != 0x0A })
    #expect(try WireCoder.message(Message.self, from: line) == message)
  }

  @Test(
    "every request to a keeper arrives as it was sent",
    arguments: [
      KeeperRequest.describe(plugins: ["/p/Notes.so"]),
      .probe(stores: ["/srv/a.store"], plans: ["/p/Notes.so"], rows: .quick, findsHolders: true),
      .readSchema(stores: ["/srv/a.store"]),
      .plan(stores: ["/srv/a.store"], plans: ["/p/Notes.so"], adopt: Sample.from),
      .verify(stores: ["/srv/a.store"], plans: ["/p/Notes.so"], busyTimeoutSeconds: 5),
      .migrate(Sample.request),
      .restore(RestoreRequest(run: "R2", store: "/srv/a.store", backup: Sample.backup)),
      .backup(Sample.backup, .verify), .backup(Sample.backup, .copy(to: "/srv/b.store")),
      .backup(Sample.backup, .keepCopy(at: "/mnt/a.store.R1.backup.zst")),
      .backup(Sample.backup, .remove), .backup(Sample.backup, .removeRemains),
      .recover(Sample.phase), .proceed, .refrain,
    ])
  func keeperRequest(_ request: KeeperRequest) throws {
    try roundTrip(request)
  }

  @Test("a stage of a kind that a later release has is an error that names the kind")
  func laterKind() throws {
    var line = String(
      decoding: try WireCoder.line(KeeperEvent.described(PluginManifest(plans: [Sample.plan]))),
      as: UTF8.self)
    line.replace("\"kind\":\"lightweight\"", with: "\"kind\":\"merge\"")
    line.replace("\"kind\":\"custom\"", with: "\"kind\":\"merge\"")
    let error = #expect(throws: InstarError.self) {
      try WireCoder.message(KeeperEvent.self, from: Data(line.utf8))
    }
    #expect(error?.code == .protocolViolation)
    #expect(
      error?.cause == "this release of Instar does not know stages of the kind 'merge'")
  }

  @Test(
    "every event of a keeper arrives as it was sent",
    arguments: [
      KeeperEvent.described(PluginManifest(plans: [Sample.plan])),
      .schema(Sample.schemaReport), .planned(Sample.planReport),
      .verified(Sample.verification), .run(Sample.event),
      .ask(Sample.phase), .finished(Sample.run), .recovered(Sample.recovery),
      .copied(BackupCopy(path: "/mnt/a", bytes: 17, contentHash: "xxh3-128:00")),
      .failed(Sample.error), .done,
    ])
  func keeperEvent(_ event: KeeperEvent) throws {
    try roundTrip(event)
  }

  @Test("the report of a probe arrives as it was sent, with what its readers act on")
  func probed() throws {
    var report = Sample.probe
    report.error = Sample.error
    // Text of a store that looks like JSON, and names like the keys of a report.
    report.differences = [#"{"store": [\"#, "]}\": \\\"store\":"]
    report.entityHashes = ["store": "", "state": "", #"a\"# + "\"b": "", "e\u{301}": ""]
    let encoded = try EncodedProbeReport(report)
    try roundTrip(KeeperEvent.probed(encoded))
    #expect(encoded.store == report.store && encoded.state == report.state)
    #expect(encoded.errorCode == Sample.error.code)
    #expect(try encoded.report() == report)
    #expect(try Data("\(encoded.text)\n".utf8) == WireCoder.line(report))
  }

  @Test(
    "a report that is not one line of JSON with one store and one state is malformed",
    arguments: [
      "no JSON", "{}", #"{"store":"/srv/a.store"}"#, "[]",
      "{\"store\":\"/srv/a.store\",\n\"state\":\"current\"}",
      // Another parser may take the other value.
      #"{"store":"/srv/a.store","state":"current","store":"/srv/b.store"}"#,
      #"{"store":"/srv/a.store","state":"current","\u0073tore" : "/srv/b.store"}"#,
    ])
  func malformedProbe(_ text: String) throws {
    let line = try WireCoder.line(["probed": ["_0": text]])
    #expect {
      try WireCoder.message(KeeperEvent.self, from: line)
    } throws: {
      ($0 as? InstarError)?.code == .protocolViolation
    }
  }

  @Test("the answer to a question is written as its encoder writes it")
  func proceed() throws {
    let line = try WireCoder.line(KeeperRequest.proceed)
    #expect(line == Data((KeeperRequest.encodedProceed + "\n").utf8))
  }

  @Test("the store and the state of a report are those of its text")
  func probedText() throws {
    let text = #"{"store":"/srv/other.store","state":"unreadable","error":{"code":"I105"}}"#
    let line = try WireCoder.line(["probed": ["_0": text]])
    guard case .probed(let report) = try WireCoder.message(KeeperEvent.self, from: line) else {
      Issue.record("another event")
      return
    }
    #expect(report.store == "/srv/other.store" && report.state == .unreadable)
    #expect(report.errorCode == .unreadableStore)
  }

  @Test(
    "every request to a worker arrives as it was sent",
    arguments: [
      WorkerRequest.describe, .plan(plan: "Notes", from: Sample.from, store: Sample.ddl),
      .migrate(
        plan: "Notes", from: Sample.from, clone: "/srv/.instar/clone", store: "/srv/a.store",
        externalFolder: "/srv/e", sqlDebugLevel: 1),
    ])
  func workerRequest(_ request: WorkerRequest) throws {
    try roundTrip(request)
  }

  @Test(
    "every event of a worker arrives as it was sent",
    arguments: [
      WorkerEvent.ready, .described(PluginManifest(plans: [Sample.plan])),
      .planned(Sample.migration),
      .stageStarted(StageManifest(from: Sample.from, to: Sample.to, kind: .custom)),
      .stageFinished(StageManifest(from: Sample.from, to: Sample.to, kind: .lightweight)),
      .valuesLost(LostValues(version: Sample.from, entity: "Note", property: "title", count: 3)),
      .fetchedWhole(
        WholeFetch(
          from: Sample.from, to: Sample.to, closure: "didMigrate", entity: "Note", rows: 3)),
      .sql("SELECT 1\nFROM t"), .migrated, .failed(Sample.error),
    ])
  func workerEvent(_ event: WorkerEvent) throws {
    try roundTrip(event)
  }

  @Test("a malformed message is an error that shows how the line starts")
  func malformed() throws {
    let error = try instarError {
      _ = try WireCoder.message(WorkerEvent.self, from: Data("hello".utf8))
    }
    #expect(error.code == .protocolViolation)
    #expect(error.cause == "the other process sent a malformed message: hello")
  }

  @Test("run identifiers sort by time and are all different")
  func identifiers() throws {
    let identifiers = (0..<100).map { _ in RunIdentifier.make() }
    #expect(Set(identifiers).count == 100)
    for identifier in identifiers {
      #expect(identifier.wholeMatch(of: /\d{8}T\d{6}Z-[0-9a-f]{6}/) != nil)
      try RunIdentifier.require(identifier)
    }
  }

  @Test("the command that repeats a run names the plugin, but not an app that ran its own plan")
  func command() {
    func command(_ plugins: String...) -> String {
      MigrationRequest(run: "R1", store: "/srv/a.store", plans: PlanSelection(plugins: plugins))
        .command.text
    }
    #expect(command() == "instarctl migrate --plugin FILE.so '/srv/a.store'")
    #expect(command("/p/Notes.so") == "instarctl migrate --plugin '/p/Notes.so' '/srv/a.store'")
    #expect(command("/usr/bin/notes") == "instarctl migrate --plugin FILE.so '/srv/a.store'")
  }

  @Test("the command that repeats a run has the options of the run, apart from their defaults")
  func commandOptions() {
    var request = MigrationRequest(run: "R1", store: "/srv/a.store", plans: ["/p/Notes.so"])
    request.adopt = Schema.Version(1, 2, 0)
    request.adoptsDifferences = true
    request.acceptsLoss = true
    request.stageTimeLimitSeconds = 5400
    request.workerMemoryBytes = 8 << 30
    request.busyTimeoutSeconds = 0.25
    request.whenBusy = .migrate
    request.cutover = .writeBack
    request.verification = .full
    #expect(
      request.command.text
        == "instarctl migrate --plugin '/p/Notes.so' --adopt 1.2.0 --yes --accept-loss --stage-time-limit 90m "
        + "--worker-memory 8192MiB --busy-timeout 250ms --when-busy migrate --cutover writeBack --verify full "
        + "'/srv/a.store'")
    #expect(
      request.command.adopting("VERSION")
        .hasPrefix("instarctl migrate --plugin '/p/Notes.so' --adopt VERSION --accept-loss "))
  }

  @Test(
    "an identifier that cannot be part of a file name is refused",
    arguments: [
      "", ".hidden", "-f", "../escape", "a/b", "a b", "é", String(repeating: "a", count: 101),
    ])
  func unsafe(_ identifier: String) throws {
    #expect(
      try instarError { try RunIdentifier.require(identifier) }.code == .protocolViolation)
  }
}
