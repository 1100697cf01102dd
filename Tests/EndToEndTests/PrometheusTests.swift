import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Metrics of a running daemon")
struct PrometheusTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func fixture(_ lines: String) async throws -> DaemonFixture {
    let fixture = try DaemonFixture(
      in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configure(lines)
    return fixture
  }

  private static var rules: URL {
    CommandLineTool.repository.appending(path: "packaging/monitoring/instar.rules.yml")
  }

  /// Debian's Prometheus, which scrapes the daemon each second and follows the packaged alert rules.
  private struct Server {
    let url: String
    let process: ChildProcess

    init(in folder: TemporaryFolder, scraping ports: UInt16...) throws {
      let targets = ports.map { "\"127.0.0.1:\($0)\"" }.joined(separator: ", ")
      let own = try FreePort.any()
      url = "http://127.0.0.1:\(own)"
      try Data(
        """
        global: {scrape_interval: 1s, evaluation_interval: 1s}
        rule_files: ["\(PrometheusTests.rules.path)"]
        scrape_configs:
          - job_name: instar
            static_configs: [{targets: [\(targets)]}]
        """.utf8
      ).write(to: URL(filePath: folder.path("prometheus.yml")))
      process = try ChildProcess.start(
        executable: "/usr/bin/prometheus",
        arguments: [
          "--config.file=\(folder.path("prometheus.yml"))",
          "--storage.tsdb.path=\(folder.path("tsdb"))",
          "--web.listen-address=127.0.0.1:\(own)",
        ],
        output: .captured(limitBytes: 1 << 20))
    }

    /// The value of an expression that has one, as the HTTP API answers; `nil` without a value, or with several.
    func value(_ expression: String) async throws -> Double? {
      let samples = try await values(expression)
      return samples.count == 1 ? samples[0] : nil
    }

    /// The values of an expression, one for each series.
    func values(_ expression: String) async throws -> [Double?] {
      struct Sample: Decodable {
        var value: [Value]
      }
      struct Value: Decodable {
        var number: Double?
        init(from decoder: any Decoder) throws {
          let container = try decoder.singleValueContainer()
          number = try? Double(container.decode(String.self))
        }
      }
      let answer = try await Program.run(
        "promtool", ["query", "instant", "-o", "json", url, expression])
      guard answer.status == 0 else { return [] }
      return try JSONDecoder().decode([Sample].self, from: Data(answer.messages.utf8))
        .map { $0.value.last?.number }
    }

    /// Waits until an expression has a value, and fails after `soon()`.
    func wait(for expression: String, toBe wanted: Double) async throws {
      let deadline = soon()
      while true {
        let found = try await value(expression)
        if found == wanted { return }
        try #require(
          ContinuousClock.now < deadline,
          "\(expression) is \(found.map { "\($0)" } ?? "missing"), not \(wanted); \(process.capturedOutput)"
        )
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }

  @Test("Prometheus scrapes the numbers of the fleet, and alarms when a rollout is halted")
  func prometheus() async throws {
    let port = try FreePort.any()
    let fixture = try await fixture(
      """
      rollout: {canary: 1, budget: 0}
      metrics: {listen: "127.0.0.1:\(port)"}
      """)
    for number in 0..<3 { try fixture.add("fine", as: "good\(number)", boxes: 5) }
    let daemon = try fixture.start()
    defer { daemon.kill() }
    let server = try Server(in: folder, scraping: port)
    defer { server.process.kill() }

    let plan = #"plan="BoxPlan""#
    try await server.wait(for: #"instar_stores{state="current",\#(plan)}"#, toBe: 3)
    try await server.wait(for: #"instar_runs_total{result="migrated",\#(plan)}"#, toBe: 3)
    try await server.wait(for: "instar_rows_migrated_total{\(plan)}", toBe: 15)
    try await server.wait(
      for: #"instar_run_duration_seconds_count{result="migrated",\#(plan)}"#, toBe: 3)
    try await server.wait(for: #"instar_rollout_stores{turn="migrated",\#(plan)}"#, toBe: 3)
    try await server.wait(
      for: "instar_rollout_wave{\(plan)} == instar_rollout_waves{\(plan)}", toBe: 2)
    try await server.wait(for: "instar_backups", toBe: 3)
    let bytes = try await server.value("instar_backup_bytes") ?? 0
    #expect(bytes == Double(try sizeOfBackups()) && bytes > 0)
    #expect(try await server.value("instar_rollout_failure_budget_stores{\(plan)}") == 0)
    #expect(try await server.value(#"ALERTS{alertname="InstarRolloutHalted"}"#) == nil)
    #expect(try await server.value(#"instar_errors_total{event="rollout-halted"}"#) == nil)

    let bad = try fixture.add("throw")
    try await server.wait(
      for: #"ALERTS{alertname="InstarRolloutHalted",alertstate="firing",severity="critical"}"#,
      toBe: 1)
    try await server.wait(for: #"instar_rollout_halted{by="failures",\#(plan)}"#, toBe: 1)
    try await server.wait(for: "instar_rollout_counted_failures{\(plan)}", toBe: 1)
    #expect(try await server.value(#"instar_runs_total{result="failed",\#(plan)}"#) == 1)
    #expect(try await server.value(#"instar_errors_total{event="rollout-halted"}"#) == 1)
    #expect(try bad.version() == Schema.Version(1, 0, 0))
    // The daemon's own numbers and those of Prometheus are the same.
    let status = try #require(
      try await CommandLineTool.run("status", "--json", "--socket", fixture.socket)
        .objects(Manager.Status.self).first)
    for (state, count) in status.states {
      #expect(try await server.value(#"sum(instar_stores{state="\#(state)"})"#) == Double(count))
    }
    let resume = try await CommandLineTool.run(
      "resume", "--plan", "BoxPlan", "--socket", fixture.socket)
    #expect(resume.status == 0, "\(resume.messages)")
    try await server.wait(for: #"instar_rollout_halted{by="failures",\#(plan)}"#, toBe: 0)
    try await server.wait(
      for: #"count(ALERTS{alertname="InstarRolloutHalted"}) or vector(0)"#, toBe: 0)
  }

  @Test("Prometheus sums a rollout over two daemons, and each query of the dashboard has data")
  func fleet() async throws {
    let folders = try [TemporaryFolder(), TemporaryFolder()]
    let ports = try [FreePort.any(), FreePort.any()]
    var fixtures: [DaemonFixture] = []
    for (folder, port) in zip(folders, ports) {
      #expect(chmod(folder.path, 0o755) == 0)
      let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
      try fixture.configure("metrics: {listen: \"127.0.0.1:\(port)\"}")
      try fixture.configure("rollout: {canary: 1, waves: [50%], budget: 1}")
      for number in 0..<3 { try fixture.add("fine", as: "good\(number)", boxes: 5) }
      fixtures.append(fixture)
    }
    try fixtures[1].add("throw")
    let daemons = try fixtures.map { try $0.start() }
    defer { for daemon in daemons { daemon.kill() } }
    let server = try Server(in: folder, scraping: ports[0], ports[1])
    defer { server.process.kill() }

    let plan = #"plan="BoxPlan""#
    try await server.wait(
      for: #"plan:instar_rollout_stores:sum{turn="migrated",\#(plan)}"#, toBe: 6)
    try await server.wait(for: #"plan:instar_rollout_stores:sum{turn="failed",\#(plan)}"#, toBe: 1)
    try await server.wait(for: "plan:instar_rollout_hosts:count{\(plan)}", toBe: 2)
    try await server.wait(for: "plan:instar_rollout_hosts_behind:count{\(plan)}", toBe: 0)
    try await server.wait(for: "plan:instar_rollout_failures:ratio{\(plan)} * 7", toBe: 1)
    // A rate needs two scrapes of a series, and those of the runs begin with their first run.
    let results = #"count(plan_result:instar_runs:rate5m{\#(plan),result=~"migrated|failed"})"#
    try await server.wait(for: results, toBe: 2)

    for query in try Self.dashboardQueries() {
      let values = try await server.values(query)
      #expect(!values.isEmpty, "no data: \(query)")
      #expect(values.allSatisfy { $0 != nil }, "no number: \(query)")
    }
  }

  /// The queries of all panels, for all machines and plans.
  private static func dashboardQueries() throws -> [String] {
    struct Dashboard: Decodable {
      var panels: [Panel]
    }
    struct Panel: Decodable {
      var targets: [Target]?
    }
    struct Target: Decodable {
      var expr: String
    }
    let file = rules.deletingLastPathComponent().appending(path: "instar.dashboard.json")
    let dashboard = try JSONDecoder().decode(Dashboard.self, from: Data(contentsOf: file))
    let queries = dashboard.panels.flatMap { $0.targets ?? [] }.map(\.expr)
    #expect(queries.count > 30)
    return queries.map {
      $0.replacing("$instance", with: ".*").replacing("$plan", with: ".*")
        .replacing("$__rate_interval", with: "1m")
    }
  }

  private func sizeOfBackups() throws -> Int {
    let backups = folder.url.appending(path: "srv/.instar")
    return try FileManager.default.contentsOfDirectory(
      at: backups, includingPropertiesForKeys: [.fileSizeKey]
    ).filter { $0.pathExtension == "backup" }
      .compactMap { try $0.resourceValues(forKeys: [.fileSizeKey]).fileSize }.reduce(0, +)
  }

  @Test("the text file is that of the socket, and is gone when the daemon has ended")
  func textFile() async throws {
    let fixture = try await fixture(
      """
      metrics: {listen: "unix:\(folder.path("metrics.sock"))", textfile: \(folder.path("instar.prom"))}
      """)
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    let read = try await Program.run(
      "curl",
      ["--silent", "--unix-socket", folder.path("metrics.sock"), "http://localhost/metrics"])
    #expect(read.messages.contains(#"instar_runs_total{result="migrated",plan="BoxPlan"} 1"#))
    try Data(read.messages.utf8).write(to: URL(filePath: folder.path("read")))
    let checked = try await Program.run(
      "sh", ["-c", "promtool check metrics <\(folder.path("read"))"])
    #expect(checked.status == 0 && checked.messages == "", "\(checked.messages)")
    let file = try String(contentsOfFile: folder.path("instar.prom"), encoding: .utf8)
    #expect(file.contains("# TYPE instar_stores gauge"))
    #expect(try modeBits(of: "instar.prom") == 0o644)
    daemon.kill(SIGTERM)
    #expect(try daemon.wait(deadline: soon()) == .exited(0))
    #expect(!folder.names().contains("instar.prom") && !folder.names().contains("metrics.sock"))
  }

  private func modeBits(of name: String) throws -> mode_t {
    var status = stat()
    try #require(lstat(folder.path(name), &status) == 0)
    return status.st_mode & 0o777
  }

  @Test("a port that is taken, or a folder that is missing, is reported, and stores are migrated")
  func unusable() async throws {
    let port = try FreePort.any()
    let other = try LoopbackSocket.listen(host: "127.0.0.1", port: port)
    let fixture = try await fixture(
      """
      metrics: {listen: "127.0.0.1:\(port)", textfile: \(folder.path("none/instar.prom"))}
      """)
    let store = try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try await fixture.wait(for: "INSTAR_CODE=I609", times: 2, in: daemon)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    // A reload tries again.
    close(other)
    daemon.kill(SIGHUP)
    try await fixture.wait(for: "INSTAR_EVENT=configuration-loaded", in: daemon)
    let read = try await Program.run("curl", ["--silent", "http://127.0.0.1:\(port)/metrics"])
    #expect(read.messages.contains("instar_build_info"))
  }

  @Test("promtool accepts the packaged alert rules, and their tests pass")
  func rules() async throws {
    let checked = try await Program.run("promtool", ["check", "rules", Self.rules.path])
    #expect(checked.status == 0, "\(checked.messages)")
    let tests = Self.rules.deletingLastPathComponent().appending(path: "instar.rules.test.yml")
    let tested = try await Program.run("promtool", ["test", "rules", tests.path])
    #expect(tested.status == 0, "\(tested.messages)")
  }
}
