import Foundation
import InstarSchema
import InstarWire
import Logging
import Synchronization
import Testing

@testable import InstarDaemon

enum PluginManifestFixture {
  static let notes = PluginManifest(plans: [
    PlanManifest(
      name: "NotesPlan",
      versions: [Schema.Version(1, 0, 0), Schema.Version(2, 0, 0)].map {
        VersionManifest(
          schema: Schema(entities: [], version: $0),
          structure: StoreStructure(tables: [], indexes: []), fingerprint: "")
      },
      stages: [])
  ])
}

@Suite("Events")
struct EventTests {
  private let error = InstarError(
    .missingRequiredValues, "cannot migrate '/srv/a.store' from 1.2.0 to 2.0.0",
    store: "/srv/a.store", stage: "AddTags (2 of 3), plugin 'notes'",
    cause: "14 rows of Note have no value\nfor 'uid'", state: "unchanged", next: "give it a default"
  )

  private func report(_ result: RunReport.Result) -> RunReport {
    var report = RunReport(run: "R1", store: "/srv/a.store", result: result, startedAt: 0)
    report.plan = "NotesPlan"
    report.plugin = "/p/notes.so"
    report.from = Schema.Version(1, 2, 0)
    report.to = Schema.Version(2, 0, 0)
    report.durationMicroseconds = 12_345
    return report
  }

  @Test("every kind of event has a message id of its own, of 32 hexadecimal digits")
  func messageIDs() {
    let ids = EventKind.allCases.map(\.messageID)
    #expect(Set(ids).count == ids.count)
    for id in ids { #expect(id.wholeMatch(of: /[0-9a-f]{32}/) != nil) }
  }

  @Test("the event of files that were left of an ended run says nothing of the store's state")
  func leftovers() {
    var report = RecoveryReport(run: "R1", store: "/srv/a.store", outcome: .discarded)
    #expect(DaemonEvent.recovered(report).fields["INSTAR_STATE"] == "discarded")
    report.leftovers = ["/srv/.instar/run-R1"]
    let entry = DaemonEvent.recovered(report)
    #expect(entry.kind == .runRecovered && entry.fields["INSTAR_RUN"] == "R1")
    #expect(entry.fields["INSTAR_STATE"] == nil)
  }

  @Test("a migrated store is reported with versions, rows, time and backup")
  func migrated() {
    var report = report(.migrated)
    report.backup = "/srv/.instar/a.store.R1.backup"
    report.cutover = .exchange
    report.bytes = 4096
    report.entities = [
      .init(name: "Note", rowsBefore: 3, rowsAfter: 3),
      .init(name: "Tag", rowsBefore: nil, rowsAfter: 2),
    ]
    let entry = DaemonEvent.runEnded(report, .none).entry
    #expect(
      entry.message
        == "migrated '/srv/a.store' from 1.2.0 to 2.0.0 in 12 ms, 5 rows; "
        + "backup: '/srv/.instar/a.store.R1.backup'")
    #expect(entry.level == .notice)
    #expect(
      entry.fields.filter { $0.key != "INSTAR_REPORT" } == [
        "INSTAR_STORE": "/srv/a.store", "INSTAR_PLAN": "NotesPlan",
        "INSTAR_PLUGIN": "/p/notes.so", "INSTAR_RUN": "R1", "INSTAR_FROM": "1.2.0",
        "INSTAR_TO": "2.0.0", "INSTAR_STATE": "current", "INSTAR_ROWS": "5",
        "INSTAR_BYTES": "4096", "INSTAR_DURATION_USEC": "12345",
        "INSTAR_BACKUP": "/srv/.instar/a.store.R1.backup", "INSTAR_CUTOVER": "exchange",
      ])
  }

  @Test("a failed run is one line, with the whole error, its code and the state of the store")
  func failed() {
    var report = report(.failed)
    report.error = error
    let entry = DaemonEvent.runEnded(report, .retry(after: .seconds(20))).entry
    #expect(
      entry.message
        == "cannot migrate '/srv/a.store' from 1.2.0 to 2.0.0: 14 rows of Note have no value "
        + "for 'uid'; instard retries in 20 s; if that fails too, give it a default")
    #expect(entry.level == .error)
    #expect(entry.fields["INSTAR_CODE"] == "I204")
    #expect(entry.fields["INSTAR_STATE"] == "unchanged")
    #expect(entry.fields["INSTAR_STAGE"] == "AddTags (2 of 3), plugin 'notes'")
    #expect(entry.fields["INSTAR_ERROR"] == error.description)
  }

  @Test(
    "what instard does next, and what the operator can do, are the end of the line",
    arguments: [
      (
        StoreQueue.FollowUp.waitsForChange(failures: 3),
        "; failed 3 times with the same error; instard waits until the store or a plugin changes; "
      ),
      (.waitsForChange(failures: 1), "; instard retries when the store or a plugin changes; "),
      (
        .atOnce, "; instard retries now, because the store or a plugin changed; if that fails too, "
      ),
      (.afterRestart, "; instard retries after its next start; if that fails too, "),
    ])
  func followUps(followUp: StoreQueue.FollowUp, end: String) {
    var report = report(.failed)
    report.error = error
    #expect(
      DaemonEvent.runEnded(report, followUp).entry.message.hasSuffix("\(end)give it a default"))
  }

  @Test("an unversioned store is reported with the command that adopts it")
  func unversioned() {
    var report = ProbeReport(
      store: "/srv/a.store", format: .coredata, state: .unversioned,
      version: Schema.Version(1, 0, 0))
    report.plugin = "/p/notes.so"
    let entry = DaemonEvent.storeProbed(report).entry
    #expect(entry.kind == .storeUnversioned)
    #expect(entry.level == .warning)
    #expect(
      entry.message.hasSuffix(
        "instarctl migrate --plugin '/p/notes.so' --adopt 1.0.0 '/srv/a.store'"))
    #expect(entry.fields["INSTAR_STATE"] == "unversioned")
  }

  @Test(
    "each state of a store is reported as urgently as it is",
    arguments: [
      (StoreState.current, EventKind.storeCurrent, Logger.Level.debug),
      (.behind, .storeBehind, .info), (.ahead, .storeAhead, .warning),
      (.unversioned, .storeUnversioned, .warning), (.unknown, .storeUnknown, .info),
      (.notAStore, .storeNotAStore, .warning), (.corrupt, .storeCorrupt, .error),
      (.encrypted, .storeEncrypted, .warning), (.busy, .storeBusy, .info),
      (.unreadable, .probeFailed, .warning),
    ])
  func priorities(state: StoreState, kind: EventKind, level: Logger.Level) {
    let entry = DaemonEvent.storeProbed(ProbeReport(store: "/srv/a.store", state: state)).entry
    #expect(entry.kind == kind)
    #expect(entry.level == level)
    #expect(entry.message.contains("'/srv/a.store'"))
  }

  @Test("a store that a plan should know and does not is a warning, with what is different")
  func unknownToItsPlan() {
    var report = ProbeReport(
      store: "/srv/a.store", format: .coredata, state: .unknown, reason: "built otherwise",
      differences: ["column ZNOTE.ZX is missing", "table ZTAG is not expected"])
    report.version = Schema.Version(1, 0, 0)
    report.nearestVersion = Schema.Version(1, 0, 0)
    let entry = DaemonEvent.storeProbed(report).entry
    #expect(entry.level == .warning)
    #expect(
      entry.message
        == "'/srv/a.store' is unknown: built otherwise; the nearest version is 1.0.0: "
        + "column ZNOTE.ZX is missing; table ZTAG is not expected; instard does not change it")
  }

  @Test("a plugin is reported with its plans and their versions, or with what is wrong with it")
  func plugins() {
    let accepted = DaemonEvent.pluginAccepted(
      plugin: "/p/notes.so", PluginManifestFixture.notes, rival: nil
    ).entry
    #expect(accepted.message == "plugin '/p/notes.so' provides NotesPlan (1.0.0, 2.0.0)")
    #expect(accepted.level == .notice)
    #expect(accepted.fields["INSTAR_PLAN"] == "NotesPlan")
    let error = InstarError(
      .wrongABI, "cannot use plugin '/p/notes.so'", cause: "it is built for ABI 2, not 1")
    let refused = DaemonEvent.pluginRefused(plugin: "/p/notes.so", error).entry
    #expect(
      refused.message
        == "cannot use plugin '/p/notes.so': it is built for ABI 2, not 1; instard does not use the plugin"
    )
    #expect(refused.fields["INSTAR_CODE"] == "I402")
    #expect(refused.fields["INSTAR_PLUGIN"] == "/p/notes.so")
  }

  @Test("two plugins with one plan are a warning with both names and the code")
  func rivals() {
    let accepted = DaemonEvent.pluginAccepted(
      plugin: "/p/b.so", PluginManifestFixture.notes, rival: "/p/a.so"
    ).entry
    #expect(accepted.level == .warning)
    #expect(accepted.fields["INSTAR_CODE"] == "I210")
    #expect(
      accepted.message
        == "plugin '/p/b.so' provides NotesPlan (1.0.0, 2.0.0); cannot choose between plugins "
        + "'/p/b.so' and '/p/a.so': both provide the same plan; remove one of the two plugins")
    var report = ProbeReport(
      store: "/srv/a.store", format: .coredata, state: .unknown, reason: "several plans know it")
    report.error = InstarError(
      .ambiguousPlan, "cannot choose a plan for '/srv/a.store'",
      cause: "'A' of '/p/a.so' and 'A' of '/p/b.so' know it", next: "remove one of the plugins")
    let probed = DaemonEvent.storeProbed(report).entry
    #expect(probed.level == .warning)
    #expect(probed.fields["INSTAR_CODE"] == "I210")
    #expect(probed.message.contains("/p/a.so") && probed.message.contains("/p/b.so"))
  }

  @Test("a stage is reported with its name and time")
  func stage() {
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .stageFinished)
    event.stage = "1.0.0 → 1.1.0 (1 of 2)"
    event.durationMicroseconds = 900
    let entry = DaemonEvent.run(event).entry
    #expect(entry.message == "'/srv/a.store': stage 1.0.0 → 1.1.0 (1 of 2) finished in 0.9 ms")
    #expect(entry.fields["INSTAR_STAGE"] == "1.0.0 → 1.1.0 (1 of 2)")
    #expect(entry.fields["INSTAR_DURATION_USEC"] == "900")
  }

  @Test("progress in a long stage is reported with what is done and left")
  func progress() {
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .progress)
    event.stage = "1.0.0 → 1.1.0 (1 of 2)"
    event.progress = WorkProgress(what: "rows of Note", done: 340, total: 1000, seconds: 3.4)
    let entry = DaemonEvent.run(event).entry
    #expect(
      entry.message
        == "'/srv/a.store': stage 1.0.0 → 1.1.0 (1 of 2): 340 of 1000 rows of Note (34 %), 100 a second, 6.6 s left"
    )
    #expect(entry.level == .info)
    #expect(entry.fields["INSTAR_ROWS"] == "340")
  }

  @Test("SQL goes out under its own identifier at debug, whatever the level of the rest")
  func sql() {
    let lines = LogRecorder.Lines()
    let log = EventLog { LogRecorder(identifier: $0, lines: lines) }
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .sql)
    event.text = "CoreData: sql: ALTER TABLE ZNOTE ADD COLUMN ZX VARCHAR"
    log.post(.run(event))
    log.post(.storeProbed(ProbeReport(store: "/srv/a.store", state: .current)))
    let logged = lines.all.withLock { $0 }
    #expect(logged.count == 1)
    #expect(logged.first?.identifier == "instar-sql")
    #expect(logged.first?.event.level == .debug)
    #expect(logged.first?.event.message == "CoreData: sql: ALTER TABLE ZNOTE ADD COLUMN ZX VARCHAR")
  }

  @Test("commands in entries reach the instard that wrote them, wherever its socket is")
  func socket() throws {
    var first = report(.failed)
    first.error = error
    let failed = RepeatedFailure(first: first, count: 1, stores: ["/srv/b.store"])
    let advice = InstarError(.noPlan, "cannot match", cause: "none", next: "run: instarctl status")
    for (socket, option) in [
      ("/run/instar/instard.sock", ""), ("/a b/instard.sock", " --socket '/a b/instard.sock'"),
    ] {
      let lines = LogRecorder.Lines()
      let log = EventLog { LogRecorder(identifier: $0, lines: lines) }.reaching(socket)
      log.post(.runsFailed(failed))
      log.post(.settingIgnored(advice))
      let events = lines.all.withLock { $0.map(\.event) }
      try #require(events.count == 2)
      #expect(
        "\(events[0].message)".hasSuffix(
          "run: instarctl stores\(option) --activity quarantined, and: "
            + "instarctl stores\(option) --activity retrying"), "\(events[0].message)")
      let command = "run: instarctl status\(option)"
      #expect("\(events[1].message)".hasSuffix(command), "\(events[1].message)")
      let error = try #require(events[1].metadata?["INSTAR_ERROR"])
      #expect("\(error)".contains(command), "\(error)")
    }
  }

  @Test("a step of a run is less urgent than its result")
  func steps() {
    for step in [RunEvent.Step.started, .locked, .backedUp, .verified, .cutOver] {
      let event = RunEvent(run: "R1", store: "/srv/a.store", step: step)
      #expect(DaemonEvent.run(event).entry.level == .info)
    }
    #expect(DaemonEvent.runEnded(report(.migrated), .none).entry.level == .notice)
  }

  @Test("several lines of a plugin are several entries")
  func output() {
    let lines = LogRecorder.Lines()
    let log = EventLog { LogRecorder(identifier: $0, lines: lines) }
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .output)
    event.text = "first\nsecond\n"
    log.post(.run(event))
    #expect(
      lines.all.withLock { $0.map { "\($0.event.message)" } } == [
        "'/srv/a.store': the plugin printed: first", "'/srv/a.store': the plugin printed: second",
      ])
  }

  @Test("a flood of SQL is cut off, and the end of the run says how much was left out")
  func flood() {
    let lines = LogRecorder.Lines()
    let start = ContinuousClock.now
    let log = EventLog(now: { start }) { LogRecorder(identifier: $0, lines: lines) }
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .sql)
    event.text = String(repeating: "x", count: 20_000)
    for _ in 0..<LineLimit.lines + 7 { log.post(.run(event)) }
    log.post(.runEnded(report(.migrated), .none))
    let logged = lines.all.withLock { $0.map { "\($0.event.message)" } }
    #expect(logged.count == LineLimit.lines + 2)
    #expect(logged.first?.hasSuffix("x… (20000 bytes)") == true)
    #expect(logged.dropLast().last?.hasPrefix("left out 7 lines of SQL and plugin output") == true)
    #expect(logged.last?.hasPrefix("migrated '/srv/a.store'") == true)
  }

  @Test("steps and stores that are too many are left out, and counted when their time is over")
  func manyEntries() {
    let lines = LogRecorder.Lines()
    let clock = Mutex(ContinuousClock.now)
    let log = EventLog(now: { clock.withLock { $0 } }) { LogRecorder(identifier: $0, lines: lines) }
    var messages: [String] { lines.all.withLock { $0.map { "\($0.event.message)" } } }
    let runs = 3000
    for number in 0..<runs {
      let store = "/srv/\(number).store"
      log.post(.storeProbed(ProbeReport(store: store, state: .behind)))
      for step in [RunEvent.Step.started, .locked, .backedUp, .verified] {
        log.post(.run(RunEvent(run: "R\(number)", store: store, step: step)))
      }
      var report = report(.migrated)
      report.run = "R\(number)"
      log.post(.runEnded(report, .none))
    }
    log.post(.storeProbed(ProbeReport(store: "/srv/bad.store", state: .corrupt)))
    #expect(messages.filter { $0.hasPrefix("migrated") }.count == runs)
    #expect(messages.contains { $0.contains("bad.store") })
    let others = messages.count - runs - 1
    #expect(others <= EntryLimit.entries && others > EntryLimit.entries / 2)
    // Whole runs: each that was begun is told to its end.
    #expect(
      messages.filter { $0.hasPrefix("migrating") }.count
        == messages.filter { $0.hasPrefix("verified") }.count)

    var long = RunEvent(run: "long", store: "/srv/long.store", step: .started)
    log.post(.run(long))
    clock.withLock { $0 += EntryLimit.patience }
    long.step = .verified
    log.post(.run(long))
    #expect(messages.last == "verified the migrated clone of '/srv/long.store'")
    #expect(log.nextDeadline != nil)
    clock.withLock { $0 += EntryLimit.window }
    log.postLeftOut()
    #expect(
      messages.last?.contains("stores with the state 'behind' ('/srv/") == true
        && messages.last?.hasPrefix("left out ") == true)
    #expect(log.nextDeadline == nil)
    let before = messages.count
    log.post(.run(RunEvent(run: "next", store: "/srv/a.store", step: .started)))
    #expect(messages.count == before + 1)
  }

  @Test(
    "problems that are too many are left out, and those of another kind are not",
    arguments: [
      (
        DaemonEvent.watchFailed(InstarError(.unsafePath, "cannot use a file", cause: "a link")),
        "watch-failed"
      ),
      (
        .probeFailed(
          store: nil, InstarError(.protocolViolation, "cannot probe", cause: "silence"), .none),
        "probe-failed"
      ),
    ])
  func manyProblems(event: DaemonEvent, kind: String) {
    let lines = LogRecorder.Lines()
    let clock = Mutex(ContinuousClock.now)
    let log = EventLog(now: { clock.withLock { $0 } }) { LogRecorder(identifier: $0, lines: lines) }
    var messages: [String] { lines.all.withLock { $0.map { "\($0.event.message)" } } }
    for _ in 0..<EntryLimit.entries + 7 { log.post(event) }
    #expect(messages.count == EntryLimit.entries)
    log.post(.storeProbed(ProbeReport(store: "/srv/bad.store", state: .corrupt), nil))
    #expect(messages.count == EntryLimit.entries + 1)
    clock.withLock { $0 += EntryLimit.window }
    log.postLeftOut()
    #expect(messages.last?.hasPrefix("left out 7 problems of the kind '\(kind)': ") == true)
  }

  @Test("the summary of a run has its report as JSON; of a long one some lists are left out")
  func journalReport() throws {
    var report = report(.migrated)
    report.entities = [.init(name: "Note", rowsBefore: 3, rowsAfter: 3)]
    let text = try #require(DaemonEvent.runEnded(report, .none).entry.fields["INSTAR_REPORT"])
    #expect(try WireCoder.message(RunReport.self, from: Data(text.utf8)) == report)
    report.relationships = (0..<10_000).map {
      .init(name: "Note.link\($0)", linksBefore: 1, linksAfter: 1)
    }
    report.error = InstarError(
      .stageFailed, "cannot migrate", cause: String(repeating: "x", count: 100_000))
    let short = try #require(DaemonEvent.runEnded(report, .none).entry.fields["INSTAR_REPORT"])
    #expect(short.utf8.count <= RunReport.journalLimitBytes)
    let read = try WireCoder.message(RunReport.self, from: Data(short.utf8))
    #expect(read.run == report.run && read.relationships.isEmpty)
    #expect(read.notes.last?.contains("instarctl history --json '/srv/a.store'") == true)
  }

  @Test("a line on standard error has time, level, message and fields, and cannot be forged")
  func standardError() {
    let line = StandardErrorOutput.line(
      at: Date(timeIntervalSince1970: 1_763_720_130.5), level: .error, identifier: "instard",
      message: "cannot\u{1B}[2J migrate",
      fields: [
        "INSTAR_STORE": "/srv/my \"a\"\u{301}.store", "INSTAR_EVENT": "run-failed",
        "MESSAGE_ID": "0",
        "INSTAR_ERROR": "error: x\n  cause: y", "INSTAR_CODE": "I301",
      ])
    #expect(
      line
        == #"2025-11-21T10:15:30.500Z err cannot\u001b[2J migrate INSTAR_EVENT=run-failed "#
        + #"INSTAR_CODE=I301 INSTAR_STORE="/srv/my \"a\"\#u{301}.store" "#
        + #"INSTAR_ERROR="error: x\n  cause: y""#)
  }

  @Test(
    "keys become names that the journal takes",
    arguments: [
      ("INSTAR_RUN", "INSTAR_RUN"), ("sl-signal", "SL_SIGNAL"), ("_PID", "PID"), ("1x", nil),
      ("", nil), ("é", nil),
    ] as [(String, String?)])
  func fieldNames(key: String, name: String?) {
    #expect(JournalOutput.fieldName(key) == name)
  }
}
