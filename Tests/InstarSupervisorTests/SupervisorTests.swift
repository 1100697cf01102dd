import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

/// The supervisor's side of the conversation, with a keeper that plays a part: it dies, stalls or
/// answers where the test wants it to. Whole runs with the real keeper are in EndToEndTests.
@Suite("Supervisor and state folder")
struct SupervisorTests {
  let folder: TemporaryFolder
  let state: StateFolder
  let run = RunIdentifier.make()
  let store = "/srv/app/a.store"

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    state = try StateFolder(path: folder.path("state"))
  }

  // MARK: - The part

  /// A keeper that runs `cases` of a shell `case` over each request, which is in `$request`; `say`
  /// answers, `log` writes to the file `log`, and `listen` waits for the next request.
  func supervisor(
    _ cases: String, cutoverGrace: Duration = .seconds(900),
    probeLimit: Duration = .seconds(60), rights: KeeperRights = .caller
  ) throws -> Supervisor {
    let script = """
      #!/bin/bash
      say() { printf '%s' "$1" >&3; }
      log() { printf '%s\\n' "$1" >> '\(folder.path("log"))'; }
      listen() { IFS= read -r request <&3; }
      log "started $$"
      while listen; do
        case $request in
        \(cases)
        esac
      done
      log "ended"
      """
    let keeper = try folder.write(script, to: "keeper", mode: 0o700)
    let installation = Installation(
      keeper: keeper, worker: "/w", library: "/l", swiftRuntimeFolder: nil, modulesFolder: "/m",
      macroExecutable: "/x")
    return Supervisor(
      installation: installation, stateFolder: state, rights: rights, cutoverGrace: cutoverGrace,
      probeLimit: probeLimit)
  }

  func say(_ event: KeeperEvent) throws -> String {
    let line = String(decoding: try WireCoder.line(event), as: UTF8.self)
    return "say '\(line.replacingOccurrences(of: "'", with: #"'\''"#))'"
  }

  func phase(_ phase: Phase) -> PhaseRecord {
    var record = PhaseRecord(run: run, store: store, phase: phase, startedAt: 1000)
    record.keptStore = store
    record.from = Schema.Version(1, 0, 0)
    record.to = Schema.Version(2, 0, 0)
    if phase == .cutover { record.backup = "/srv/app/.instar/backup" }
    return record
  }

  /// Asks to begin a phase, and waits for the answer.
  func ask(_ phase: Phase) throws -> String {
    "\(try say(.ask(self.phase(phase)))); listen"
  }

  func probed(_ store: String) throws -> String {
    let report = ProbeReport(store: store, format: .plain, state: .current)
    return try say(.probed(EncodedProbeReport(report)))
  }

  func recovered(_ outcome: RecoveryReport.Outcome) throws -> String {
    var report = RecoveryReport(run: run, store: store, outcome: outcome)
    if outcome == .finished { report.backup = "/srv/app/.instar/backup" }
    return try say(.recovered(report))
  }

  func phaseFiles() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: state.path + "/phases").sorted()
  }

  var request: MigrationRequest { MigrationRequest(run: run, store: store, plans: ["/p.so"]) }

  func log() throws -> [String] {
    try folder.text(of: "log").split(separator: "\n").map(String.init)
  }

  func waitFor(log line: String) async throws {
    let limit = soon()
    while (try? log().contains(line)) != true {
      guard ContinuousClock.now < limit else { throw CancellationError() }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Leaves the run's phase behind: its keeper is killed while it clones, and another one does not recover it.
  @discardableResult
  func leaveRunOpen() async throws -> RunReport {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); kill -KILL $$ ;;
      *'"recover"'*) exit 3 ;;
      """)
    return try await supervisor.migrate(request) { _ in }
  }

  // MARK: - Runs

  @Test(
    "each phase is on disk before the keeper goes on, and the run in the ledger before its phase is removed"
  )
  func phases() async throws {
    let file = "\(state.path)/phases/\(run).json"
    let supervisor = try supervisor(
      """
      *'"migrate"'*)
        \(try say(.run(RunEvent(run: run, store: store, step: .started))))
        \(try ask(.cloning)); log "$request $(tail --lines 1 '\(file)')"
        \(try ask(.cutover)); log "$request $(tail --lines 1 '\(file)')"
        \(try say(.finished(RunReport(run: run, store: store, result: .migrated, startedAt: 1000)))) ;;
      """)
    let events = Mutex<[RunEvent]>([])
    let report = try await supervisor.migrate(request) { event in
      events.withLock { $0.append(event) }
    }
    #expect(report.result == .migrated)
    #expect(events.withLock { $0.map(\.step) } == [.started])
    let log = try log().filter { $0 != "ended" }
    #expect(log.count == 3)
    #expect(log[1].hasPrefix(#"{"proceed":{}}"#) && log[1].contains(#""phase":"cloning""#))
    #expect(log[2].hasPrefix(#"{"proceed":{}}"#) && log[2].contains(#""phase":"cutover""#))
    #expect(try state.history().reports == [report])
    #expect(try state.openPhases().records == [])
    #expect(try phaseFiles() == [])
  }

  @Test("a store that was current is not noted in the ledger")
  func current() async throws {
    let report = RunReport(run: run, store: store, result: .current, startedAt: 1000)
    let supervisor = try supervisor("*) \(try say(.finished(report))) ;;")
    #expect(try await supervisor.migrate(request) { _ in } == report)
    #expect(try state.history().reports == [])
  }

  @Test("a rehearsal is not noted in the ledger, and a hold does not stop it")
  func rehearsal() async throws {
    let held = try folder.write("a", to: "held.store")
    try state.hold(held, by: "anna", why: "auditing")
    var request = MigrationRequest(run: run, store: held, plans: ["/p.so"])
    request.rehearses = true
    var record = phase(.cloning)
    record.store = held
    record.rehearses = true
    var report = RunReport(run: run, store: held, result: .rehearsed, startedAt: 1000)
    report.rehearsal = RunReport.Rehearsal()
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try say(.ask(record))); listen; \(try say(.finished(report))) ;;
      """)
    #expect(try await supervisor.migrate(request) { _ in } == report)
    #expect(try state.history().reports == [])
    #expect(try state.openPhases().records == [])
  }

  @Test("a rehearsal whose keeper dies is discarded by another, and not noted in the ledger")
  func rehearsalDies() async throws {
    var request = request
    request.rehearses = true
    var record = phase(.cloning)
    record.rehearses = true
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try say(.ask(record))); listen; kill -SEGV $$ ;;
      *'"recover"'*) log recovering; \(try recovered(.discarded)) ;;
      """)
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .failed)
    #expect(report.error?.code == .keeperDied)
    #expect(report.rehearsal != nil)
    #expect(try log().contains("recovering"))
    #expect(try state.history().reports == [])
    #expect(try state.openPhases().records == [])
  }

  @Test(
    "a keeper that dies while it clones: another discards the run, and the report says how it died and what it wrote"
  )
  func diesCloning() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); echo "last words" >&2; kill -SEGV $$ ;;
      *'"recover"'*) log recovering; \(try recovered(.discarded)) ;;
      """)
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .failed)
    #expect(report.error?.code == .keeperDied)
    #expect(report.error?.cause == "the keeper was killed by SIGSEGV; its last output:\nlast words")
    #expect(report.error?.state == "unchanged")
    #expect(report.error?.next?.hasPrefix("run: instarctl migrate ") == true, "as in the journal")
    #expect(report.error?.store == store)
    #expect(report.from == Schema.Version(1, 0, 0))
    #expect(try log().contains("recovering"))
    #expect(try state.history().reports == [report])
    #expect(try state.openPhases().records == [])
  }

  @Test("a keeper that dies in the write-back, and had written: the run is migrated, with a note")
  func diesWritingBack() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning))
        \(try ask(.cutover)); kill -KILL $$ ;;
      *'"recover"'*) \(try recovered(.finished)) ;;
      """)
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .migrated)
    #expect(report.error == nil)
    #expect(report.backup == "/srv/app/.instar/backup")
    #expect(report.notes.count == 1)
    #expect(try state.openPhases().records == [])
  }

  @Test(
    "if a run is not recovered in time, the report says what state its store may be in",
    arguments: [
      Phase.cloning, .cutover,
    ])
  func overdueRecovery(last: Phase) async throws {
    let cutover = last == .cutover ? "\(try ask(.cutover)); " : ""
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); \(cutover)kill -KILL $$ ;;
      *'"recover"'*) trap '' TERM; listen ;;
      """, probeLimit: .seconds(2))
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .failed)
    #expect(report.error?.cause.contains("within 2 s") == true)
    #expect(report.error?.isInDoubt == (last == .cutover))
    #expect(report.error?.state?.hasPrefix("unchanged") == (last == .cloning))
    #expect(try state.openPhases().records.map(\.phase) == [last])
    #expect(supervisor.storesWithRunsLeftOpen == [store])

    // So does the next run of the store, which is not begun.
    var next = request
    next.run = "20200101T000001Z-1"
    let refused = try await supervisor.migrate(next) { _ in }
    #expect(refused.error?.isInDoubt == (last == .cutover))
  }

  @Test("another keeper removes what the run's own could not remove", arguments: [true, false])
  func leftovers(canRemove: Bool) async throws {
    var answer = RunReport(run: run, store: store, result: .failed, startedAt: 1000)
    answer.leftovers = ["/srv/app/.instar/run-1"]
    let failure = InstarError(.unreadableStore, "cannot recover", cause: "it is still there")
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); \(try say(.finished(answer))) ;;
      *'"recover"'*) log "recovering $$"
        \(canRemove ? try recovered(.discarded) : try say(.failed(failure))) ;;
      """)
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.leftovers == (canRemove ? nil : answer.leftovers))
    let keepers = try log().filter { $0.hasPrefix("started") }
    #expect(keepers.count == 2)
    #expect(try log().contains("recovering \(keepers[1].dropFirst(8))"))
    #expect(try state.history().reports == [report])
    #expect(try state.openPhases().records == [])
  }

  @Test("a run that cannot be recovered stays, and is recovered and noted once at the next start")
  func laterRecovery() async throws {
    let report = try await leaveRunOpen()
    #expect(report.result == .failed)
    #expect(report.error?.cause.contains("the keeper exited with status 3") == true)
    #expect(report.error?.state?.hasPrefix("unchanged") == true)
    #expect(try state.openPhases().records == [phase(.cloning)])
    #expect(try state.history().reports == [])

    let next = try supervisor("*'\"recover\"'*) \(try recovered(.discarded)) ;;")
    let reports = Mutex<[RecoveryReport]>([])
    #expect(try next.storesWithOpenRuns().stores == [store])
    try await next.recover(store: "/srv/app/other.store") { Issue.record("recovered \($0.run)") }
    try await next.recover(store: store) { report in
      reports.withLock { $0.append(report) }
    }
    #expect(reports.withLock { $0.map(\.outcome) } == [.discarded])
    #expect(try state.openPhases().records == [])
    let noted = try state.history().reports
    #expect(noted.map(\.result) == [.failed])
    #expect(noted.first?.error?.code == .interrupted)
    #expect(try phaseFiles() == [])
  }

  @Test(
    "while a store's earlier run cannot be recovered, no other run of the store starts",
    arguments: zip([InstarError.Code.corruptStore, .busyStore], [RunReport.Result.failed, .busy]))
  func unrecovered(code: InstarError.Code, result: RunReport.Result) async throws {
    try await leaveRunOpen()
    let next = try supervisor(
      """
      *'"migrate"'*) log migrating ;;
      *'"recover"'*) \(try say(.failed(InstarError(code, "cannot recover", cause: "as it is")))) ;;
      """)
    var again = request
    again.run = RunIdentifier.make()
    let report = try await next.migrate(again) { _ in }
    #expect(report.result == result)
    #expect(report.error?.code == code)
    #expect(try state.openPhases().records == [phase(.cloning)])
    #expect(try !log().contains("migrating"))
  }

  @Test("a recovery that hangs ends at its time limit, and stays for the next call")
  func hangingRecovery() async throws {
    try await leaveRunOpen()
    let installed = try supervisor("*'\"recover\"'*) sleep 600 ;;")
    let next = Supervisor(
      installation: installed.installation, stateFolder: try StateFolder(path: state.path),
      probeLimit: .milliseconds(300))
    let result = await Task { try await next.recover(store: store) { _ in } }.result
    let error = #expect(throws: InstarError.self) { try result.get() }
    #expect(error?.store == store)
    #expect(error?.cause.contains("did not finish within") == true)
    #expect(try state.openPhases().records == [phase(.cloning)])
  }

  @Test("the keeper is told to refrain if the phase cannot be brought to disk")
  func fullDisk() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) rm -rf '\(state.path)/phases'; \(try ask(.cloning)); log "$request"
        \(try say(.finished(RunReport(run: run, store: store, result: .failed, startedAt: 1000)))) ;;
      """)
    let report = try await supervisor.migrate(request) { _ in }
    #expect(try log().contains(#"{"refrain":{}}"#))
    #expect(report.error?.code == .stateFolderFailed)
    #expect(report.error?.state == "unchanged")
  }

  @Test(
    "a canceled run ends once the keeper has discarded it, and is interrupted with the store unchanged"
  )
  func cancel() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); log cloning ;;
      *'"recover"'*) \(try recovered(.discarded)) ;;
      """)
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: "cloning")
    supervisor.cancel()
    let report = try await running
    #expect(report.result == .failed)
    #expect(report.error?.code == .interrupted)
    #expect(report.error?.state == "unchanged")
    #expect(report.error?.what == "cannot migrate '\(store)'")
    #expect(report.error?.next?.hasPrefix("run: instarctl migrate ") == true)
    #expect(try log().contains("ended"))
    #expect(try state.openPhases().records == [])
  }

  @Test("canceling a task ends its run")
  func canceledTask() async throws {
    let supervisor = try supervisor("*'\"migrate\"'*) log working ;;")
    let request = request
    let running = Task { try await supervisor.migrate(request) { _ in } }
    try await waitFor(log: "working")
    running.cancel()
    #expect(try await running.value.error?.code == .interrupted)
  }

  @Test("a run that writes back is not canceled")
  func cancelTooLate() async throws {
    let report = RunReport(run: run, store: store, result: .migrated, startedAt: 1000)
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning))
        \(try ask(.cutover)); log writing
        until [ -e '\(folder.path("canceled"))' ]; do sleep 0.01; done
        \(try say(.finished(report))) ;;
      """)
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: "writing")
    supervisor.cancel()
    try folder.write("", to: "canceled")
    #expect(try await running == report)
  }

  @Test("a keeper that hangs in the write-back is ended some time after the run was to be canceled")
  func hangsWritingBack() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning))
        \(try ask(.cutover)); log writing; kill -STOP $$ ;;
      *'"recover"'*) \(try recovered(.finished)) ;;
      """, cutoverGrace: .milliseconds(50))
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: "writing")
    supervisor.cancel()
    let report = try await running
    #expect(report.result == .migrated && report.backup == "/srv/app/.instar/backup")
    #expect(try state.history().reports == [report])
    #expect(try state.openPhases().records == [])
  }

  /// A keeper that clones a second time because others wrote the store.
  private func startingOver() throws -> Supervisor {
    try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning))
        \(try ask(.cutover)); log writing
        until [ -e '\(folder.path("again"))' ]; do sleep 0.01; done
        \(try ask(.cloning)); log "$request"
        if [ "$request" = '{"refrain":{}}' ]; then
          \(try say(.finished(RunReport(run: run, store: store, result: .failed, startedAt: 1000))))
        fi ;;
      *'"recover"'*) \(try recovered(.discarded)) ;;
      """)
  }

  @Test("a run that starts over after it could not write back can be canceled again")
  func cancelSecondAttempt() async throws {
    let supervisor = try startingOver()
    try folder.write("", to: "again")
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: #"{"proceed":{}}"#)
    supervisor.cancel()
    #expect(try await running.error?.code == .interrupted)
    #expect(try state.openPhases().records == [])
  }

  @Test("a run that was to be canceled while it wrote back does not start over")
  func canceledWhileWriting() async throws {
    let supervisor = try startingOver()
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: "writing")
    supervisor.cancel()
    try folder.write("", to: "again")
    let report = try await running
    #expect(report.error?.code == .interrupted)
    #expect(report.error?.state == "unchanged")
    #expect(try log().contains(#"{"refrain":{}}"#))
  }

  @Test("what is begun after everything was canceled ends at once, without a keeper")
  func canceledBefore() async throws {
    let supervisor = try supervisor("*) log working ;;")
    supervisor.cancel()
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .failed)
    #expect(report.error?.code == .interrupted)
    #expect(report.error?.state == "unchanged")
    let described = await Task { try await supervisor.describe(plugins: ["a.so"]) }.result
    #expect(throws: InstarError.self) { try described.get() }
    #expect(throws: (any Error).self) { try log() }
  }

  @Test("the runs of a supervisor that lives are left alone by the recovery of another")
  func living() async throws {
    let supervisor = try supervisor(
      """
      *'"migrate"'*) \(try ask(.cloning)); log cloning ;;
      *'"recover"'*) \(try recovered(.discarded)) ;;
      """)
    async let running = supervisor.migrate(request) { _ in }
    try await waitFor(log: "cloning")
    let other = Supervisor(
      installation: supervisor.installation, stateFolder: try StateFolder(path: state.path))
    try await other.recover(store: store) { Issue.record("recovered \($0.run)") }
    #expect(try state.openPhases().records == [phase(.cloning)])
    let again = await Task { try await other.migrate(request) { _ in } }.result
    #expect(throws: InstarError.self) { try again.get() }
    supervisor.cancel()
    _ = try await running
  }

  @Test(
    "a reply that does not match the request ends the run, not the supervisor",
    arguments: [
      KeeperEvent.done,
      .ask(PhaseRecord(run: "other", store: "/other", phase: .cloning, startedAt: 0)),
    ])
  func strangeAnswers(event: KeeperEvent) async throws {
    let supervisor = try supervisor(
      "*) \(try say(event)); listen; log \"$request\"; say '{garbage}\n' ;;")
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.result == .failed)
    #expect(report.error?.code == .protocolViolation)
    #expect(try state.openPhases().records == [])
  }

  @Test("impossible numbers of a keeper are replaced before anybody adds them")
  func impossibleNumbers() async throws {
    var report = RunReport(run: run, store: store, result: .migrated, startedAt: -1e300)
    report.durationMicroseconds = .max
    report.bytes = .min
    report.entities = ["A", "B"].map { .init(name: $0, rowsBefore: -1, rowsAfter: .max) }
    var event = RunEvent(run: run, store: store, step: .progress)
    event.progress = WorkProgress(what: "rows", done: .min, total: 1, seconds: 1e-9)
    let supervisor = try supervisor(
      "*) \(try say(.run(event))); \(try say(.finished(report))) ;;")
    let events = Mutex<[RunEvent]>([])
    let got = try await supervisor.migrate(request) { event in
      events.withLock { $0.append(event) }
    }
    #expect(got.startedAt == 0 && got.durationMicroseconds == 1_000_000_000_000_000)
    #expect(got.bytes == 0 && got.entities.map(\.rowsBefore) == [0, 0])
    #expect(got.entities.compactMap(\.rowsAfter).reduce(0, +) == 1 << 51)
    #expect(events.withLock { $0.compactMap(\.progress?.done) } == [0])
    #expect(try state.history().reports == [got])
    try state.append(report)
    #expect(try state.history().reports == [got, got])
  }
}
