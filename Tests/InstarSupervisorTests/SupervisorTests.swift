import Foundation
import Glibc
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

  @Test("files without a phase, of processes that were killed, are removed at the next start")
  func leftovers() throws {
    let phases = state.path + "/phases/"
    for (name, text) in [("empty", ""), ("cut", #"{"run":"cut","sto"#)] {
      try Data(text.utf8).write(to: URL(filePath: phases + name + ".json"))
    }
    let lock = try #require(try state.tryLock(run: "alive"))
    _ = try supervisor("").storesWithOpenRuns()
    #expect(try phaseFiles() == ["alive.json"])
    state.unlock(run: "alive", lock)
    #expect(try phaseFiles() == [])
  }

  @Test("a run begins although another process takes its new file for a leftover")
  func lockedForAMoment() throws {
    let other = try StateFolder(path: state.path)
    let lock = try #require(try other.tryLock(run: run))
    Thread.detachNewThread {
      // A run that begins counts as this process's own right before it asks for the lock.
      while !state.ownRuns.withLock({ $0.contains(run) }) { usleep(1000) }
      usleep(20_000)
      other.unlock(run: run, lock)
    }
    let journal = try RunJournal.start(run: run, store: store, in: state)
    #expect(throws: InstarError.self) { try RunJournal.start(run: run, store: store, in: state) }
    #expect(state.ownRuns.withLock { $0 } == [run])
    journal.unlock()
  }

  @Test("the file of a run that this process is about to lock stays")
  func ownNewFile() throws {
    let file = try folder.write("", to: "state/phases/\(run).json", mode: 0o600)
    state.ownRuns.withLock { _ = $0.insert(run) }
    try state.removeLeftovers()
    #expect(access(file, F_OK) == 0)
  }

  @Test("the file of a run that ended while leftovers were listed is not made again")
  func endedWhileListed() throws {
    var before = stat()
    var after = stat()
    try #require(stat(state.path + "/phases", &before) == 0)
    // The kernel's clock for files advances every few milliseconds.
    usleep(50_000)
    state.removeLeftover(of: run)
    try #require(stat(state.path + "/phases", &after) == 0)
    #expect(before.st_mtim.tv_sec == after.st_mtim.tv_sec)
    #expect(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec)
  }

  @Test("a recovery gets the lock of its run while another process removes leftovers")
  func recoveryBesideRemoval() async throws {
    let other = try StateFolder(path: state.path)
    let records = (0..<200).map {
      PhaseRecord(run: "\(run)-\($0)", store: store, phase: .cloning, startedAt: 1000)
    }
    for record in records { try state.record(record) }
    async let removals: Void = Task.detached { for _ in 0..<200 { try other.removeLeftovers() } }
      .value
    for record in records {
      let report = try RunJournal.recover(record, in: state, recordedAs: StorePath(store)) {
        phase in
        RecoveryReport(run: phase.run, store: phase.store, outcome: .discarded)
      }
      #expect(report != nil)
    }
    try await removals
  }

  @Test(
    "root changes nothing outside a state folder whose owner makes links",
    .enabled(if: geteuid() == 0))
  func links() throws {
    let outside = folder.path("outside")
    #expect(mkdir(outside, 0o755) == 0)
    let files = try ["daemon.json": "{}", "empty.json": "", "ledger.jsonl": "x\n"].map {
      try folder.write($0.value, to: "outside/\($0.key)", mode: 0o644)
    }
    let path = folder.path("of-nobody")
    #expect(mkdir(path, 0o700) == 0 && chown(path, 65534, 65534) == 0)
    let held = try folder.write("a", to: "held.store")
    let state = try StateFolder(path: path)
    let hold = try state.hold(held, by: "anna", why: "auditing")
    for name in ["phases", "ledger", "holds"] {
      #expect(rename("\(path)/\(name)", "\(path)/\(name).old") == 0)
      #expect(symlink(outside, "\(path)/\(name)") == 0)
    }
    try state.removeLeftovers()
    for run in ["daemon", "empty", "new"] {
      #expect(throws: InstarError.self) { try state.tryLock(run: run) }
    }
    #expect(throws: InstarError.self) { try state.record(phase(.cloning)) }
    #expect(throws: InstarError.self) { try state.close(run: "daemon", isDurable: true) }
    #expect(throws: InstarError.self) {
      try state.append(RunReport(run: run, store: store, result: .failed, startedAt: 1))
    }
    #expect(throws: InstarError.self) { try state.release(hold) }
    #expect(throws: InstarError.self) { try state.hold(held, by: "anna", why: "auditing") }
    #expect(throws: InstarError.self) { try StateFolder(path: path) }
    var status = stat()
    for file in files { #expect(lstat(file, &status) == 0 && status.st_uid == 0) }
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: outside)) == [
        "daemon.json", "empty.json", "ledger.jsonl",
      ])
    #expect(try folder.text(of: "outside/ledger.jsonl") == "x\n")
  }

  @Test(
    "root makes no folder elsewhere where the owner has replaced the state folder by a link",
    .enabled(if: geteuid() == 0))
  func linkedStateFolder() throws {
    let outside = folder.path("outside")
    #expect(mkdir(outside, 0o755) == 0)
    let path = folder.path("of-nobody")
    #expect(symlink(outside, path) == 0 && lchown(path, 65534, 65534) == 0)
    let owner = DurableFile.Owner(uid: 65534, gid: 65534)
    let error = #expect(throws: InstarError.self) {
      try StateFolder.make("\(path)/holds", of: owner)
    }
    #expect(error?.code == .stateFolderFailed)
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == [])
    #expect(chown(outside, 65534, 65534) == 0)
    try StateFolder.make("\(path)/holds", of: owner)
    #expect(try FileManager.default.contentsOfDirectory(atPath: outside) == ["holds"])
  }

  @Test("a backup of holes has no more time than its blocks take, whatever its size")
  func sparseBackup() async throws {
    let backup = try folder.write("", to: "a.store.\(run).backup", mode: 0o600)
    #expect(truncate(backup, 1 << 43) == 0)
    let supervisor = try supervisor(
      "*) sleep 5; \(try say(.done)) ;;", probeLimit: .milliseconds(300))
    let reference = BackupReference(run: run, store: store, path: backup, manifest: nil)
    await #expect(throws: InstarError.self) { try await supervisor.handle(reference, .verify) }
  }

  @Test("a phase that a crash cut off was not entered: the one before counts, and more can follow")
  func cutOffPhase() throws {
    try state.record(phase(.cloning))
    let file = state.path + "/phases/\(run).json"
    let handle = try #require(FileHandle(forWritingAtPath: file))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(#"{"phase":"cutover","run":"#.utf8))
    try handle.close()
    #expect(try state.openPhases().records == [phase(.cloning)])
    #expect(try state.phase(of: run) == phase(.cloning))
    try state.record(phase(.cutover))
    #expect(try state.openPhases().records == [phase(.cutover)])
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

  // MARK: - Other verbs

  private func probe(
    _ stores: [String], with supervisor: Supervisor, endsAtDeath: Bool = false
  ) async throws -> [ProbeReport] {
    let reports = Mutex<[ProbeReport]>([])
    try await supervisor.probe(
      stores: stores, plans: [], rows: .none, endsAtDeath: endsAtDeath
    ) { report in
      reports.withLock { $0.append(report) }
    }
    return reports.withLock { $0 }
  }

  @Test("a keeper that dies over one store is replaced, and the others have their reports")
  func batch() async throws {
    let supervisor = try supervisor(
      """
      *'"stores":[]'*) \(try say(.done)) ;;
      *'"a","b","c"'*) \(try probed("a")); exit 9 ;;
      *'["c"]'*) \(try probed("c")); \(try say(.done)) ;;
      """)
    let seen = try await probe(["a", "b", "c"], with: supervisor)
    #expect(seen.map(\.store) == ["a", "b", "c"])
    #expect(seen.map(\.state) == [.current, .unknown, .current])
    #expect(seen[1].reason?.contains("exited with status 9") == true)
  }

  @Test(
    "a keeper that hangs over one store is ended, and the others have their reports if asked for",
    arguments: [false, true])
  func hangs(endsAtDeath: Bool) async throws {
    let supervisor = try supervisor(
      """
      *'"stores":[]'*) \(try say(.done)) ;;
      *'"a","b","c"'*) \(try probed("a")); trap '' TERM; listen ;;
      *'["c"]'*) \(try probed("c")); \(try say(.done)) ;;
      """, probeLimit: .seconds(3))
    let seen = try await probe(["a", "b", "c"], with: supervisor, endsAtDeath: endsAtDeath)
    #expect(seen.map(\.store) == (endsAtDeath ? ["a", "b"] : ["a", "b", "c"]))
    #expect(seen.map(\.state).prefix(3) == [.current, .unreadable, .current].prefix(seen.count))
    #expect(seen[1].error?.code == .unreadableStore)
    #expect(seen[1].reason?.contains("within 3 s") == true)
  }

  @Test("a keeper that has answered everything and does not end its batch is ended")
  func withheldEnd() async throws {
    let supervisor = try supervisor(
      "*'\"a\"'*) \(try probed("a")); trap '' TERM; listen ;;", probeLimit: .seconds(2))
    let reports = Mutex<[ProbeReport]>([])
    let result = await Task {
      try await supervisor.probe(stores: ["a"], plans: [], rows: .none) { report in
        reports.withLock { $0.append(report) }
      }
    }.result
    let error = try #require(throws: InstarError.self) { try result.get() }
    #expect(error.cause.contains("within 2 s") && error.state == "unchanged")
    #expect(reports.withLock { $0.map(\.store) } == ["a"])
  }

  @Test("a reply about another store is not believed")
  func otherSubject() async throws {
    var other = RunReport(run: run, store: "/home/other/b.store", result: .migrated, startedAt: 1)
    other.backup = "/home/other/backup"
    let supervisor = try supervisor(
      """
      *'"probe"'*) \(try say(.probed(EncodedProbeReport(ProbeReport(store: "b", state: .current))))) ;;
      *'"migrate"'*) \(try say(.finished(other))) ;;
      """)
    let reports = Mutex<[ProbeReport]>([])
    do {
      try await supervisor.probe(stores: ["a", "b"], plans: [], rows: .none) { report in
        reports.withLock { $0.append(report) }
      }
      Issue.record("it was believed")
    } catch {
      #expect(error.code == .protocolViolation)
    }
    #expect(reports.withLock { $0.isEmpty })

    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.store == store && report.result == .failed)
    #expect(report.error?.code == .protocolViolation && report.backup == nil)
  }

  @Test("each of many stores that kill their keeper has a report of its own")
  func deadlyStores() async throws {
    let supervisor = try supervisor("*'\"stores\":[]'*) \(try say(.done)) ;; *) exit 9 ;;")
    let stores = (1...5).map { "store \($0)" }
    let reports = try await probe(stores, with: supervisor)
    #expect(reports.map(\.store) == stores)
  }

  @Test("a keeper that never works is an error, not a report for each of many stores")
  func broken() async throws {
    let supervisor = try supervisor("*) exit 9 ;;")
    let result = await Task {
      try await supervisor.probe(
        // As many as one keeper probes.
        stores: (0..<99).map(String.init), plans: [], rows: .none
      ) { _ in }
    }.result
    #expect(throws: InstarError.self) { try result.get() }
    #expect(try log().count == 2)
  }

  @Test("plugins are described in order, with an error for the one that fails")
  func describe() async throws {
    let failure = InstarError(.notAPlugin, "cannot use 'b.so' as a plugin", cause: "it is text")
    let supervisor = try supervisor(
      "*) \(try say(.described(PluginManifest(plans: [])))); \(try say(.failed(failure))) ;;"
    )
    let descriptions = try await supervisor.describe(plugins: ["a.so", "b.so"])
    #expect(descriptions.map(\.plugin) == ["a.so", "b.so"])
    #expect(try descriptions[0].result.get() == PluginManifest(plans: []))
    #expect(throws: failure) { try descriptions[1].result.get() }
  }

  @Test("one keeper answers one request after the other")
  func reuse() async throws {
    let supervisor = try supervisor(
      "*) \(try say(.described(PluginManifest(plans: [])))) ;;")
    for _ in 0..<3 { _ = try await supervisor.describe(plugins: ["a.so"]) }
    #expect(try log().filter { $0 != "ended" }.count == 1)
  }

  @Test("a keeper that is missing is an error with its path")
  func missing() async throws {
    let supervisor = try supervisor("*) ;;")
    #expect(unlink(supervisor.installation.keeper) == 0)
    let result = await Task { try await supervisor.migrate(request) { _ in } }.result
    let error = try instarError { _ = try result.get() }
    #expect(error.code == .incompleteInstallation)
    #expect(error.what.contains(supervisor.installation.keeper))
    #expect(try phaseFiles() == [])
  }

  // MARK: - The state folder

  @Test("the state folder is its owner's only")
  func mode() throws {
    for name in ["", "/phases", "/ledger"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: state.path + name)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
    #expect(chmod(state.path, 0o777) == 0)
    #expect(try instarError { _ = try StateFolder(path: state.path) }.code == .stateFolderFailed)
  }

  @Test("an unreadable phase record is reported with its file and left in place")
  func unreadable() throws {
    try state.record(phase(.cloning))
    try folder.write("{\"run\":\n", to: "state/phases/cut.json")
    let (records, unreadable) = try state.openPhases()
    #expect(records == [phase(.cloning)])
    let error = try #require(unreadable.first)
    #expect(unreadable.count == 1)
    let file = "\(state.path)/phases/cut.json"
    #expect(error.code == .stateFolderFailed)
    #expect(error.what == "cannot read the phase record '\(file)'")
    #expect(error.cause.hasPrefix("not a phase record: {"))
    #expect(error.next?.hasPrefix("to see the path of the store, run: cat '\(file)'; ") == true)
    #expect(error.next?.hasSuffix("run: mv '\(file)' '\(file).old'") == true)
  }

  @Test("a file that a loss of power left with the phase of another run has none, and is removed")
  func phaseOfAnotherRun() throws {
    try state.record(phase(.cloning))
    #expect(
      try OwnedFile(of: "\(state.path)/phases/\(run).json", owner: nil).rename(to: "next.json"))
    let (records, unreadable) = try state.openPhases()
    #expect(records == [] && unreadable.isEmpty)
    #expect(try state.phase(of: "next") == nil)
    #expect(try state.phase(of: run) == nil)
    try state.removeLeftovers()
    #expect(try phaseFiles() == [])
  }

  @Test("the file of a run that has ended serves the next run while others are open")
  func reusedFile() throws {
    func identity(_ run: String) throws -> UInt64 {
      var status = stat()
      try #require(stat("\(state.path)/phases/\(run).json", &status) == 0)
      return UInt64(status.st_ino)
    }
    func phase(_ run: String) -> PhaseRecord {
      PhaseRecord(run: run, store: store, phase: .cloning, startedAt: 1000)
    }
    func end(_ journal: RunJournal, _ run: String) throws {
      try journal.finish(
        RunReport(run: run, store: store, result: .migrated, startedAt: 1000),
        recordedAs: StorePath(store))
      journal.unlock()
    }
    let other = try RunJournal.start(run: "other", store: store, in: state)
    let first = try RunJournal.start(run: "first", store: store, in: state)
    try first.enter(phase("first"))
    let file = try identity("first")
    try end(first, "first")
    #expect(try phaseFiles() == ["first.json", "other.json"])
    // Nobody takes it for a leftover.
    try StateFolder(path: state.path).removeLeftovers()
    #expect(try phaseFiles() == ["first.json", "other.json"])

    let second = try RunJournal.start(run: "second", store: store, in: state)
    #expect(try identity("second") == file)
    #expect(try StateFolder(path: state.path).tryLock(run: "second") == nil)
    #expect(try state.openPhases().records == [])
    try second.enter(phase("second"))
    #expect(try state.openPhases().records == [phase("second")])

    // A run in another process has the name that the next one wants.
    let foreign = try StateFolder(path: state.path)
    let lock = try #require(try foreign.tryLock(run: "third"))
    try end(second, "second")
    #expect(throws: InstarError.self) {
      try RunJournal.start(run: "third", store: store, in: state)
    }
    #expect(try phaseFiles() == ["other.json", "third.json"])
    foreign.unlock(run: "third", lock)
    other.unlock()
    #expect(try phaseFiles() == [])
  }

  @Test("a file with the start of a phase serves no other run")
  func cutOffFile() throws {
    let other = try RunJournal.start(run: "other", store: store, in: state)
    let cut = try RunJournal.start(run: "cut", store: store, in: state)
    try folder.write(#"{"run":"cut","sto"#, to: "state/phases/cut.json", mode: 0o600)
    cut.unlock()
    #expect(try phaseFiles() == ["other.json"])
    other.unlock()
  }

  @Test("a record with another name is removed, and the file of that name keeps its content")
  func linkedRecord() throws {
    let other = try RunJournal.start(run: "other", store: store, in: state)
    let journal = try RunJournal.start(run: run, store: store, in: state)
    try journal.enter(phase(.cloning))
    let file = "\(state.path)/phases/\(run).json"
    let link = folder.path("link")
    #expect(Glibc.link(file, link) == 0)
    let content = try Data(contentsOf: URL(filePath: link))
    try journal.finish(
      RunReport(run: run, store: store, result: .migrated, startedAt: 1000),
      recordedAs: StorePath(store))
    journal.unlock()
    #expect(try phaseFiles() == ["other.json"])
    #expect(try Data(contentsOf: URL(filePath: link)) == content)
    other.unlock()
  }

  @Test("a file that was replaced while it was unused serves no run")
  func replacedFile() throws {
    let other = try RunJournal.start(run: "other", store: store, in: state)
    try RunJournal.start(run: "first", store: store, in: state).unlock()
    let file = "\(state.path)/phases/first.json"
    #expect(unlink(file) == 0)
    try folder.write("", to: "state/phases/first.json", mode: 0o600)
    let next = try RunJournal.start(run: "next", store: store, in: state)
    #expect(try StateFolder(path: state.path).tryLock(run: "next") == nil)
    next.unlock()
    other.unlock()
    #expect(try phaseFiles() == [])
  }

  @Test("a run's name cannot lead out of the state folder")
  func runName() throws {
    for name in ["../escape", "", ".hidden", "a/b", "a b", String(repeating: "a", count: 101)] {
      let record = PhaseRecord(run: name, store: store, phase: .cloning, startedAt: 0)
      #expect(try instarError { try state.record(record) }.code == .protocolViolation)
    }
  }

  @Test("the history of a store is in the order of its runs, without lines that a crash cut off")
  func history() throws {
    let reports = ["a", "b", "a"].enumerated().map { index, store in
      RunReport(run: "\(index)", store: store, result: .migrated, startedAt: Double(index))
    }
    try state.append(reports[0])
    let handle = try #require(FileHandle(forWritingAtPath: state.path + "/ledger/ledger.jsonl"))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(#"{"run":"cut"#.utf8))
    try handle.close()
    try state.append(reports[1])
    try state.append(reports[2])
    let all = try state.history()
    #expect(all.reports == reports)
    #expect(all.unreadableLines == 1)
    #expect(try state.history(store: "a").reports == [reports[0], reports[2]])
  }

  @Test(
    "a run whose supervisor died between the ledger and its phase record is in the ledger once",
    arguments: [true, false])
  func recoveredTwice(hasWholeLine: Bool) async throws {
    var first = RunReport(run: run, store: store, result: .migrated, startedAt: 1000)
    first.notes = [#"names "run":"other", which is text"#]
    try state.append(first)
    try state.append(RunReport(run: "other", store: store, result: .failed, startedAt: 1001))
    if !hasWholeLine {
      let ledger = URL(fileURLWithPath: state.path + "/ledger/ledger.jsonl")
      let lines = try String(contentsOf: ledger, encoding: .utf8).split(separator: "\n")
      try Data("\(lines[0].dropLast(9))\n\(lines[1])\n".utf8).write(to: ledger)
    }
    try state.record(phase(.cutover))
    let supervisor = try supervisor(
      """
      *'"isInLedger":true'*) log "removes files"; \(try recovered(.discarded)) ;;
      *'"recover"'*) \(try recovered(.finished)) ;;
      """)
    let recovered = Mutex(0)
    try await supervisor.recover(store: store) { report in
      #expect(report.outcome == .finished)
      recovered.withLock { $0 += 1 }
    }
    // Others may have changed the store since the run ended: then a keeper only removes files of the run.
    #expect(recovered.withLock { $0 } == (hasWholeLine ? 0 : 1))
    #expect(try log().contains("removes files") == hasWholeLine)
    #expect(try state.openPhases().records == [])
    let runs = try state.history().reports.map(\.run)
    #expect(runs == (hasWholeLine ? [run, "other"] : ["other", run]))
  }

  @Test(
    "the record of a run that is in the ledger is removed where the folder of its store is gone")
  func folderGone() async throws {
    try state.append(RunReport(run: run, store: store, result: .migrated, startedAt: 1000))
    try state.record(phase(.cutover))
    let gone = InstarError(.missingStore, "cannot recover", store: store, cause: "it is gone")
    let supervisor = try supervisor("*'\"recover\"'*) \(try say(.failed(gone))) ;;")
    try await supervisor.recover(store: store) { Issue.record("\($0)") }
    #expect(try state.openPhases().records == [])
  }

  @Test("files of a run in the ledger that cannot be removed are told, and do not keep its record")
  func leftoversOfEndedRun() async throws {
    try state.append(RunReport(run: run, store: store, result: .migrated, startedAt: 1000))
    try state.record(phase(.cutover))
    var answer = RecoveryReport(run: run, store: store, outcome: .discarded)
    answer.leftovers = ["/srv/app/.instar/run-1"]
    let supervisor = try supervisor("*'\"recover\"'*) \(try say(.recovered(answer))) ;;")
    let told = Mutex<[String?]>([])
    try await supervisor.recover(store: store) { report in
      told.withLock { $0.append(report.leftoversInWords) }
    }
    #expect(
      told.withLock(\.self) == [
        "could not remove all files of run \(run) of '\(store)', which has ended; "
          + "run: rm -r '/srv/app/.instar/run-1'"
      ])
    #expect(try state.openPhases().records == [])
  }

  @Test("neither a keeper nor a record on disk can claim that a run is in the ledger")
  func claimedEnd() async throws {
    var claiming = phase(.cloning)
    claiming.isInLedger = true
    claiming.hasNoBackup = true
    let first = try supervisor(
      """
      *'"migrate"'*) \(try say(.ask(claiming))); listen; kill -KILL $$ ;;
      *'"recover"'*) log "$request"; exit 3 ;;
      """)
    _ = try await first.migrate(request) { _ in }
    #expect(try state.openPhases().records == [phase(.cloning)])
    try state.record(claiming)
    let next = try supervisor("*'\"recover\"'*) log \"$request\"; \(try recovered(.discarded)) ;;")
    try await next.recover(store: store) { _ in }
    let requests = try log().filter { $0.contains("recover") }
    #expect(requests.count == 2)
    #expect(!requests.contains { $0.contains("isInLedger") || $0.contains("hasNoBackup") })
    #expect(try state.history().reports.map(\.run) == [run])
  }

  @Test(
    "the backup of a run in the ledger is removed only where the ledger proves that there was none",
    arguments: [
      (Phase.cloning, RunReport.Result.failed, false, false), (.cutover, .failed, false, false),
      (.cloning, .migrated, false, false), (.cloning, .failed, true, false),
      (.cloning, .failed, false, true),
    ])
  func backupOfEndedRun(
    phase: Phase, result: RunReport.Result, hasBackup: Bool, isRestored: Bool
  ) async throws {
    var report = RunReport(run: run, store: store, result: result, startedAt: 1000)
    try state.append(report)
    if hasBackup {
      // A second line, as of a recovery that could not end its journal.
      report.backup = "/srv/app/.instar/backup"
      try state.append(report)
    }
    if isRestored {
      var restore = RunReport(run: "other", store: store, result: .restored, startedAt: 1001)
      restore.restoredRun = run
      try state.append(restore)
    }
    let isProven = phase == .cloning && result == .failed && !hasBackup && !isRestored
    try state.record(self.phase(phase))
    let supervisor = try supervisor(
      "*'\"recover\"'*) log \"$request\"; \(try recovered(.discarded)) ;;")
    try await supervisor.recover(store: store) { Issue.record("\($0)") }
    let request = try #require(try log().first { $0.contains("recover") })
    #expect(request.contains(#""isInLedger":true"#))
    #expect(request.contains(#""hasNoBackup":true"#) == isProven)
  }

  @Test(
    "a deleted backup that is back is not forgotten, and not removed", arguments: [false, true],
    [false, true])
  func returnedBackup(isBackBefore: Bool, all: Bool) async throws {
    let (instar, away) = (folder.path(".instar"), folder.path("away"))
    try FileManager.default.createDirectory(atPath: away, withIntermediateDirectories: false)
    try folder.write("b", to: "away/backup")
    try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: false)
    var report = RunReport(run: run, store: store, result: .migrated, startedAt: 1000)
    report.backup = instar + "/backup"
    try state.append(report)
    let listed = try state.backups()
    #expect(listed.map(\.isDeleted) == [true])
    if isBackBefore {
      try FileManager.default.removeItem(atPath: instar)
      try FileManager.default.moveItem(atPath: away, toPath: instar)
    }
    // The disk may also be mounted while the keeper works.
    let supervisor = try supervisor(
      "*'\"removeRemains\"'*) rmdir '\(instar)'; mv '\(away)' '\(instar)'; \(try say(.done)) ;;")
    try await supervisor.forgetDeleted(listed, orMissing: all, isDryRun: false) {
      Issue.record("\($0)")
    }
    #expect(try state.removedBackups().isEmpty)
    #expect(try state.backups().map(\.isMissing) == [false])
  }

  @Test("reading the history creates nothing, and says where the ledger cannot be read")
  func historyWithoutFolder() throws {
    let missing = folder.path("missing")
    #expect(try StateFolder(reading: missing).history().reports.isEmpty)
    #expect(access(missing, F_OK) != 0)
    let file = try folder.write("", to: "file")
    let error = try instarError { _ = try StateFolder(reading: file).history() }
    #expect(error.code == .stateFolderFailed)
    #expect(error.cause == "'\(file)' is not a folder")
  }

  @Test("one daemon has the state folder")
  func daemonLock() throws {
    let lock = try #require(try state.tryLock())
    #expect(try StateFolder(path: state.path).tryLock() == nil)
    lock.release()
    #expect(try state.tryLock() != nil)
  }
}
