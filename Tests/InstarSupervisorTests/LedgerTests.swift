import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarSupervisor

@Suite("Ledger")
struct LedgerTests {
  let folder: TemporaryFolder
  let state: StateFolder

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    state = try StateFolder(path: folder.path("state"))
  }

  private func report(_ number: Int, store: String? = nil, plan: String = "Plan") -> RunReport {
    var report = RunReport(
      run: "R\(number)", store: store ?? "/srv/\(number).store", result: .migrated,
      startedAt: Double(number))
    report.plan = plan
    report.to = Schema.Version(2, 0, 0)
    return report
  }

  /// The names of the ledger's files, in order.
  private var files: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: folder.path("state/ledger")).sorted()
    }
  }

  @Test("a full file gets a number and a new one begins; readers see all files as one")
  func rotation() throws {
    state.setLedgerSize(1)
    for number in 1...12 { try state.append(report(number)) }
    #expect(try files.count == 12)
    #expect(try files.contains("ledger.jsonl") && files.contains("ledger.11.jsonl"))
    let runs = (1...12).map { "R\($0)" }
    #expect(try state.history().reports.map(\.run) == runs)
    #expect(try StateFolder(reading: state.path).history().reports.map(\.run) == runs)
    #expect(try state.history(limit: 3).reports.map(\.run) == runs.suffix(3))
    #expect(try state.history(store: "/srv/2.store").reports.map(\.run) == ["R2"])
    let even = try state.history(limit: 2) { $0.startedAt.truncatingRemainder(dividingBy: 2) == 0 }
    #expect(even.reports.map(\.run) == ["R10", "R12"])
    // A power cut right after the file got its number: there is no file to append to.
    try FileManager.default.removeItem(atPath: folder.path("state/ledger/ledger.jsonl"))
    #expect(try state.history().reports.map(\.run) == Array(runs.dropLast()))
    try state.append(report(13))
    #expect(try state.history().reports.last?.run == "R13")
  }

  @Test("a file where the state folder should be is named, whoever asks")
  func fileAsFolder() throws {
    let file = try folder.write("", to: "file")
    let error = try instarError { _ = try StateFolder(reading: file).history() }
    #expect(error.cause == "'\(file)' is not a folder")
    #expect(error.next == "choose another folder with --state-dir")
  }

  @Test("the newest of many runs within a file are listed")
  func limit() throws {
    for number in 1...100 { try state.append(report(number)) }
    #expect(try state.history(limit: 7).reports.map(\.run) == (94...100).map { "R\($0)" })
  }

  @Test("processes that append at the same time lose and double no run, and readers see each one")
  func concurrency() async throws {
    let path = state.path
    let writers = 4
    let runs = 100
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<writers {
        group.addTask {
          let own = try StateFolder(path: path)
          own.setLedgerSize(2_000)
          for number in 0..<runs { try own.append(self.report(writer * runs + number)) }
        }
      }
      group.addTask {
        var seen: Set<String> = []
        while seen.count < writers * runs {
          let (reports, unreadable) = try StateFolder(reading: path).history()
          let found = Set(reports.map(\.run))
          #expect(found.count == reports.count && unreadable == 0)
          #expect(seen.isSubset(of: found))
          seen = found
          _ = try StateFolder(path: path).removeOldRuns(keeping: 1_000)
        }
      }
      try await group.waitForAll()
    }
    #expect(try files.count > 5)
  }

  @Test("a run that a crash kept from its end is appended once, also if its file is full since")
  func recovered() throws {
    state.setLedgerSize(1)
    for number in 1...3 { try state.append(report(number)) }
    for number in 1...4 { try state.append(report(number), mayBeThere: true) }
    #expect(try state.history().reports.map(\.run) == ["R1", "R2", "R3", "R4"])
  }

  @Test("the oldest files keep only the runs whose backup exists, and a crash doubles none")
  func removal() throws {
    state.setLedgerSize(1)
    for number in 1...6 {
      var report = report(number)
      if number.isMultiple(of: 2) {
        report.backup = try folder.write("b", to: "\(number).backup", mode: 0o600)
      }
      try state.append(report)
    }
    let old = try Data(contentsOf: URL(filePath: folder.path("state/ledger/ledger.1.jsonl")))
    #expect(try state.removeOldRuns(keeping: 2) == 2)
    #expect(
      try files == ["kept.3.jsonl", "ledger.4.jsonl", "ledger.5.jsonl", "ledger.jsonl"])
    #expect(try state.history().reports.map(\.run) == ["R2", "R4", "R5", "R6"])
    #expect(try state.backups().map(\.reference.run) == ["R2", "R4", "R6"])
    // The call was cut off before it removed a file that does not count any more.
    try old.write(to: URL(filePath: folder.path("state/ledger/ledger.1.jsonl")))
    #expect(try state.history().reports.map(\.run) == ["R2", "R4", "R5", "R6"])
    #expect(try state.removeOldRuns(keeping: 2) == 0)
    #expect(try !files.contains("ledger.1.jsonl"))

    #expect(unlink(folder.path("2.backup")) == 0)
    #expect(try state.removeOldRuns(keeping: 1) == 1)
    #expect(try files == ["kept.4.jsonl", "ledger.5.jsonl", "ledger.jsonl"])
    try state.append(report(7))
    #expect(try state.history().reports.map(\.run) == ["R4", "R5", "R6", "R7"])
    #expect(try files.contains("ledger.6.jsonl"))
  }

  @Test("the oldest files also keep the runs whose file system may not answer")
  func unasked() throws {
    state.setLedgerSize(1)
    for number in 1...4 {
      var report = report(number)
      report.backup = folder.path("\(number).backup")
      try state.append(report)
    }
    #expect(try state.removeOldRuns(keeping: 2) { _ in false } == 0)
    #expect(try state.history().reports.map(\.run) == ["R1", "R2", "R3", "R4"])
    #expect(try state.removeOldRuns(keeping: 1) == 2)
  }

  @Test("files with runs of a rollout that is not finished stay until it is")
  func openRollout() throws {
    state.setLedgerSize(1)
    for number in 1...4 { try state.append(report(number)) }
    var record = RolloutRecord(
      plan: "Plan", version: Schema.Version(2, 0, 0), plugin: nil, began: 2, wave: 1,
      openings: [2], soakEnds: nil, isFinished: false, halt: nil, forgiven: [], isApproved: false,
      approvedStores: [])
    try state.setRollouts([record])
    #expect(try state.removeOldRuns(keeping: 1) == 0)
    #expect(try state.rollouts().first?.runs.count == 3)
    record.isFinished = true
    try state.setRollouts([record])
    #expect(try state.removeOldRuns(keeping: 1) == 2)
  }

  @Test("what is known of copies and removals goes with the runs that it is about")
  func recordsOfBackups() throws {
    state.setLedgerSize(1)
    let copy = try folder.write("c", to: "2.copy", mode: 0o600)
    var references: [BackupReference] = []
    for number in 1...4 {
      var report = report(number)
      report.backup = folder.path("\(number).backup")
      try state.append(report)
      references.append(try #require(ListedBackup(report)).reference)
    }
    let ledger = folder.path("state/ledger")
    try state.noteRemoval(of: references[0], why: "a test")
    try state.noteCopy(BackupCopy(path: copy, bytes: 1, contentHash: ""), of: references[1])
    // As if R1 had been in one file with a run that came after the removal of its backup.
    try makeLater("\(ledger)/ledger.1.jsonl")
    try state.noteRemoval(of: references[2], why: "a test")
    #expect(try state.removeOldRuns(keeping: 2) == 1)
    #expect(try state.copies().path(ofRun: "R2", of: references[1].store) == copy)
    #expect(try state.copies().path(ofRun: "R2", of: "/srv/other.store") == nil)
    #expect(try state.removedBackups() == [references[2].identity])
    try state.noteRemoval(of: references[3], why: "a test")
    try state.append(report(5))
    try state.append(report(6))
    try makeLater("\(ledger)/ledger.4.jsonl")
    #expect(try state.removeOldRuns(keeping: 1) == 2)
    #expect(try state.removedBackups().isEmpty)
    #expect(try state.copies().path(ofRun: "R2", of: references[1].store) == copy)
    #expect(try state.backups().map(\.reference.run) == ["R2"])
  }

  /// Makes a file look as if a run had come to it now. The kernel's own times are some milliseconds late.
  private func makeLater(_ file: String) throws {
    try FileManager.default.setAttributes([.modificationDate: Date()], ofItemAtPath: file)
  }

  @Test(
    "if two stores have one run, the record of one store's copy stays when the other's run goes")
  func recordsOfCopiedTree() throws {
    state.setLedgerSize(1)
    let copy = try folder.write("c", to: "1.copy", mode: 0o600)
    var report = report(1)
    report.backup = folder.path("1.backup")
    let backup = try #require(ListedBackup(report)).reference
    var other = backup
    other.store = "/srv/other.store"
    for number in 1...3 { try state.append(number == 1 ? report : self.report(number)) }
    try state.noteCopy(BackupCopy(path: copy, bytes: 1, contentHash: ""), of: other)
    try state.noteCopy(
      BackupCopy(path: folder.path("gone.copy"), bytes: 1, contentHash: ""), of: backup)
    try state.noteRemoval(of: backup, why: "a test")
    #expect(try state.removeOldRuns(keeping: 1) == 1)
    #expect(try state.copies().path(ofRun: "R1", of: other.store) == copy)
    #expect(try state.copies().path(ofRun: "R1", of: backup.store) == nil)
    // The record of a backup whose run the ledger never had goes with the removal of that backup.
    try state.noteRemoval(of: other, why: "a test")
    try state.append(self.report(4))
    try makeLater(folder.path("state/ledger/ledger.2.jsonl"))
    #expect(try state.removeOldRuns(keeping: 1) == 1)
    #expect(try state.removedBackups().isEmpty)
    #expect(try state.copies().path(ofRun: "R1", of: other.store) == nil)
  }

  @Test("the removal of a backup is known as long as its run, which its copy keeps in the ledger")
  func removalOfKeptRun() throws {
    state.setLedgerSize(1)
    let copy = try folder.write("c", to: "1.copy", mode: 0o600)
    var report = report(1)
    report.backup = folder.path("1.backup")
    let backup = try #require(ListedBackup(report)).reference
    for number in 1...3 { try state.append(number == 1 ? report : self.report(number)) }
    try state.noteCopy(BackupCopy(path: copy, bytes: 1, contentHash: ""), of: backup)
    try state.noteRemoval(of: backup, why: "a test")
    // As if a run had come to the first file after the removal.
    try makeLater(folder.path("state/ledger/ledger.1.jsonl"))
    #expect(try state.removeOldRuns(keeping: 1) == 0)
    #expect(try state.backups().map(\.isCopyOnly) == [true])
    try FileManager.default.removeItem(atPath: copy)
    #expect(try state.backups().isEmpty, "it was removed, so it is not missing")
  }

  @Test(
    "runs of the oldest files stay until their copies are removed: the disk may not be mounted",
    arguments: [false, true])
  func unmountedCopy(hasMountPoint: Bool) throws {
    state.setLedgerSize(1)
    let (copies, away) = (folder.path("copies"), folder.path("away"))
    try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
    let copy = try folder.write("c", to: "copies/1.backup", mode: 0o600)
    var report = report(1)
    report.backup = folder.path("1.backup")
    let backup = try #require(ListedBackup(report)).reference
    for number in 1...3 { try state.append(number == 1 ? report : self.report(number)) }
    try state.noteCopy(BackupCopy(path: copy, bytes: 1, contentHash: ""), of: backup)
    try FileManager.default.moveItem(atPath: copies, toPath: away)
    if hasMountPoint {
      try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
    }
    #expect(try state.removeOldRuns(keeping: 1) == 0)
    #expect(try state.backups().map(\.isMissing) == [true])

    // Also if the backup is removed meanwhile: its copy is still to be removed.
    try state.noteRemoval(of: backup, why: "a test", part: .allButCopy)
    try state.append(self.report(4))
    try makeLater(folder.path("state/ledger/ledger.2.jsonl"))
    #expect(try state.removeOldRuns(keeping: 1) == 1)
    #expect(try state.history().reports.map(\.run) == ["R1", "R3", "R4"])
    if hasMountPoint { try FileManager.default.removeItem(atPath: copies) }
    try FileManager.default.moveItem(atPath: away, toPath: copies)
    #expect(try state.backups().map(\.isCopyOnly) == [true])

    try FileManager.default.removeItem(atPath: copy)
    try state.noteRemoval(of: backup, why: "a test")
    try state.append(self.report(5))
    try makeLater(folder.path("state/ledger/ledger.3.jsonl"))
    #expect(try state.removeOldRuns(keeping: 1) == 2)
    #expect(try state.removedBackups().isEmpty)
  }

  @Test("a rollout gets what its runs made of each store, from all files since it began")
  func rollouts() throws {
    state.setLedgerSize(1)
    try state.append(report(1))
    try state.append(report(2, plan: "Other"))
    var failed = report(3, store: "/srv/a.store")
    failed.result = .failed
    failed.error = InstarError(.stageFailed, "cannot migrate", cause: "a test")
    try state.append(failed)
    try state.append(report(4, store: "/srv/a.store"))
    failed.run = "R5"
    failed.store = "/srv/b.store"
    failed.startedAt = 5
    try state.append(failed)
    let record = RolloutRecord(
      plan: "Plan", version: Schema.Version(2, 0, 0), plugin: nil, began: 2, wave: 1,
      openings: [2], soakEnds: nil, isFinished: false, halt: nil, forgiven: [], isApproved: false,
      approvedStores: [])
    try state.setRollouts([record])
    let found = try #require(try state.rollouts().first)
    #expect(found.0 == record)
    #expect(
      Set(found.runs) == [
        RolloutRun(store: "/srv/a.store", result: .migrated, firstStartedAt: 3),
        RolloutRun(
          store: "/srv/b.store", result: .failed, code: .stageFailed, firstStartedAt: 5),
      ])
  }
}
