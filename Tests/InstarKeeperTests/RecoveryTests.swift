import Foundation
import GRDB
import InstarKeeper
import InstarLinux
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Recovering a run that was cut off")
struct RecoveryTests {
  private func record(_ fixture: KeeperFixture, _ phase: Phase) -> PhaseRecord {
    var record = PhaseRecord(run: "cut-off", store: fixture.store, phase: phase, startedAt: 0)
    record.from = KeeperFixture.first.version
    record.to = KeeperFixture.second.version
    return record
  }

  /// Leaves the files of a run whose keeper is dead.
  private func leaveRun(_ fixture: KeeperFixture, backup: Bool) throws {
    let instar = fixture.folder + "/.instar"
    try FileManager.default.createDirectory(
      atPath: instar + "/run-cut-off/clone", withIntermediateDirectories: true)
    try FileManager.default.copyItem(
      atPath: fixture.store, toPath: instar + "/run-cut-off/clone/Notes.store")
    if backup {
      try FileManager.default.copyItem(
        atPath: fixture.store, toPath: instar + "/Notes.store.cut-off.backup")
    }
  }

  @Test("a run that had not written the store is discarded", arguments: Phase.allCases)
  func discards(phase: Phase) throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    try leaveRun(fixture, backup: true)
    let report = try record(fixture, phase).recovered()
    #expect(report.outcome == .discarded)
    #expect(report.version == Schema.Version(1, 0, 0))
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
    let (again, _) = try fixture.migrate()
    #expect(again.result == .migrated)
  }

  @Test("what a run cannot remove is in its report, and fails recoveries until it is removed")
  func leftovers() throws {
    let fixture = try KeeperFixture()
    let folder = "\(fixture.folder)/.instar/run-\(fixture.request().run)"
    let aside = fixture.folder + "/aside"
    // A file where the run's folder was: no folder of that name can be removed.
    let host = SQLHost(tamper: { _ in
      #expect(rename(folder, aside) == 0)
      try Data().write(to: URL(fileURLWithPath: folder))
    })
    let (report, conversation) = try fixture.migrate(host)
    #expect(report.result == .failed && report.error?.state == "unchanged")
    #expect(report.leftovers == [folder])
    let record = try #require(conversation.asked.last)
    let error = try record.recoveryError()
    #expect(error.cause.contains(folder))
    var ended = record
    ended.isInLedger = true
    #expect(try ended.recovered().leftovers == [folder], "and its store can be migrated")
    #expect(unlink(folder) == 0)
    _ = try record.recovered()
    #expect(fixture.state().instar == nil)
  }

  @Test("a backup that was cut off while it was copied to another file system is removed")
  func partialBackup() throws {
    let fixture = try KeeperFixture()
    let backup = fixture.folder + "/elsewhere.backup"
    try Data().write(to: URL(fileURLWithPath: backup + ".part"))
    var record = record(fixture, .cloning)
    record.backup = backup
    _ = try record.recovered()
    #expect(access(backup + ".part", F_OK) != 0)
  }

  @Test(
    "a run in a transaction is discarded once its keeper has ended",
    arguments: [(Phase.cloning, ".copy"), (.cloning, ".backup"), (.cutover, ".backup")])
  func inTransaction(phase: Phase, suffix: String) throws {
    let fixture = try KeeperFixture()
    let instar = fixture.folder + "/.instar"
    try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: true)
    let copy = instar + "/Notes.store.cut-off" + suffix
    try FileManager.default.copyItem(atPath: fixture.store, toPath: copy)
    let keeper = try #require(try FolderLock.tryLock(copy))
    let error = try record(fixture, phase).recoveryError()
    #expect(error.code == .busyStore)
    #expect(fixture.state().instar == ["Notes.store.cut-off" + suffix])
    keeper.release()
    let report = try record(fixture, phase).recovered()
    #expect(report.outcome == .discarded)
    #expect(fixture.state().instar == nil)
  }

  @Test(
    "the journal of a transaction that was not committed is removed, and no other one",
    arguments: [(true, false), (true, true), (false, false)])
  func uncommittedJournal(inTransaction: Bool, isNeeded: Bool) throws {
    let fixture = try KeeperFixture()
    let before = fixture.state().bytes
    if inTransaction {
      let instar = fixture.folder + "/.instar"
      try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: true)
      try Data().write(to: URL(fileURLWithPath: instar + "/Notes.store.cut-off.copy"))
    }
    let journal = fixture.store + "-journal"
    var header = Data(count: 512)
    if isNeeded { header.replaceSubrange(0..<2, with: [0xd9, 0xd5]) }
    try header.write(to: URL(fileURLWithPath: journal))
    #expect(try record(fixture, .cloning).recovered().outcome == .discarded)
    #expect((access(journal, F_OK) == 0) == (isNeeded || !inTransaction))
    #expect(fixture.state().bytes == before)
  }

  @Test(
    "only files are removed of a run that is in the ledger, and store and backup stay",
    arguments: Phase.allCases)
  func inLedger(phase: Phase) throws {
    let fixture = try KeeperFixture()
    try leaveRun(fixture, backup: true)
    let backup = "Notes.store.cut-off.backup"
    for name in ["Notes.store.cut-off.copy", "Notes.store.cut-off.files", backup + ".part"] {
      try Data().write(to: URL(filePath: "\(fixture.folder)/.instar/\(name)"))
    }
    let before = fixture.state()
    var record = record(fixture, phase)
    record.isInLedger = true
    // Somebody restored the store since: without the ledger this run would be discarded, with its backup.
    _ = try record.recovered()
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == [backup])
  }

  @Test(
    "the backup of a failed run that a loss of power brought back is removed if nobody can know it",
    arguments: [
      (Phase.cloning, "", true), (.cutover, "", false), (.cloning, "listed", false),
      (.cloning, "copied", false), (.cloning, "storeGone", false),
    ])
  func returnedBackup(phase: Phase, obstacle: String, isRemoved: Bool) throws {
    let fixture = try KeeperFixture()
    try leaveRun(fixture, backup: true)
    let backup = fixture.folder + "/.instar/Notes.store.cut-off.backup"
    var lock: FolderLock?
    defer { lock?.release() }
    switch obstacle {
    case "listed":
      try Data("{}".utf8).write(to: URL(filePath: BackupManifest.path(ofBackup: backup)))
    case "copied":
      lock = try FolderLock.tryLock(backup)
      #expect(lock != nil)
    case "storeGone": #expect(rename(fixture.store, fixture.folder + "/aside") == 0)
    default: break
    }
    var record = record(fixture, phase)
    record.isInLedger = true
    record.hasNoBackup = true
    _ = try record.recovered()
    #expect((access(backup, F_OK) != 0) == isRemoved)
    #expect((fixture.state().instar == nil) == isRemoved)
  }

  @Test("the files of a run that is in the ledger are removed even while its backup is copied")
  func copiedMeanwhile() throws {
    let fixture = try KeeperFixture()
    let instar = fixture.folder + "/.instar"
    try FileManager.default.createDirectory(
      atPath: instar, withIntermediateDirectories: false)
    for name in ["Notes.store.cut-off.copy", "Notes.store.cut-off.backup"] {
      try Data().write(to: URL(filePath: "\(instar)/\(name)"))
    }
    let copying = try #require(
      try FolderLock.tryLock(instar + "/Notes.store.cut-off.backup"))
    defer { copying.release() }
    var record = record(fixture, .cutover)
    record.isInLedger = true
    _ = try record.recovered()
    #expect(fixture.state().instar == ["Notes.store.cut-off.backup"])
  }

  @Test("a backup that cannot be opened does not keep a store from being recovered")
  func linkInPlaceOfBackup() throws {
    let fixture = try KeeperFixture()
    let (report, _) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    let backup = try #require(report.backup)
    #expect(rename(backup, fixture.folder + "/moved") == 0)
    #expect(symlink(fixture.folder + "/moved", backup) == 0)
    let recovery = try record(fixture, .cutover).recovered()
    #expect(recovery.outcome == .finished)
  }

  @Test("a run that had written the store is finished, and its backup is kept")
  func finishes() throws {
    let fixture = try KeeperFixture()
    let (report, _) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    #expect(report.result == .migrated)
    // The journal of a connection that kept its lock, killed after its commit.
    let journal = fixture.store + "-journal"
    try Data(count: 512).write(to: URL(fileURLWithPath: journal))
    let recovery = try record(fixture, .cutover).recovered()
    #expect(access(journal, F_OK) != 0)
    #expect(recovery.outcome == .finished)
    #expect(recovery.version == Schema.Version(2, 0, 0))
    #expect(recovery.backup == report.backup)
    #expect(
      fixture.state().instar == ["Notes.store.cut-off.backup", "Notes.store.cut-off.json"])
  }

  @Test("a cutover that was killed half-way is rolled back by SQLite")
  func killedWriteBack() throws {
    let fixture = try KeeperFixture(rows: 3000)
    try leaveRun(fixture, backup: true)
    // Another process writes the store over, as a write-back does, and is killed before it commits.
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c",
      """
      import sqlite3, sys, os, signal
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA cache_size=5")
      c.execute("BEGIN EXCLUSIVE")
      c.execute("UPDATE ZNOTE SET ZTITLE = 'half'")
      c.execute("DELETE FROM Z_PRIMARYKEY")
      os.kill(os.getpid(), signal.SIGKILL)
      """, fixture.store,
    ]
    process.standardOutput = output
    try process.run()
    process.waitUntilExit()
    #expect(FileManager.default.fileExists(atPath: fixture.store + "-journal"))
    let report = try record(fixture, .cutover).recovered()
    #expect(report.outcome == .discarded)
    #expect(fixture.state().instar == nil)
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE WHERE ZTITLE = 'half'") == 0)
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM Z_PRIMARYKEY") == 2)
  }

  @Test("the backup of a damaged store is kept and named")
  func damagedStore() throws {
    let fixture = try KeeperFixture(rows: 3000)
    try leaveRun(fixture, backup: true)
    var bytes = try #require(FileManager.default.contents(atPath: fixture.store))
    let half = bytes.count / 2 / 4096 * 4096
    for index in half..<(half + 4096) { bytes[index] = 0x5A }
    try bytes.write(to: URL(fileURLWithPath: fixture.store))
    let error = try record(fixture, .cutover).recoveryError()
    #expect(error.code == .corruptStore)
    #expect(error.state?.contains("Notes.store.cut-off.backup") == true)
    #expect(fixture.state().instar == ["Notes.store.cut-off.backup"])
  }

  @Test("a store that is in use is not called damaged: nothing is decided, and its backup stays")
  func busyStore() throws {
    let fixture = try KeeperFixture()
    try leaveRun(fixture, backup: true)
    let holder = try OtherProcess.holding(fixture.store, "EXCLUSIVE")
    let error = try record(fixture, .cutover).recoveryError()
    holder.finish()
    #expect(error.code == .busyStore)
    #expect(error.state == nil)
    #expect(fixture.state().instar == ["Notes.store.cut-off.backup"])
    let report = try record(fixture, .cutover).recovered()
    #expect(report.outcome == .discarded)
    #expect(fixture.state().instar == nil)
  }

  @Test("a store that was changed after it had been written keeps its backup")
  func changedSince() throws {
    let fixture = try KeeperFixture()
    let (run, _) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    try fixture.execute("CREATE INDEX extra ON ZNOTE (ZTITLE)")
    let report = try record(fixture, .cutover).recovered()
    #expect(report.version == Schema.Version(2, 0, 0))
    #expect(report.backup == run.backup)
    #expect(
      fixture.state().instar == ["Notes.store.cut-off.backup", "Notes.store.cut-off.json"])
  }

  /// Restores the store, which is then as before its migration.
  ///
  /// - Returns: The phase record of the cutover.
  private func restore(
    _ fixture: KeeperFixture, _ migration: RunReport, run: String
  ) throws -> PhaseRecord {
    let backup = BackupReference(
      run: migration.run, store: fixture.store, path: try #require(migration.backup),
      manifest: migration.manifest)
    let conversation = ScriptedConversation([
      .restore(RestoreRequest(run: run, store: fixture.store, backup: backup))
    ])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    #expect(conversation.reports.first?.result == .restored)
    return try #require(conversation.asked.last)
  }

  @Test("a restore to another version is finished, also if an app wrote since")
  func restoredAndChanged() throws {
    let fixture = try KeeperFixture()
    let (migration, _) = try fixture.migrate()
    let record = try restore(fixture, migration, run: "cut-off")
    #expect(record.phase == .cutover)
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'since' WHERE Z_PK = 1")
    let report = try record.recovered()
    #expect(report.outcome == .finished)
    #expect(report.version == Schema.Version(1, 0, 0))
    #expect(report.backup == record.backup)
  }

  @Test("a restore to the same version that an app changed since is in doubt: its backup stays")
  func restoredToSameVersionAndChanged() throws {
    let fixture = try KeeperFixture()
    let (migration, _) = try fixture.migrate()
    _ = try restore(fixture, migration, run: "first")
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'between' WHERE Z_PK = 1")
    let record = try restore(fixture, migration, run: "cut-off")
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'since' WHERE Z_PK = 1")
    let report = try record.recovered()
    #expect(report.outcome == .discarded)
    #expect(report.backup == record.backup)
    #expect(record.backup.map { FileManager.default.fileExists(atPath: $0) } == true)
  }

  @Test("a restored store that an app migrated again since is in doubt: its backup stays")
  func restoredAndMigratedAgain() throws {
    let fixture = try KeeperFixture()
    let (migration, _) = try fixture.migrate()
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'before' WHERE Z_PK = 1")
    let record = try restore(fixture, migration, run: "cut-off")
    let (again, _) = try fixture.migrate(request: fixture.request(run: "again"))
    #expect(again.result == .migrated)
    let report = try record.recovered()
    #expect(report.outcome == .discarded)
    #expect(report.backup == record.backup)
  }

  @Test("a store that was to go on to a version, to which an app migrated it since, is in doubt")
  func cutOffBeforeLaterVersion() throws {
    let fixture = try KeeperFixture()
    let (migration, _) = try fixture.migrate()
    try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'at 2.0.0' WHERE Z_PK = 1")
    let back = try restore(fixture, migration, run: "back")
    let undone = BackupReference(
      run: back.run, store: fixture.store, path: try #require(back.backup), manifest: back.manifest)
    // Cut off before its commit.
    let conversation = ScriptedConversation(
      [.restore(RestoreRequest(run: "cut-off", store: fixture.store, backup: undone))],
      onAsk: { $0.phase == .cloning })
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    let record = try #require(conversation.asked.last)
    #expect(record.phase == .cutover)
    try Data().write(to: URL(fileURLWithPath: try #require(record.backup)))
    let (again, _) = try fixture.migrate(request: fixture.request(run: "again"))
    #expect(again.result == .migrated)
    let report = try record.recovered()
    #expect(report.outcome == .discarded)
    #expect(report.backup == record.backup)
  }

  @Test("a store that is gone is reported, and its backup stays")
  func missingStore() throws {
    let fixture = try KeeperFixture()
    try leaveRun(fixture, backup: true)
    try FileManager.default.removeItem(atPath: fixture.store)
    let report = try record(fixture, .cutover).recovered()
    #expect(report.outcome == .storeMissing)
    #expect(fixture.state().instar == ["Notes.store.cut-off.backup"])
  }

  @Test(
    "a run in its cutover stays open while its folder is not there, and then keeps its backup",
    arguments: ["unmounted", "renamed"])
  func missingFolder(reason: String) throws {
    let fixture = try KeeperFixture()
    let (run, conversation) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    let record = try #require(conversation.asked.last)
    let manifest = try #require(run.backup).replacing(".backup", with: ".json")
    // Written after the store: the keeper was killed before.
    try FileManager.default.removeItem(atPath: manifest)
    let away = fixture.folder + ".away"
    #expect(rename(fixture.folder, away) == 0)
    defer { rename(away, fixture.folder) }
    if reason == "unmounted" { #expect(mkdir(fixture.folder, 0o700) == 0) }
    let error = try record.recoveryError()
    #expect(error.code == .missingStore)
    #expect(error.next?.contains("mkdir -p '\(fixture.folder)/.instar'") == true)
    rmdir(fixture.folder)
    #expect(rename(away, fixture.folder) == 0)
    let report = try record.recovered()
    #expect(report.outcome == .finished && report.backup == run.backup)
    #expect(access(manifest, F_OK) == 0)
  }

  @Test("a run whose store and backup were deleted on purpose is closed as its error advises")
  func deletedFolder() throws {
    let fixture = try KeeperFixture()
    let (_, conversation) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    let record = try #require(conversation.asked.last)
    try FileManager.default.removeItem(atPath: fixture.folder)
    _ = try record.recoveryError()
    try FileManager.default.createDirectory(
      atPath: fixture.folder + "/.instar", withIntermediateDirectories: true)
    let report = try record.recovered()
    #expect(report.outcome == .storeMissing && report.backup == nil)
  }

  @Test("a store that was deleted beside its backup leaves the backup with its manifest")
  func deletedStore() throws {
    let fixture = try KeeperFixture()
    let (run, conversation) = try fixture.migrate(request: fixture.request(run: "cut-off"))
    let record = try #require(conversation.asked.last)
    let manifest = try #require(run.backup).replacing(".backup", with: ".json")
    try FileManager.default.removeItem(atPath: manifest)
    try FileManager.default.removeItem(atPath: fixture.store)
    let report = try record.recovered()
    #expect(report.outcome == .storeMissing && report.backup == run.backup)
    #expect(access(manifest, F_OK) == 0)
  }
}
