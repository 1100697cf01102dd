import Foundation
import InstarKeeper
import InstarSchema
import InstarWire
import Testing

@Suite("The conversation with a worker")
struct WorkerProcessTests {
  /// A worker whose behaviour after the request is a Python script.
  private func worker(_ script: String, in fixture: KeeperFixture) throws -> WorkerProcess {
    let path = fixture.folder + "/worker"
    let source = """
      #!/usr/bin/env python3
      import os, sys, socket, json, time, signal, threading
      channel = socket.socket(fileno=3)
      def send(event): channel.sendall((json.dumps(event) + "\\n").encode())
      send({"ready": {}})
      request = json.loads(channel.makefile().readline())
      def stage(): return {"from": "1.0.0", "to": "2.0.0", "kind": "lightweight", "isImplicit": False}
      def started(): send({"stageStarted": {"_0": stage()}})
      def finished(): send({"stageFinished": {"_0": stage()}})
      def change():
          import sqlite3
          c = sqlite3.connect(request["migrate"]["clone"])
          c.execute("ALTER TABLE ZNOTE ADD COLUMN ZPINNED INTEGER"); c.commit(); c.close()
      \(script)
      """
    try Data(source.utf8).write(to: URL(fileURLWithPath: path))
    #expect(chmod(path, 0o755) == 0)
    return WorkerProcess(worker: path, library: "/nowhere/libInstar.so")
  }

  /// Describes with SQL's manifest, migrates with the worker.
  private struct Mixed: PluginHost {
    let worker: WorkerProcess
    func describe(plugin: String) throws(InstarError) -> PluginManifest {
      try SQLHost().describe(plugin: plugin)
    }
    func plan(
      _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
    ) throws(InstarError) -> PlannedMigration {
      try SQLHost().plan(plan, from: version, plugin: plugin, store: store)
    }
    func migrate(
      _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
    ) throws(InstarError) {
      try worker.migrate(work, onEvent: onEvent)
    }
  }

  private func run(
    _ script: String, limit: Double = 30, sqlDebugLevel: Int = 0
  ) throws -> (RunReport, ScriptedConversation) {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let host = Mixed(worker: try worker(script, in: fixture))
    var request = fixture.request()
    request.stageTimeLimitSeconds = limit
    request.sqlDebugLevel = sqlDebugLevel
    let conversation = ScriptedConversation([.migrate(request)])
    try Keeper(conversation: conversation, host: host).serve()
    let report = try #require(conversation.reports.first)
    if report.result == .migrated {
      #expect(try fixture.version() == Schema.Version(2, 0, 0))
    } else {
      #expect(fixture.state().bytes == before.bytes)
      #expect(fixture.state().instar == nil)
    }
    return (report, conversation)
  }

  @Test("a worker's clone is accepted for what it contains")
  func good() throws {
    let (report, conversation) = try run(
      "started(); change(); print('hello'); sys.stdout.flush(); finished(); send({'migrated': {}})")
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    let output = conversation.events.compactMap {
      if case .run(let event) = $0, event.step == .output { event.text } else { nil }
    }
    #expect(output.joined().contains("hello"))
  }

  @Test("a worker that leaves threads behind, or writes on after its word, does not matter")
  func writesOn() throws {
    let (report, _) = try run(
      """
      import sqlite3
      threading.Thread(target=lambda: time.sleep(600)).start()
      started(); change(); finished(); send({'migrated': {}})
      c = sqlite3.connect(request["migrate"]["clone"], isolation_level=None)
      while True:
          c.execute("UPDATE ZNOTE SET ZPINNED = 1")
      """)
    // It may have been killed in the middle of a transaction: then the clone is refused.
    #expect(
      report.result == .migrated || report.error?.code == .verificationFailed,
      "\(String(describing: report.error))")
  }

  static let endings: [(String, InstarError.Code)] = [
    ("started(); os.kill(os.getpid(), signal.SIGILL)", .workerDied),
    ("started(); os._exit(0)", .workerExited),
    ("started(); channel.sendall(b'rubbish\\n'); time.sleep(60)", .protocolViolation),
    ("started(); started(); time.sleep(60)", .protocolViolation),
    ("finished(); time.sleep(60)", .protocolViolation),
    ("send({'migrated': {}})", .protocolViolation),
    ("started(); time.sleep(60)", .timeLimit),
    ("started()\nwhile True: send({'sql': {'_0': 'SELECT 1'}})", .timeLimit),
    ("started()\nwhile True: os.write(1, b'x' * 65536)", .timeLimit),
    ("started()\nwhile True: send({'sql': {'_0': 'x' * 1000000}})", .timeLimit),
    (
      "send({'failed': {'_0': {'code': 'I301', 'what': 'stage', 'cause': 'it threw'}}})",
      .stageFailed
    ),
  ]

  @Test("a worker that ends badly is reported, and the keeper goes on", arguments: endings)
  func badEnding(script: String, code: InstarError.Code) throws {
    let (report, _) = try run(script, limit: code == .timeLimit ? 0.5 : 30)
    #expect(report.result == .failed)
    #expect(report.error?.code == code, "\(String(describing: report.error))")
    if code == .workerDied { #expect(report.error?.cause.contains("SIGILL") == true) }
  }

  @Test("statements are passed on only where they were asked for", arguments: [0, 1])
  func statements(level: Int) throws {
    let (report, conversation) = try run(
      "started(); send({'sql': {'_0': 'SELECT 1'}}); change(); finished(); send({'migrated': {}})",
      sqlDebugLevel: level)
    #expect(report.result == .migrated)
    #expect(conversation.steps.filter { $0 == .sql }.count == level)
  }

  @Test("logged statements never end a run: those past a limit are dropped")
  func manyStatements() throws {
    let (report, conversation) = try run(
      """
      started(); change()
      for _ in range(70): send({'sql': {'_0': 'x' * 1000000}})
      finished(); send({'migrated': {}})
      """, sqlDebugLevel: 3)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    let texts = conversation.events.compactMap {
      if case .run(let event) = $0, event.step == .sql { event.text } else { nil }
    }
    #expect(texts.count == 9)
    #expect(texts.last?.contains("further statements are not shown") == true)
  }

  @Test("what a plugin prints never ends a run: its middle is dropped, and one line says so")
  func muchOutput() throws {
    let (report, conversation) = try run(
      """
      started(); change(); os.write(1, b'first\\n')
      for _ in range(32): os.write(1, b'x' * 65536)
      os.write(1, b'\\nlast'); finished(); send({'migrated': {}})
      """)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    let texts = conversation.events.compactMap {
      if case .run(let event) = $0, event.step == .output { event.text } else { nil }
    }
    #expect(texts.count == 1)
    #expect(texts.first?.hasPrefix("first\n") == true && texts.first?.hasSuffix("\nlast") == true)
    #expect(texts.first?.contains("\n… 2093067 bytes left out …\n") == true, "\(texts)")
  }

  @Test("a worker that cannot be started is reported")
  func missing() throws {
    let host = WorkerProcess(worker: "/nowhere/worker", library: "/nowhere/libInstar.so")
    #expect(throws: InstarError.self) { try host.describe(plugin: "/nowhere/x.so") }
  }
}
