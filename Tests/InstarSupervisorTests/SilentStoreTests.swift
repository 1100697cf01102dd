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
  .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"), .timeLimit(.minutes(1)))
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
    "is not given to a keeper, and the others of its batch are probed if asked for",
    arguments: [false, true])
  func batch(endsAtDeath: Bool) async throws {
    let done = try part.say(.done)
    let supervisor = try part.supervisor(
      """
      *'\(good[1])'*) \(try probed(good)); \(done) ;;
      *'\(good[0])'*) \(try probed([good[0]])); \(done) ;;
      """, probeLimit: .seconds(1), rights: .storeOwner)
    let states = try await probe(
      [good[0], silent, good[1]], with: supervisor, endsAtDeath: endsAtDeath)
    let left = endsAtDeath ? [] : [good[1]]
    var expected: [String: StoreState] = [good[0]: .current, silent: .unreadable]
    for store in left { expected[store] = .current }
    #expect(states == expected)
  }

  @Test("that dies after its keeper's answer keeps no other waiting")
  func answered() async throws {
    let held = try part.folder.write("x", to: "good/held.store")
    try part.state.hold(held, by: "anna", why: "auditing")
    let done = try part.say(.done)
    let supervisor = try part.supervisor(
      """
      *'"stores":[]'*) \(done) ;;
      *'\(silent)'*) \(try probed([silent, good[0]])); \(done) ;;
      *) \(try probed([good[0]])); \(done) ;;
      """, probeLimit: .seconds(1))
    let states = try await probe([silent, good[0]], with: supervisor)
    #expect(states == [silent: .unreadable, good[0]: .current])
  }

  @Test("and has an open run keeps no run and no backup of another store waiting")
  func openRun() async throws {
    defer { fileSystem.end() }
    // The kernel answers about the mounted folder itself.
    let open = part.folder.path("silent/stores/a.store")
    var record = PhaseRecord(run: "R1", store: open, phase: .cloning, startedAt: 1)
    record.keptStore = open
    try part.state.record(record)
    var backups: [ListedBackup] = []
    for run in ["R2", "R3"] {
      let backup = try part.folder.write("x", to: "a.store.\(run).backup")
      var report = RunReport(run: run, store: good[0], result: .migrated, startedAt: 1)
      report.backup = backup
      backups.append(try #require(ListedBackup(report)))
    }
    let supervisor = try part.supervisor("*) \(try part.say(.done)) ;;")
    try await supervisor.recover(store: good[0]) { Issue.record("\($0) was recovered") }
    var removed: [String] = []
    try await supervisor.prune(backups, keeping: BackupRetention(count: 1), now: 2) {
      if case .removed = $0.outcome { removed.append($0.backup.run) }
    }
    #expect(removed == ["R2"])
  }

  @Test("that dies during its run ends the run when its keeper has ended, and leaves it open")
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
      """, probeLimit: .seconds(1), rights: .storeOwner)
    async let run = supervisor.migrate(
      MigrationRequest(run: "R1", store: silent, plans: [])
    ) { _ in }
    try await part.waitFor(log: "asked")
    let dead = try SilentFileSystem(at: part.folder.path("silent"))
    defer { dead.end() }
    try part.folder.write("", to: "dead")
    let report = try await run
    #expect(report.result == .failed && report.error?.code == .timeLimit)
    #expect(report.error?.cause.contains("its file system did not answer within 1 s") == true)
    #expect(report.error?.state?.contains("unchanged") == true)
    #expect(try part.state.openPhases().records.map(\.run) == ["R1"])
  }

  @Test("of a run has its path in the ledger on disk, so that nobody asks for it")
  func recordedPath() async throws {
    fileSystem.end()
    let link = part.folder.path("link")
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: part.folder.path("good"))
    let store = link + "/a.store"
    let supervisor = try part.supervisor(
      """
      *'"migrate"'*)
        \(try part.say(.ask(PhaseRecord(run: "R1", store: store, phase: .cloning, startedAt: 1))))
        listen; exit 1 ;;
      *) exit 1 ;;
      """)
    _ = try await supervisor.migrate(
      MigrationRequest(run: "R1", store: store, plans: ["/p.so"])
    ) { _ in }
    #expect(try part.state.openPhases().records.map(\.keptStore) == [good[0]])
  }
}
