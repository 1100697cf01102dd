import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

/// Runs that the ledger has, and whose phase record is still there.
extension SupervisorTests {
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
}
