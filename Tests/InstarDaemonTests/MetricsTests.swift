import CoreMetrics
import Foundation
import InstarConfiguration
import InstarSchema
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Metrics")
struct MetricsTests {
  private static let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  private func text(of path: String) throws -> String {
    try String(contentsOf: Self.top.appending(path: path), encoding: .utf8)
  }

  private func report(
    _ result: RunReport.Result, plan: String? = "Notes", _ code: InstarError.Code? = nil
  ) -> RunReport {
    var report = RunReport(run: "R1", store: "/srv/a.store", result: result, startedAt: 0)
    report.plan = plan
    report.bytes = 4096
    report.durationMicroseconds = 300_000
    report.entities = [.init(name: "Note", rowsBefore: 7, rowsAfter: 6)]
    report.error = code.map { InstarError($0, "cannot migrate", cause: "a test") }
    return report
  }

  private func snapshot(of queue: StoreQueue) -> DaemonMetrics.Snapshot {
    DaemonMetrics.Snapshot(
      queue: queue, isPaused: false, watches: 3, unreadableWatches: 1, plugins: 1, keeperRestarts: 2
    )
  }

  @Test("runs are counted by result and plan, with rows, bytes and a histogram of their duration")
  func runs() {
    let metrics = DaemonMetrics(version: "1.2.3", startedAt: 1000.5)
    metrics.note(report(.migrated))
    metrics.note(report(.migrated))
    metrics.note(report(.failed, .workerDied))
    metrics.note(report(.failed, plan: nil, .busyStore))
    let lines = metrics.text.split(separator: "\n")
    for line in [
      #"instar_build_info{version="1.2.3"} 1"#, "instar_start_time_seconds 1000.5",
      "# TYPE instar_runs_total counter",
      #"instar_runs_total{result="migrated",plan="Notes"} 2"#,
      #"instar_runs_total{result="failed",plan="Notes"} 1"#,
      #"instar_runs_total{result="failed"} 1"#,
      "# TYPE instar_run_duration_seconds histogram",
      #"instar_run_duration_seconds_bucket{result="migrated",plan="Notes",le="0.25"} 0"#,
      #"instar_run_duration_seconds_bucket{result="migrated",plan="Notes",le="0.5"} 2"#,
      #"instar_run_duration_seconds_bucket{result="migrated",plan="Notes",le="3600"} 2"#,
      #"instar_run_duration_seconds_bucket{result="migrated",plan="Notes",le="+Inf"} 2"#,
      #"instar_run_duration_seconds_sum{result="migrated",plan="Notes"} 0.6"#,
      #"instar_run_duration_seconds_count{result="migrated",plan="Notes"} 2"#,
      #"instar_rows_migrated_total{plan="Notes"} 12"#,
      #"instar_bytes_migrated_total{plan="Notes"} 8192"#,
      "instar_worker_restarts_total 1",
    ] { #expect(lines.contains { $0 == line }, "\(line)") }
  }

  @Test("counts that are too large to be added are as good as the largest one")
  func largeCounts() {
    var large = report(.migrated)
    large.entities = ["A", "B"].map { .init(name: $0, rowsBefore: 0, rowsAfter: .max) }
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    metrics.note(large)
    #expect(metrics.text.contains(#"instar_rows_migrated_total{plan="Notes"} 9.2"#))
    #expect(
      DaemonEvent.runEnded(large, .none).entry.message.contains("9223372036854775807 rows")
        || DaemonEvent.runEnded(large, .none).entry.message.contains(
          "9,223,372,036,854,775,807 rows")
    )
  }

  @Test("a plan's name cannot end its label, and many plans share one")
  func plans() {
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    metrics.note(report(.migrated, plan: "a\"} 1\nevil{\\"))
    #expect(metrics.text.contains(#"plan="a\"} 1\nevil{\\"} 1"#))
    #expect(!metrics.text.contains("\nevil"))
    for number in 0..<1000 { metrics.note(report(.migrated, plan: "P\(number)")) }
    let series = metrics.text.split(separator: "\n").filter { $0.hasPrefix("instar_runs_total{") }
    #expect(series.count == 51)
    #expect(series.contains { $0 == #"instar_runs_total{result="migrated",plan="other"} 951"# })
  }

  @Test("what is measured under another name is dropped")
  func otherNames() {
    let registry = MetricsRegistry()
    Counter(label: "some_library_total", dimensions: [("path", "/srv")], factory: registry)
      .increment()
    CoreMetrics.Timer(label: "other", factory: registry).recordSeconds(1)
    Counter(label: "instar_probes_total", dimensions: [("store", "/srv/a")], factory: registry)
      .increment()
    #expect(
      registry.text == """
        # HELP instar_probes_total Probes of stores.
        # TYPE instar_probes_total counter
        instar_probes_total 1

        """)
  }

  private var configuration: Configuration {
    var configuration = Configuration()
    configuration.watches = [Configuration.Watch(folder: "/srv", patterns: ["*"])]
    return configuration
  }

  @Test("gauges show the queue, and those of a plan disappear with its stores")
  func gauges() {
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    var queue = StoreQueue(settings: .init(configuration))
    let now = ContinuousClock.now
    _ = queue.handle(.released, at: now)
    let version = WatchedVersion(
      FileVersion(
        identity: FileIdentity(device: 1, inode: 1), sizeBytes: 4096, modifiedNanoseconds: 1))
    for name in ["/srv/a", "/srv/b", "/srv/c"] {
      _ = queue.handle(.versionRead(name, version), at: now)
    }
    for (name, state) in [("/srv/a", StoreState.current), ("/srv/b", .behind)] {
      var report = ProbeReport(store: name, format: .coredata, state: state, reason: nil)
      report.plan = "Notes"
      report.planVersion = Schema.Version(2, 0, 0)
      _ = queue.handle(.probed(report, before: version, after: version), at: now)
      _ = queue.handle(.probesEnded(nil), at: now)
    }
    func shows(_ line: String) -> Bool {
      metrics.show(snapshot(of: queue), at: now)
      return metrics.text.split(separator: "\n").contains { $0 == line }
    }
    #expect(shows(#"instar_stores{state="current",plan="Notes"} 1"#))
    #expect(shows(#"instar_stores{state="behind",plan="Notes"} 1"#))
    #expect(shows(#"instar_stores{state="unprobed"} 1"#))
    #expect(shows(#"instar_stores_by_activity{activity="running"} 1"#))
    #expect(shows("instar_runs_in_progress 1") && shows("instar_keeper_restarts_total 2"))
    #expect(shows(#"instar_watches{state="watched"} 2"#))
    // Before the first failure: only so a failure is an increase.
    #expect(shows(#"instar_runs_total{result="failed",plan="Notes"} 0"#))
    for name in ["/srv/a", "/srv/c"] { _ = queue.handle(.forgotten(name), at: now) }
    #expect(shows(#"instar_stores{state="current",plan="Notes"} 0"#))
    #expect(!shows(#"instar_stores{state="unprobed"} 1"#))
  }

  @Test(
    "the counts of a queue are those of its stores after any order of events", arguments: 0..<20)
  func counts(seed: UInt64) {
    var random = Generator(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1)
    var queue = StoreQueue(settings: .init(configuration))
    var now = ContinuousClock.now
    _ = queue.handle(.released, at: now)
    let names = (0..<6).map { "/srv/\($0).store" }
    for _ in 0..<300 {
      let name = names[Int.random(in: 0..<6, using: &random)]
      let version = WatchedVersion(
        FileVersion(
          identity: FileIdentity(device: 1, inode: 1), sizeBytes: 1,
          modifiedNanoseconds: Int64.random(in: 0..<3, using: &random)))
      switch Int.random(in: 0..<7, using: &random) {
      case 0: _ = queue.handle(.touched(name), at: now)
      case 1: _ = queue.handle(.versionRead(name, version), at: now)
      case 2, 3:
        let state = StoreState.allCases.randomElement(using: &random) ?? .current
        var report = ProbeReport(store: name, format: .coredata, state: state, reason: nil)
        report.plan = ["A", "B", nil].randomElement(using: &random) ?? nil
        _ = queue.handle(.probed(report, before: version, after: version), at: now)
        _ = queue.handle(.probesEnded(nil), at: now)
      case 4:
        var ended = report(.migrated)
        ended.store = name
        _ = queue.handle(.runEnded(ended, before: version, after: version), at: now)
      case 5: _ = queue.handle(.missing(name), at: now)
      default:
        now += .seconds(60)
        _ = queue.handle(.tick, at: now)
      }
      let stores = queue.stores.compactMap { queue.status(of: $0, at: now) }
      let activities = Dictionary(grouping: stores, by: \.activity).mapValues(\.count)
      #expect(queue.activityCounts.filter { $0.value != 0 } == activities, "seed \(seed)")
      let groups = Dictionary(grouping: stores) { StoreQueue.Group(state: $0.state, plan: $0.plan) }
      #expect(queue.groupCounts == groups.mapValues(\.count), "seed \(seed)")
    }
  }

  private struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  @Test("names follow Prometheus' conventions")
  func names() {
    for metric in Metric.allCases {
      #expect(metric.rawValue.wholeMatch(of: /instar_[a-z]+(_[a-z]+)*/) != nil)
      #expect((metric.kind == .counter) == metric.rawValue.hasSuffix("_total"))
      #expect(
        metric.bounds == metric.bounds.sorted()
          && metric.bounds.isEmpty == (metric.kind != .histogram))
      #expect(!metric.help.contains("\n") && !metric.help.contains("\\"))
      #expect(metric.help.hasSuffix("."))
      #expect(Set(metric.labels).isDisjoint(with: ["store", "run", "owner", "user", "folder"]))
    }
  }

  /// Text in which a metric is named, with the labels that are named with it.
  private func namedMetrics(in text: String) -> [(name: String, labels: [String])] {
    text.matches(of: /\b(instar_[a-z_]+)(?:\{([^}]*)\})?/).map { match in
      let labels = (match.2 ?? "").matches(of: /([a-z_]+)=/).map { String($0.1) }
      return (String(match.1), labels)
    }
  }

  @Test(
    "every metric and label that rules and dashboard name exists",
    arguments: ["instar.rules.yml", "instar.rules.test.yml", "instar.dashboard.json"])
  func monitoring(file: String) throws {
    let named = namedMetrics(in: try text(of: "packaging/monitoring/\(file)"))
    #expect(named.count > 10)
    for (name, labels) in named {
      let metric =
        Metric(rawValue: name)
        ?? ["_bucket", "_sum", "_count"].first(where: name.hasSuffix)
        .flatMap { Metric(rawValue: String(name.dropLast($0.count))) }
        .flatMap { $0.kind == .histogram ? $0 : nil }
      let known = try #require(metric, "\(name)")
      for label in labels where !["instance", "le"].contains(label) {
        #expect(known.labels.contains(label), "\(name): \(label)")
      }
    }
  }

  @Test("the operator's guide lists every metric with its labels, and no other")
  func guide() throws {
    let guide = try text(of: "packaging/docs/operator.md")
    let listed = guide.matches(of: /\n\| `(instar_[a-z_]+)` \| ([^|]*) \|/)
      .map { "\($0.1) \($0.2.replacing("`", with: ""))" }
    #expect(
      listed == Metric.allCases.map { "\($0.rawValue) \($0.labels.joined(separator: ", "))" })
  }

  @Test("the operator's guide explains every alert")
  func alerts() throws {
    let rules = try text(of: "packaging/monitoring/instar.rules.yml")
    let guide = try text(of: "packaging/docs/operator.md")
    let alerts = rules.matches(of: /- alert: (\w+)/).map { String($0.1) }
    #expect(alerts.count > 10)
    for alert in alerts { #expect(guide.contains("| `\(alert)` |"), "\(alert)") }
  }
}
