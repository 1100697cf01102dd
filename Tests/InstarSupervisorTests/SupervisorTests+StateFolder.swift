import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

/// The files of the state folder, whoever writes them and whatever cut them off.
extension SupervisorTests {
  @Test("the state folder is its owner's only")
  func mode() throws {
    for name in ["", "/phases", "/ledger"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: state.path + name)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
    #expect(chmod(state.path, 0o777) == 0)
    #expect(try instarError { _ = try StateFolder(path: state.path) }.code == .stateFolderFailed)
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
