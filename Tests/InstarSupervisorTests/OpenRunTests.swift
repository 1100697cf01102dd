import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

@Suite("An open run whose store has another path by now")
struct OpenRunTests {
  private let part: SupervisorTests
  private let store: String

  /// The folder of the store is moved after the run began, and a link at its old path points to it.
  init() throws {
    part = try SupervisorTests()
    let folder = part.folder
    try FileManager.default.createDirectory(
      atPath: folder.path("new"), withIntermediateDirectories: false)
    store = try folder.write("x", to: "new/a.store")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("old"), withDestinationPath: folder.path("new"))
  }

  private func record(isRecorded: Bool, _ phase: Phase = .cloning) throws -> PhaseRecord {
    let path = part.folder.path("old/a.store")
    var record = PhaseRecord(run: "R1", store: path, phase: phase, startedAt: 1)
    if isRecorded { record.keptStore = path }
    try part.state.record(record)
    return record
  }

  @Test("an open run is recovered before the store is migrated again", arguments: [true, false])
  func recovery(isRecorded: Bool) async throws {
    let record = try record(isRecorded: isRecorded)
    let answer = RecoveryReport(run: record.run, store: record.store, outcome: .discarded)
    let supervisor = try part.supervisor("*'\"recover\"'*) \(try part.say(.recovered(answer))) ;;")
    let recovered = Mutex<[String]>([])
    try await supervisor.recover(store: store) { report in
      recovered.withLock { $0.append(report.run) }
    }
    #expect(recovered.withLock(\.self) == ["R1"])
    #expect(try part.state.openPhases().records == [])
  }

  @Test(
    "an open run stays open where the call was canceled before, and the error says what its store may be",
    arguments: Phase.allCases)
  func canceled(phase: Phase) async throws {
    _ = try record(isRecorded: true, phase)
    let supervisor = try part.supervisor("*) exit 1 ;;")
    supervisor.cancel()
    let error = await #expect(throws: InstarError.self) {
      try await supervisor.recover(store: store) { Issue.record("\($0) was recovered") }
    }
    #expect(error?.code == .interrupted && error?.store == store)
    #expect(error?.what == "cannot recover run R1 of '\(store)'")
    #expect(error?.isInDoubt == (phase == .cutover), "\(error?.state ?? "")")
    #expect(throws: (any Error).self, "no keeper was started") { try part.log() }
    #expect(try part.state.openPhases().records.map(\.run) == ["R1"])
  }

  @Test("the store of an open run is not called unchanged by a run that was canceled before")
  func canceledRun() async throws {
    _ = try record(isRecorded: true, .cutover)
    let supervisor = try part.supervisor("*) exit 1 ;;")
    supervisor.cancel()
    let request = MigrationRequest(run: "R2", store: store, plans: ["/p.so"])
    let report = try await supervisor.migrate(request) { _ in }
    #expect(report.error?.code == .interrupted)
    #expect(report.error?.state == "not opened by this run")
  }

  @Test(
    "an open run whose store has another path by now keeps the backups of the store",
    arguments: [true, false])
  func backups(isRecorded: Bool) async throws {
    _ = try record(isRecorded: isRecorded)
    var backups: [ListedBackup] = []
    for run in ["R2", "R3"] {
      var report = RunReport(run: run, store: store, result: .migrated, startedAt: 1)
      report.backup = try part.folder.write("x", to: "a.store.\(run).backup")
      backups.append(try #require(ListedBackup(report)))
    }
    let supervisor = try part.supervisor("*) \(try part.say(.done)) ;;")
    let retention = BackupRetention(count: 1)
    try await supervisor.prune(backups, keeping: retention, now: 2) { Issue.record("\($0)") }
    #expect(try part.state.openPhases().records.map(\.run) == ["R1"])
  }
}
