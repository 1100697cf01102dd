import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

@Suite(
  "A store whose file system does not answer",
  .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"), .timeLimit(.minutes(3)))
struct SilentStoreTests {
  private let part: SupervisorTests
  private let fileSystem: SilentFileSystem
  private let silent: String
  private let good: [String]

  init() throws {
    part = try SupervisorTests()
    let folder = part.folder
    for name in ["silent", "good"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
    silent = folder.path("silent/a.store")
    good = try ["good/a.store", "good/b.store"].map { try folder.write("x", to: $0) }
    fileSystem = try SilentFileSystem(at: folder.path("silent"))
  }

  /// What the part says about stores that it is asked to probe.
  private func probed(_ stores: [String]) throws -> String {
    let reports = stores.map { ProbeReport(store: $0, format: .plain, state: .current) }
    return try reports.map { try part.say(.probed(EncodedProbeReport($0))) }
      .joined(separator: "; ")
  }

  private func probe(
    _ stores: [String], with supervisor: Supervisor, endsAtDeath: Bool = false
  ) async throws -> [String: StoreState] {
    defer { fileSystem.end() }
    let states = Mutex<[String: StoreState]>([:])
    try await supervisor.probe(
      stores: stores, plans: [], rows: .none, endsAtDeath: endsAtDeath
    ) { report in states.withLock { $0[report.store] = report.state } }
    return states.withLock(\.self)
  }

  @Test(
    "a silent store is not given to a keeper, and the others of its batch are probed if asked for",
    arguments: [false, true])
  func batch(endsAtDeath: Bool) async throws {
    let done = try part.say(.done)
    let supervisor = try part.supervisor(
      """
      *'\(good[1])'*) \(try probed(good)); \(done) ;;
      *'\(good[0])'*) \(try probed([good[0]])); \(done) ;;
      """, probeLimit: .seconds(4), rights: .storeOwner)
    let states = try await probe(
      [good[0], silent, good[1]], with: supervisor, endsAtDeath: endsAtDeath)
    let left = endsAtDeath ? [] : [good[1]]
    var expected: [String: StoreState] = [good[0]: .current, silent: .unreadable]
    for store in left { expected[store] = .current }
    #expect(states == expected)
  }

  @Test("a silent file system is asked once for all its stores")
  func manySilent() async throws {
    let done = try part.say(.done)
    let supervisor = try part.supervisor(
      "*) \(try probed([good[0]])); \(done) ;;", probeLimit: .seconds(4), rights: .storeOwner)
    // Asked about one by one, these would exceed the time limit of the tests.
    let stores = (1...200).map { part.folder.path("silent/\($0).store") }
    let states = try await probe(stores + good.prefix(1), with: supervisor)
    #expect(states[good[0]] == .current)
    #expect(stores.allSatisfy { states[$0] == .unreadable })
  }

  @Test(
    "a silent store is given to no keeper, also of a user who is not root, where it gave no answer before"
  )
  func knownToCaller() async throws {
    let keeper = try part.supervisor(
      "*'\(silent)'*) exit 1 ;; *) \(try probed([good[0]])); \(try part.say(.done)) ;;")
    let reader = FileReader(patience: .seconds(1))
    #expect(reader.answers(about: [silent]) { access($0, F_OK) } == [])
    let supervisor = Supervisor(
      installation: keeper.installation, stateFolder: part.state, rights: .caller, reader: reader)
    let states = try await probe([silent, good[0]], with: supervisor)
    #expect(states == [silent: .unreadable, good[0]: .current])
    #expect(supervisor.lostKeepers == 0)
  }

  @Test("a store whose file system dies after its keeper's answer keeps no other store waiting")
  func answered() async throws {
    let held = try part.folder.write("x", to: "good/held.store")
    try part.state.hold(held, by: "anna", why: "auditing")
    let done = try part.say(.done)
    let supervisor = try part.supervisor(
      """
      *'"stores":[]'*) \(done) ;;
      *'\(silent)'*) \(try probed([silent, good[0]])); \(done) ;;
      *) \(try probed([good[0]])); \(done) ;;
      """, probeLimit: .seconds(4))
    let states = try await probe([silent, good[0]], with: supervisor)
    #expect(states == [silent: .unreadable, good[0]: .current])
  }

  @Test(
    "a silent store with an open run keeps no run and no backup of another store waiting",
    arguments: [true, false])
  func openRun(isRecorded: Bool) async throws {
    defer { fileSystem.end() }
    // The kernel answers about the mounted folder itself.
    let open = part.folder.path("silent/stores/a.store")
    var record = PhaseRecord(run: "R1", store: open, phase: .cloning, startedAt: 1)
    if isRecorded { record.keptStore = open }
    try part.state.record(record)
    var backups: [ListedBackup] = []
    for run in ["R2", "R3"] {
      let backup = try part.folder.write("x", to: "a.store.\(run).backup")
      var report = RunReport(run: run, store: good[0], result: .migrated, startedAt: 1)
      report.backup = backup
      backups.append(try #require(ListedBackup(report)))
    }
    let supervisor = try part.supervisor(
      "*) \(try part.say(.done)) ;;", probeLimit: .seconds(4))
    try await supervisor.recover(store: good[0]) { Issue.record("\($0) was recovered") }
    #expect(try part.state.openPhases().records.map(\.run) == ["R1"])
    var removed: [String] = []
    try await supervisor.prune(backups, keeping: BackupRetention(count: 1), now: 2) {
      if case .removed = $0.outcome { removed.append($0.backup.run) }
    }
    #expect(removed == ["R2"])
  }

  @Test(
    "a silent store with many open runs is asked once for them, also by the next run of another store"
  )
  func manyOpenRuns() async throws {
    defer { fileSystem.end() }
    // Asked about one by one, these would exceed the time limit of the tests.
    for number in 1...200 {
      let store = part.folder.path("silent/\(number)/a.store")
      var record = PhaseRecord(run: "R\(number)", store: store, phase: .cloning, startedAt: 1)
      record.keptStore = store
      try part.state.record(record)
    }
    let supervisor = try part.supervisor("*) exit 1 ;;", probeLimit: .seconds(4))
    for _ in 1...2 {
      try await supervisor.recover(store: good[0]) { Issue.record("\($0) was recovered") }
    }
    #expect(try part.state.openPhases().records.count == 200)
  }

  @Test("a silent store keeps the spelling of its path, and other paths are resolved")
  func spelling() throws {
    defer { fileSystem.end() }
    try FileManager.default.createSymbolicLink(
      atPath: part.folder.path("link"), withDestinationPath: "good")
    let stores = (1...200).map { part.folder.path("silent/\($0)/../a.store") }
    let links = ["a", "b"].map { part.folder.path("link/\($0).store") }
    let reader = FileReader(patience: .seconds(1))
    let all = StorePath.all([links[0]] + stores + [links[1]], by: reader)
    #expect(all.map(\.text) == [good[0]] + stores + [good[1]])
  }

  @Test(
    "a store whose file system dies during its run ends the run when its keeper has ended, and leaves it open"
  )
  func duringRun() async throws {
    fileSystem.end()
    try part.folder.write("x", to: "silent/a.store")
    let asked = PhaseRecord(run: "R1", store: silent, phase: .cloning, startedAt: 1)
    let supervisor = try part.supervisor(
      """
      *'"migrate"'*)
        \(try part.say(.ask(asked)))
        listen; log asked
        while [ ! -e '\(part.folder.path("dead"))' ]; do sleep 0.01; done
        exit 1 ;;
      """, probeLimit: .seconds(4), rights: .storeOwner)
    async let run = supervisor.migrate(
      MigrationRequest(run: "R1", store: silent, plans: [])
    ) { _ in }
    try await part.waitFor(log: "asked")
    let dead = try SilentFileSystem(at: part.folder.path("silent"))
    defer { dead.end() }
    try part.folder.write("", to: "dead")
    let report = try await run
    #expect(report.result == .failed && report.error?.code == .unreadableStore)
    #expect(report.error?.what == "cannot read '\(silent)'")
    #expect(
      report.error?.cause.hasPrefix(
        "its file system did not answer within 2 s; the run itself failed: the keeper ") == true)
    #expect(
      report.error?.state
        == "unchanged; the folder '.instar' beside it still holds files of the run")
    #expect(
      report.error?.next
        == "check that the disk or file server of the store responds; then, to recover the run, "
        + "start instard or run: instarctl migrate --plugin FILE.so '\(silent)' "
        + "--state-dir '\(part.state.path)'")
    #expect(try part.state.openPhases().records.map(\.run) == ["R1"])
  }

  @Test("a silent store is given no run")
  func noRun() async throws {
    defer { fileSystem.end() }
    let supervisor = try part.supervisor("*) exit 1 ;;", probeLimit: .seconds(4))
    // The kernel answers about the mounted folder itself.
    let store = part.folder.path("silent/stores/a.store")
    let error = await #expect(throws: InstarError.self) {
      _ = try await supervisor.migrate(MigrationRequest(run: "R1", store: store, plans: [])) { _ in
      }
    }
    #expect(error?.code == .unreadableStore && error?.state == "unchanged")
    #expect(try part.state.openPhases().records == [])
  }

  @Test(
    "a run does not enter a phase before which the file system of its store died, where another store is held"
  )
  func heldPhase() async throws {
    fileSystem.end()
    try part.folder.write("x", to: "silent/a.store")
    try part.state.hold(good[0], by: "anna", why: "auditing")
    let asked = PhaseRecord(run: "R1", store: silent, phase: .cloning, startedAt: 1)
    let refused = RunReport(run: "R1", store: silent, result: .failed, startedAt: 1)
    let started = RunEvent(run: "R1", store: silent, step: .started)
    let supervisor = try part.supervisor(
      """
      *'"migrate"'*)
        \(try part.say(.run(started)))
        while [ ! -e '\(part.folder.path("dead"))' ]; do sleep 0.01; done
        \(try part.say(.ask(asked)))
        listen; log "$request"
        \(try part.say(.finished(refused))) ;;
      """, probeLimit: .seconds(4))
    let (hasStarted, start) = AsyncStream.makeStream(of: Void.self)
    async let run = supervisor.migrate(
      MigrationRequest(run: "R1", store: silent, plans: [])
    ) { _ in start.finish() }
    for await _ in hasStarted {}
    let dead = try SilentFileSystem(at: part.folder.path("silent"))
    defer { dead.end() }
    try part.folder.write("", to: "dead")
    let report = try await run
    #expect(report.error?.code == .unreadableStore && report.error?.state == "unchanged")
    #expect(try part.log().contains { $0.contains("refrain") })
    #expect(try part.state.openPhases().records == [])
  }

  @Test("a silent store is not asked for the advice on another store that is damaged")
  func advice() async throws {
    defer { fileSystem.end() }
    let damaged = InstarError(
      .corruptStore, "cannot verify the store", store: good[0], cause: "a page is damaged",
      next: CommandText.restoring(good[0]))
    let reports = [
      VerificationReport(store: silent, unverified: Supervisor.overdue(.seconds(4))),
      VerificationReport(store: good[0], unverified: damaged),
    ]
    let supervisor = try part.supervisor(
      "*) \(try reports.map { try part.say(.verified($0)) }.joined(separator: "; ")); "
        + "\(try part.say(.done)) ;;", probeLimit: .seconds(4))
    let advice = Mutex<[String?]>([])
    try await supervisor.verify(
      stores: [silent, good[0]], plans: [], busyTimeout: .seconds(1)
    ) { report in advice.withLock { $0.append(report.errors.first?.next) } }
    #expect(advice.withLock { $0.last } == CommandText.restoringOwnBackup)
  }

  @Test("a silent store has no schema that could be shown")
  func schema() async throws {
    defer { fileSystem.end() }
    let supervisor = try part.supervisor(
      "*) exit 1 ;;", probeLimit: .seconds(4), rights: .storeOwner)
    let error = await #expect(throws: InstarError.self) {
      _ = try await supervisor.schema(of: silent)
    }
    #expect(error?.code == .timeLimit && error?.store == silent)
  }

  @Test("a silent store keeps its runs in the ledger when old files are removed")
  func ledger() throws {
    defer { fileSystem.end() }
    part.state.setLedgerSize(1)
    // Asked about one by one, the silent ones would exceed the time limit of the tests.
    for number in 1...200 {
      let isGood = [2, 3].contains(number)
      let store = isGood ? good[0] : part.folder.path("silent/\(number)/a.store")
      var report = RunReport(run: "R\(number)", store: store, result: .migrated, startedAt: 1)
      report.backup = store + ".backup"
      // The folder for copies is silent too.
      if number == 3 { report.backupCopy = silent + ".R3.backup" }
      try part.state.append(report, recordedAs: StorePath(inLedger: store))
    }
    // Of a removed backup only the copy is asked about.
    let removed = BackupReference(
      run: "R3", store: good[0], path: good[0] + ".backup", manifest: nil)
    try part.state.noteRemoval(of: removed, why: "a test")
    // A copy of the same run of another store: whether it is the store of R1 is asked too.
    let other = BackupReference(run: "R1", store: good[1], path: good[1] + ".backup", manifest: nil)
    try part.state.noteCopy(
      BackupCopy(path: good[1] + ".copy", bytes: 1, contentHash: ""), of: other)
    #expect(try part.state.removeOldRuns(keeping: 0, patience: .seconds(1)) == 1)
    #expect(
      try part.state.history().reports.map(\.run)
        == (1...200).filter { $0 != 2 }.map { "R\($0)" })
  }

  @Test("the silent store of a run has its path in the ledger on disk, so that nobody asks for it")
  func recordedPath() async throws {
    fileSystem.end()
    let link = part.folder.path("link")
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: part.folder.path("good"))
    let store = link + "/a.store"
    var asked = PhaseRecord(run: "R1", store: store, phase: .cloning, startedAt: 1)
    // A keeper that the store has taken over must not choose it.
    asked.keptStore = "/other"
    let supervisor = try part.supervisor(
      """
      *'"migrate"'*)
        \(try part.say(.ask(asked)))
        listen; exit 1 ;;
      *) exit 1 ;;
      """)
    _ = try await supervisor.migrate(
      MigrationRequest(run: "R1", store: store, plans: ["/p.so"])
    ) { _ in }
    #expect(try part.state.openPhases().records.map(\.keptStore) == [good[0]])
  }
}
