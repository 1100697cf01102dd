import Foundation
import InstarConfiguration
import InstarHooks
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Logging
import Synchronization
import Testing

@testable import InstarDaemon

/// The queue with the real runner, which is started as the daemon starts it.
@Suite("The queue of hooks", .serialized)
struct HookQueueTests {
  private let folder: TemporaryFolder
  private let lines = LogRecorder.Lines()
  private let queue: HookQueue

  init() throws {
    folder = try TemporaryFolder(mode: 0o755)
    let hooks = "hooks: {folder: \(folder.path("hooks.d")), user: root, timeout: 10s}"
    let file = try folder.write("state: \(folder.path("state"))\n\(hooks)\n", to: "instard.yml")
    let lines = lines
    queue = HookQueue(
      try Configuration.read(path: file), configurationFile: file,
      program: LogRecorder.buildFolder + "/instar-hook",
      log: EventLog { LogRecorder(identifier: $0, lines: lines) })
  }

  private func add(_ event: String, _ script: String) throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("hooks.d/\(event).d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    try folder.write("#!/bin/sh\n\(script)\n", to: "hooks.d/\(event).d/hook", mode: 0o755)
  }

  private func migrated(_ store: String) -> EventEntry {
    EventEntry(
      kind: .runMigrated, level: .notice, message: "migrated", fields: ["INSTAR_STORE": store])
  }

  private var paused: EventEntry {
    EventEntry(kind: .paused, level: .notice, message: "paused", fields: [:])
  }

  private func messages(_ event: EventKind) -> [String] {
    lines.all.withLock { $0 }
      .filter { $0.event.metadata?["INSTAR_EVENT"] == .string(event.rawValue) }
      .map { "\($0.event.message)" }
  }

  @Test("events run their hooks one after the other, in their order, with the journal's fields")
  func order() throws {
    try add("run-migrated", "cat >>\(folder.path("out"))")
    for number in 0..<20 { queue.add(migrated("/s/\(number)")) }
    queue.add(paused)
    queue.close(patience: .seconds(120))
    let read = try folder.text(of: "out").split(separator: "\n").map {
      try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
    }
    #expect(read.map { $0["INSTAR_STORE"] } == (0..<20).map { "/s/\($0)" })
    #expect(
      Set(read.flatMap(\.keys)) == [
        "INSTAR_EVENT", "INSTAR_STORE", "MESSAGE", "MESSAGE_ID", "PRIORITY", "SYSLOG_IDENTIFIER",
        "_SOURCE_REALTIME_TIMESTAMP",
      ])
    #expect(read.first?["MESSAGE_ID"] == EventKind.runMigrated.messageID)
    #expect(lines.all.withLock { $0.filter { $0.event.level >= .warning } }.isEmpty)
  }

  @Test("hooks run on a damaged store without an entry of its own")
  func joinedVerdict() throws {
    try add("store-corrupt", "cat >>\(folder.path("out"))")
    let lines = lines
    var log = EventLog { LogRecorder(identifier: $0, lines: lines) }
    log.hooks = queue
    log.postJoined(.storeProbed(ProbeReport(store: "/s/a", state: .corrupt)))
    queue.close(patience: .seconds(120))
    let read = try JSONDecoder().decode(
      [String: String].self, from: Data(try folder.text(of: "out").utf8))
    #expect(read["INSTAR_STORE"] == "/s/a" && messages(.storeCorrupt).isEmpty)
  }

  @Test(
    "what a hook prints is an entry; a hook that fails each time is one warning, with the count")
  func failures() throws {
    try add("run-migrated", "echo broken; exit 1")
    try add("paused", "echo one; echo two")
    for number in 0..<20 { queue.add(migrated("/s/\(number)")) }
    queue.add(paused)
    queue.close(patience: .seconds(120))
    let failed = messages(.hookFailed)
    #expect(failed.count == 2)
    #expect(
      failed.first?.contains("the hook exited with status 1; its last output: broken") == true)
    #expect(failed.last?.contains("it failed 19 times since the last report") == true)
    #expect(messages(.hookRan).first?.hasSuffix("and printed: one; two") == true)
  }

  @Test(
    "a flood of events never waits: those beyond the limit are dropped, with one warning and a count"
  )
  func overflow() throws {
    // The hook waits until all events were added.
    let gate = folder.path("gate")
    try add("run-migrated", "while [ ! -e \(gate) ]; do sleep 0.05; done; echo x >>\(gate)")
    try add("paused", "true")
    let extra = 250
    for number in 0...(HookQueue.limit + extra) { queue.add(migrated("/s/\(number)")) }
    // Another kind has its own places.
    queue.add(paused)
    #expect(messages(.hookEventsDropped).count == 1)
    #expect(messages(.hookEventsDropped).first?.contains("'run-migrated' wait") == true)
    #expect(FileManager.default.createFile(atPath: gate, contents: nil))
    queue.close(patience: .seconds(600))
    #expect(try folder.text(of: "gate").split(separator: "\n").count == HookQueue.limit)
    #expect(messages(.hookEventsDropped).count == 2)
    #expect(
      messages(.hookEventsDropped).last?.hasPrefix(
        "no hook ran on \(extra + 1) events 'run-migrated'") == true)
    #expect(messages(.hookFailed).isEmpty)
  }

  @Test("an event does not wait for all earlier ones of another kind")
  func turns() throws {
    let out = folder.path("out")
    // The first hook waits until all events were added.
    try add("run-migrated", "while [ ! -e \(out) ]; do sleep 0.05; done; echo migrated >>\(out)")
    try add("paused", "echo paused >>\(out)")
    for number in 0..<20 { queue.add(migrated("/s/\(number)")) }
    queue.add(paused)
    #expect(FileManager.default.createFile(atPath: out, contents: nil))
    queue.close(patience: .seconds(120))
    let order = try folder.text(of: "out").split(separator: "\n")
    #expect(order.count == 21)
    let turn = try #require(order.firstIndex(of: "paused"))
    #expect(turn <= 2, "\(order)")
  }

  @Test("nothing that a hook starts outlives it, also in a session of its own")
  func orphans() throws {
    let file = folder.path("orphan")
    try add(
      "paused",
      "setsid sh -c 'echo $$ >\(file).new; mv \(file).new \(file); exec sleep 600' </dev/null >/dev/null 2>&1 &\n"
        + "while [ ! -e \(file) ]; do sleep 0.05; done")
    queue.add(paused)
    queue.close(patience: .seconds(120))
    let text = try folder.text(of: "orphan").trimmingCharacters(in: .whitespacesAndNewlines)
    let orphan = try #require(pid_t(text))
    #expect(kill(orphan, 0) == -1 && errno == ESRCH)
    #expect(messages(.hookFailed).isEmpty)
  }

  @Test("what still waits when the daemon stops is dropped and counted")
  func stop() throws {
    try add("paused", "sleep 3")
    for _ in 0..<4 { queue.add(paused) }
    queue.close(patience: .milliseconds(200))
    queue.add(paused)
    #expect(messages(.hookEventsDropped).count == 1)
    #expect(messages(.hookEventsDropped).first?.hasPrefix("no hook ran on") == true)
  }

  @Test("a runner that cannot be started, or reads no configuration, is reported once")
  func noRunner() throws {
    try add("paused", "true")
    let lines = lines
    let broken = HookQueue(
      try Configuration.read(path: folder.path("instard.yml")),
      configurationFile: folder.path("none.yml"),
      program: LogRecorder.buildFolder + "/instar-hook",
      log: EventLog { LogRecorder(identifier: $0, lines: lines) })
    for _ in 0..<3 { broken.add(paused) }
    broken.close(patience: .seconds(120))
    #expect(messages(.hookFailed).count == 2)
    #expect(messages(.hookFailed).first?.contains("none.yml") == true)
  }

  @Test(
    "a service manager that listens for the runner starts it, and the queue does not",
    .enabled(if: access("/usr/bin/systemd-socket-activate", X_OK) == 0, "there is no systemd"))
  func serviceManager() throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("state"), withIntermediateDirectories: false)
    let socket = Installation.hookSocket(ofStateFolder: folder.path("state"))
    let manager = try ChildProcess.start(
      executable: "/usr/bin/systemd-socket-activate",
      arguments: [
        "--listen=\(socket)", LogRecorder.buildFolder + "/instar-hook", "--config",
        folder.path("instard.yml"),
      ], output: .captured(limitBytes: 1 << 16))
    defer { manager.kill() }
    let deadline = soon()
    while !FileManager.default.fileExists(atPath: socket) {
      try #require(ContinuousClock.now < deadline)
      usleep(10_000)
    }
    // The runner takes the place of systemd-socket-activate.
    try add("paused", "echo \"runner $PPID, sockets ${LISTEN_FDS:-none}\"")
    for _ in 0..<3 { queue.add(paused) }
    queue.close(patience: .seconds(120))
    let ran = messages(.hookRan)
    #expect(ran.count == 3)
    #expect(
      ran.allSatisfy { $0.hasSuffix("printed: runner \(manager.pid), sockets none") }, "\(ran)")
    #expect(messages(.hookFailed).isEmpty, "\(manager.capturedOutput)")
  }

  @Test("hooks run on events that are in the list of the documentation, and on nothing else")
  func documented() throws {
    let kinds = EventKind.allCases.map(\.rawValue)
    #expect(Set(HookFolder.events).isSubset(of: kinds))
    let page = try String(
      contentsOfFile: LogRecorder.sourceFolder + "/packaging/man/instard.8.man", encoding: .utf8)
    let section = try #require(
      page.components(separatedBy: ".SH HOOKS\n").last?
        .components(separatedBy: ".SH ").first)
    let list = section.components(separatedBy: "The events on which hooks run:").last ?? ""
    let terms = list.matches(of: /\n\.TP\n(.*)\n/).map { String($0.1) }
    let listed = terms.flatMap { $0.matches(of: /(?:\.BR? |\\fB)([a-z\\-]+?)(?:\\fR|$)/) }.map {
      String($0.1).replacing("\\-", with: "-")
    }
    #expect(listed == HookFolder.events)
  }

  @Test("the state 'corrupt' of a store runs hooks, and no other state does")
  func corruptStore() throws {
    try add("store-corrupt", "cat >>\(folder.path("out"))")
    try add("store-ahead", "cat >>\(folder.path("out"))")
    let lines = lines
    var log = EventLog { LogRecorder(identifier: $0, lines: lines) }
    log.hooks = queue
    log.post(.storeProbed(ProbeReport(store: "/s/ahead", state: .ahead), nil))
    log.post(.storeProbed(ProbeReport(store: "/s/damaged", state: .corrupt), nil))
    queue.close(patience: .seconds(120))
    let read = try folder.text(of: "out").split(separator: "\n").map {
      try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
    }
    #expect(read.map { $0["INSTAR_STORE"] } == ["/s/damaged"])
  }

  @Test("only the last of a store's failures runs hooks")
  func retries() {
    var report = RunReport(run: "R", store: "/s", result: .failed, startedAt: 0)
    #expect(!DaemonEvent.runEnded(report, .retry(after: .seconds(1))).runsHooks(on: .runFailed))
    #expect(DaemonEvent.runEnded(report, .waitsForChange(failures: 3)).runsHooks(on: .runFailed))
    report.result = .migrated
    #expect(DaemonEvent.runEnded(report, .none).runsHooks(on: .runMigrated))
    #expect(
      !DaemonEvent.storeProbed(ProbeReport(store: "/s", state: .behind)).runsHooks(on: .storeBehind)
    )
  }
}
