import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@Suite("instarctl report")
struct FleetReportTests {
  private let folder: TemporaryFolder
  private var state: String { folder.path("state") }
  private var page: String { folder.path("report.html") }

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  private func report(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(["report", "--state-dir", state] + arguments)
  }

  /// Writes a ledger as the supervisor does, without a sync for each line.
  private func writeLedger(_ runs: [RunReport]) throws {
    _ = try StateFolder(path: state)
    let lines = try runs.map { try WireCoder.line($0) }
    try Data(lines.joined()).write(to: URL(filePath: state + "/ledger/ledger.jsonl"))
  }

  private func run(
    _ number: Int, _ result: RunReport.Result = .migrated, store: String? = nil,
    cause: String? = nil
  ) -> RunReport {
    var report = RunReport(
      run: RunIdentifier.make(), store: store ?? "/srv/fleet/\(number % 4000).store",
      result: result,
      startedAt: 1_790_000_000 + Double(number) * 7)
    report.plan = "NotesMigrationPlan"
    report.from = Schema.Version(1, 0, 0)
    report.to = Schema.Version(2, 0, 0)
    report.durationMicroseconds = Int64(20_000 + (number * 7919) % 900_000)
    report.bytes = Int64(40_000 + (number * 104_729) % 50_000_000)
    report.entities = [.init(name: "Note", rowsBefore: 10, rowsAfter: 10)]
    if let cause {
      report.error = InstarError(
        .stageFailed, "cannot migrate '\(report.store)'", store: report.store, cause: cause,
        state: "unchanged", next: "correct the plan")
    }
    return report
  }

  /// Reads the page as a browser does, and finds what a page must not have: a tag or an attribute that no page of ours
  /// needs, styles from elsewhere, coordinates that are not numbers, tags without their end.
  private static let check = #"""
    import html.parser, re, sys
    TAGS = set("""html head meta title style body header main footer div h1 h2 p span section code strong i svg line
        text rect circle path details summary dl dt dd ul li table thead tbody tr th td""".split())
    VOID = {'meta', 'line'}
    SHAPES = {'rect', 'circle', 'path'}
    NUMBERS = set('x y x1 x2 y1 y2 cx cy r d width height viewbox'.split())
    NAMES = NUMBERS | set("""lang charset http-equiv content name class role aria-label text-anchor title open
        style""".split())
    class Page(html.parser.HTMLParser):
        open_tags, problems, shown = [], [], []
        def handle_starttag(self, tag, attributes):
            if tag not in TAGS: self.problems.append('tag ' + tag)
            for name, value in attributes:
                if name not in NAMES: self.problems.append('attribute ' + name)
                if name in NUMBERS and not re.fullmatch(r'[-0-9. MHVZ]+', value):
                    self.problems.append(name + '=' + value)
                if name == 'style' and not re.fullmatch(r'flex:[0-9]+', value): self.problems.append('style ' + value)
            if tag not in VOID: self.open_tags.append(tag)
        def handle_startendtag(self, tag, attributes):
            self.handle_starttag(tag, attributes)
            if tag not in VOID: self.open_tags.pop()
        def handle_endtag(self, tag):
            if not self.open_tags or self.open_tags.pop() != tag: self.problems.append('end of ' + tag)
        def handle_data(self, data):
            if self.open_tags[-1:] == ['style']:
                if re.search(r'https?:|@import|url\(|src', data): self.problems.append('a style from elsewhere')
            else: self.shown.append(data)
    page = Page()
    page.feed(open(sys.argv[1], encoding='utf-8').read())
    page.close()
    problems = page.problems + ['open: ' + tag for tag in page.open_tags]
    if problems: sys.exit('\n'.join(problems[:20]))
    print(' '.join(' '.join(page.shown).split()))
    """#

  /// What the page shows as text, after the check.
  private func shownText() async throws -> String {
    let script = folder.path("check.py")
    try Data(Self.check.utf8).write(to: URL(filePath: script))
    let answer = try await Program.run("python3", [script, page])
    try #require(answer.status == 0, "\(answer.messages)")
    return answer.messages
  }

  @Test("without a daemon the ledger is reported, and the report says what is missing")
  func offline() async throws {
    try writeLedger([
      run(1), run(2), run(3, .failed, cause: "14 rows of Note have no title"),
      run(4, .failed, cause: "15 rows of Note have no title"), run(3),
    ])
    let answer = try await report("--html", page)
    #expect(answer.status == 0 && answer.messages == "wrote '\(page)'\n" && answer.output == "")
    let shown = try await shownText()
    for text in [
      "Fleet report", "5 runs", "instard not reached", "Missing from this report",
      "states of the stores", "NotesMigrationPlan", "15 rows of Note have no title", "1 unresolved",
      "/srv/fleet/4.store", "correct the plan",
    ] { #expect(shown.contains(text), "\(text)") }

    let text = try await report().output
    #expect(text.contains("3 migrated, 2 failed") && text.contains("[I301]"))
    #expect(text.contains("2 stores, 1 still unresolved: such as: 15 rows of Note have no title"))
    #expect(text.contains("missing"))
    struct Answer: Decodable {
      struct Failure: Decodable {
        var stores: Int
        var unsolved: Int
        var examples: [String]
      }
      struct Totals: Decodable {
        var runs: Int
        var rows: Int
      }
      var failures: [Failure]
      var totals: Totals
      var missing: [String]
    }
    let json = try #require(try await report("--json").objects(Answer.self).first)
    #expect(json.totals.runs == 5 && json.totals.rows == 30 && json.missing.count == 1)
    #expect(json.failures.map(\.stores) == [2] && json.failures.map(\.unsolved) == [1])
    // The one that is still broken comes first.
    #expect(json.failures.first?.examples == ["/srv/fleet/4.store", "/srv/fleet/3.store"])
  }

  @Test("an empty ledger is a page too")
  func empty() async throws {
    try writeLedger([])
    #expect(try await report("--html", page).status == 0)
    #expect(try await shownText().contains("no runs in"))
    try writeLedger([run(1)])
    #expect(try await report("--html", page).status == 0)
    #expect(try await shownText().contains("1 run "))
  }

  @Test("'--html -' prints the page and writes no file")
  func printed() async throws {
    try writeLedger([run(1)])
    let answer = try await report("--html", "-")
    #expect(answer.status == 0)
    #expect(answer.output.hasPrefix("<!DOCTYPE html>") && answer.output.hasSuffix("</html>\n"))
    #expect(!FileManager.default.fileExists(atPath: "-"))
    #expect(try await report("--html", "-", "--json").status == 2)
  }

  @Test("names and causes cannot inject markup, in text, attributes or plots")
  func hostile() async throws {
    let evil =
      "</title><script>alert(1)</script>\"'><img src=http://evil/x onerror=alert(2)>\u{202E}\u{1B}[31m"
    var runs = (0..<20).map {
      run($0, $0 % 2 == 0 ? .migrated : .failed, store: "/srv/\(evil)\($0)", cause: evil)
    }
    for index in runs.indices {
      runs[index].plan = evil
      runs[index].error?.stage = evil
      runs[index].error?.next = evil
    }
    try writeLedger(runs)
    let answer = try await report("--html", page)
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(try await shownText().contains("<script>alert(1)</script>"))
    let text = try String(contentsOfFile: page, encoding: .utf8)
    #expect(!text.contains("<script") && !text.contains("<img") && !text.contains("\u{202E}"))
  }

  @Test("10,000 runs make a page of less than two megabytes")
  func large() async throws {
    try writeLedger(
      (0..<10_000).map { number in
        number % 50 == 0
          ? run(
            number, .failed, cause: "\(number) rows of Kind\(number % 37)x\(number % 41) are bad")
          : run(number, number % 33 == 0 ? .busy : .migrated)
      })
    #expect(try await report("--html", page).status == 0)
    let bytes = try #require(
      FileManager.default.attributesOfItem(atPath: page)[.size] as? Int)
    #expect(bytes < 500_000)
    #expect(try await shownText().contains("10,000 runs"))
  }

  @Test("a report from a daemon has the stores, the rollout and its waves")
  func online() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configure("rollout: {canary: 1, waves: [50%]}")
    for number in 0..<4 { try fixture.add("fine", as: "good\(number)") }
    let bad = try fixture.add("throw", as: "<b>bad<i>")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=rollout-finished", in: daemon)
    let answer = try await report("--html", page, "--json", "--socket", fixture.socket)
    #expect(answer.status == 0, "\(answer.messages)")
    let shown = try await shownText()
    for text in [
      "4 current", "1 behind", "wave 1", "wave 2", bad.path, "BoxPlan to 2.0.0: finished",
    ] { #expect(shown.contains(text), "\(text)") }
    #expect(!shown.contains("Missing from this report"))
    // The socket of the state folder's daemon is found without an option, too.
    #expect(answer.output.contains(#""phase":"running""#))

    // Another daemon's runs are its own too, and not those of the service's ledger.
    let asked = try await CommandLineTool.run("report", "--json", "--socket", fixture.socket)
    #expect(asked.status == 0, "\(asked.messages)")
    struct Report: Decodable {
      struct Totals: Decodable, Equatable {
        var runs: Int
        var results: [String: Int]
      }
      var stateFolder: String?
      var totals: Totals
    }
    let (ofLedger, ofDaemon) = try (
      #require(answer.objects(Report.self).first), #require(asked.objects(Report.self).first)
    )
    #expect(ofDaemon.totals == ofLedger.totals && ofDaemon.totals.results["migrated"] == 4)
    #expect(ofLedger.stateFolder == state && ofDaemon.stateFolder == nil)
    let text = try await CommandLineTool.run("report", "--socket", fixture.socket).output
    #expect(text.contains(", of instard\n"), "\(text)")
  }

  @Test("status and report say that a rollout is finished which needed fewer waves than it has")
  func finishedEarly() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configure("rollout: {canary: 1, waves: [50%]}")
    try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=rollout-finished", in: daemon)
    for command in ["status", "report"] {
      let text = try await CommandLineTool.run(command, "--socket", fixture.socket).output
      #expect(text.contains("BoxPlan to 2.0.0: finished; 1 of 1 store migrated"), "\(text)")
    }
  }

  @Test("stores whose rehearsal failed are in the report, though the ledger has no rehearsals")
  func rehearsals() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configureWatch("policy: rehearse")
    let bad = try fixture.add("throw")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-failed", in: daemon)
    let answer = try await report("--html", page, "--json", "--socket", fixture.socket)
    struct Report: Decodable {
      struct Failure: Decodable {
        var plan: String?
        var runs: Int?
        var unsolved: Int
        var error: InstarError
        var examples: [String]
      }
      var failures: [Failure]
    }
    let failures = try #require(try answer.objects(Report.self).first).failures
    #expect(failures.map(\.examples) == [[bad.path]], "\(answer.output)")
    #expect(failures.map(\.runs) == [nil] && failures.map(\.unsolved) == [1])
    #expect(failures.first?.plan == "BoxPlan")
    let cause = try #require(failures.first?.error.cause.split(separator: "\n").first)
    #expect(try await shownText().contains("Failures and their causes"))
    let text = try await CommandLineTool.run("report", "--socket", fixture.socket).output
    #expect(
      text.contains("failed, refused or not readable: 1 store, 1 still unresolved: \(cause)"),
      "\(text)")
  }

  @Test("a store that cannot be probed any more is unreadable, and its last run did not fail")
  func unreadable() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let store = try fixture.add("fine")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    // Anybody could have written it.
    try #require(chmod(store.path, 0o666) == 0)
    try await fixture.wait(for: "INSTAR_EVENT=probe-failed", in: daemon)
    let answer = try await report("--html", page, "--json", "--socket", fixture.socket)
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(answer.output.contains(#""state":"unreadable""#), "\(answer.output)")
    let shown = try await shownText()
    for text in ["1 unreadable", "stores whose last attempt failed", store.path, "I107"] {
      #expect(shown.contains(text), "\(text)")
    }
    let text = try await CommandLineTool.run("report", "--socket", fixture.socket).output
    #expect(text.contains("1 unreadable") && !text.contains("not probed yet"), "\(text)")
  }

  @Test("a daemon that is named and does not answer is an error, and not another report")
  func silent() async throws {
    let answer = try await CommandLineTool.run("report", "--socket", folder.path("none.sock"))
    #expect(answer.status == 6 && answer.output == "", "\(answer.messages)")
  }

  @Test(
    "an ordinary user's report asks the service, and says whose ledger it shows instead",
    .enabled(if: geteuid() == 0, "becoming others needs root"))
  func ordinaryUser() throws {
    var environment = ProcessInfo.processInfo.environment
    environment["INSTAR_STATE_DIR"] = nil
    environment["XDG_STATE_HOME"] = folder.path("home")
    let child = try ChildProcess.start(
      executable: "/usr/bin/setpriv",
      arguments: [
        "--reuid=4666", "--regid=4666", "--clear-groups",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "report",
      ], environment: environment, output: .captured(limitBytes: 1 << 20))
    #expect(try child.wait() == .exited(0))
    let text = child.capturedOutput
    #expect(text.contains("no runs in '\(folder.path("home"))/instar'"), "\(text)")
    #expect(text.contains("'/run/instar/instard.sock'"), "\(text)")
    #expect(text.contains("the runs are those of this user's own ledger"), "\(text)")
  }
}
