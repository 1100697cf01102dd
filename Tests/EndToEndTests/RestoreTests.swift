import Foundation
import GRDB
import Glibc
import InstarLinux
import InstarSchema
import InstarStore
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

/// Undoing migrations by `instarctl restore`. `INSTAR_TEST_SEED` repeats the instants of kills of another run, as far
/// as two runs take the same time.
@Suite("A restore")
struct RestoreTests {
  static let seed =
    ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    ?? UInt64.random(in: 1...999_999)

  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var state: [String] { ["--state-dir", folder.path("state")] }

  private func run(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(arguments + state + ["--json"])
  }

  private func report(
    _ answer: CommandLineTool.Answer, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RunReport {
    try #require(
      try answer.objects(RunReport.self).last, Comment(rawValue: answer.messages),
      sourceLocation: sourceLocation)
  }

  private func migrate(_ store: BoxStore) async throws -> RunReport {
    let answer = try await run(
      "migrate", store.path, "--plugin", try await FixturePlugins.boxes.value)
    let report = try report(answer)
    try #require(report.result == .migrated, Comment(rawValue: answer.messages))
    return report
  }

  private func write(_ sql: String, to store: BoxStore) throws {
    let queue = try DatabaseQueue(path: store.path)
    try queue.inDatabase { try $0.execute(sql: sql) }
    try queue.close()
  }

  private var backups: [String] { folder.names(".instar").filter { $0.hasSuffix(".backup") } }
  private var holds: [String] { folder.names("state/holds") }
  private var history: [RunReport] {
    get async throws { try await run("history").objects(RunReport.self) }
  }

  @Test(
    "a restore brings back the store from before the run, and a second one brings back what the first replaced",
    arguments: ["delete", "wal"])
  func undoOfTheUndo(journalMode: String) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: journalMode)
    let migration = try await migrate(store)
    let manifest = try #require(migration.manifest)
    #expect(manifest.version == Schema.Version(1, 0, 0))
    #expect(manifest.check == "ok" && manifest.contentHash.hasPrefix("xxh3-128:"))
    // What an app writes after the migration must not be lost for ever.
    try write("UPDATE ZBOX SET ZSIZE = 5000 WHERE ZSIZE = 1000", to: store)
    let before = try folder.contents()["fine.store"]

    let undo = try report(try await run("restore", store.path))
    #expect(undo.result == .restored && undo.restoredRun == migration.run)
    #expect(undo.from == Schema.Version(2, 0, 0) && undo.to == Schema.Version(1, 0, 0))
    #expect(try store.version() == Schema.Version(1, 0, 0))
    #expect(try store.sizes() == Array(0..<50))
    #expect(try store.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") } == journalMode)
    let after = try folder.contents()["fine.store"]
    #expect(after?.inode == before?.inode && after?.mode == before?.mode)
    #expect(backups.count == 2 && folder.names(".instar").count == 4)

    let again = try report(try await run("restore", store.path))
    #expect(again.result == .restored && again.restoredRun == undo.run)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try store.sizes() == Array(1001..<1050) + [5000])
    #expect(try store.labels() == 50)
    #expect(try await history.map(\.result) == [.migrated, .restored, .restored])
    #expect(folder.names("state/phases").filter { $0.hasSuffix(".json") } == [])
  }

  @Test("a restore says in words which version it brings back")
  func steps() async throws {
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    let answer = try await CommandLineTool.run(
      "restore", store.path, "--state-dir", folder.path("state"))
    #expect(answer.status == 0)
    for step in ["started: restores 1.0.0", "content replaced"] {
      #expect(answer.messages.contains("\(store.path): \(step)"), "\(answer.messages)")
    }
  }

  @Test(
    "a restore goes back to the run that is named, and refuses a run that the store does not have")
  func namedRun() async throws {
    let store = try BoxStore("fine", in: folder)
    let migration = try await migrate(store)
    _ = try report(try await run("restore", store.path))
    let again = try report(try await run("restore", store.path, "--run", migration.run))
    #expect(again.result == .restored && again.restoredRun == migration.run)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    let unknown = try await run("restore", store.path, "--run", "R1")
    #expect(unknown.status == 5)
    #expect(try report(unknown).error?.code == .missingBackup)
  }

  @Test(
    "a restore holds the store until it is released: migrate refuses it, probe and plan show why")
  func hold() async throws {
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    let plugin = try await FixturePlugins.boxes.value
    _ = try report(try await run("restore", store.path))
    let refused = try await run("migrate", store.path, "--plugin", plugin)
    #expect(refused.status == 3)
    let error = try #require(try report(refused).error)
    #expect(error.code == .heldStore && error.cause.contains("restored by run "))
    #expect(error.next?.contains("instarctl release '\(store.path)'") == true)
    #expect(try store.version() == Schema.Version(1, 0, 0))
    let probe = try await run("probe", store.path, "--plugin", plugin)
    #expect(try probe.objects(ProbeReport.self).first?.hold?.run != nil)
    let plan = try await run("plan", store.path, "--plugin", plugin)
    #expect(try plan.objects(PlanReport.self).first?.probe.hold?.run != nil)

    #expect(try await run("release", store.path).status == 0)
    #expect(holds == [])
    _ = try await migrate(store)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test(
    "a restore sees what is pending in the log of an app that has the store open, and the app sees the restore"
  )
  func pendingLog() async throws {
    let store = try BoxStore("fine", in: folder)
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA wal_autocheckpoint = 0")
      c.execute("SELECT count(*) FROM ZBOX").fetchall()
      print("open", flush=True)
      sys.stdin.readline()
      c.execute("UPDATE ZBOX SET ZSIZE = 7000 WHERE ZSIZE = 1000")
      print("written", flush=True)
      sys.stdin.readline()
      open(sys.argv[1] + ".seen", "w").write(str(c.execute("SELECT sum(ZSIZE) FROM ZBOX").fetchall()))
      print("seen", flush=True)
      """, path: store.path)
    _ = try await migrate(store)
    app.tell("write")
    var log = stat()
    #expect(stat(store.path + "-wal", &log) == 0 && log.st_size > 0)
    #expect(try report(try await run("restore", store.path)).result == .restored)
    app.tell("look")
    app.finish()
    #expect(try folder.text(of: "fine.store.seen") == "[(\((0..<50).reduce(0, +)),)]")
    #expect(try store.sizes() == Array(0..<50))
    _ = try report(try await run("restore", store.path))
    #expect(try store.sizes() == Array(1001..<1050) + [7000])
  }

  @Test(
    "a restore is refused while an app holds a lock, and leaves no hold and no second backup",
    arguments: ["delete", "wal"])
  func busy(journalMode: String) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: journalMode)
    _ = try await migrate(store)
    let app = try OtherProcess.holding(store.path, "IMMEDIATE")
    let answer = try await run("restore", store.path, "--busy-timeout", "0s")
    #expect(answer.status == 4)
    let busy = try report(answer)
    #expect(busy.result == .busy && busy.backup == nil)
    #expect(busy.error?.cause.components(separatedBy: "the store is open in").count == 2)
    #expect(busy.error?.cause.contains("(python3") == true)
    #expect(busy.holders?.count == 1)
    app.finish()
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(holds == [] && backups.count == 1 && folder.names(".instar").count == 2)
  }

  @Test("a restore brings back large values in files, and a second one brings back the new ones")
  func externalFiles() async throws {
    let path = folder.path("Photos.store")
    let images = try PhotoStore.make(at: path)
    let files = folder.path(".Photos_SUPPORT/_EXTERNAL_DATA")
    func content() throws -> [String: Data?] {
      let names = try FileManager.default.contentsOfDirectory(atPath: files)
      return Dictionary(
        uniqueKeysWithValues: names.map {
          ($0, FileManager.default.contents(atPath: "\(files)/\($0)"))
        })
    }
    let before = try content()
    let plugin = try await FixturePlugins.photos.value
    #expect(try await run("migrate", path, "--plugin", plugin).status == 0)
    let migrated = try content()
    #expect(migrated.keys != before.keys)

    #expect(try report(try await run("restore", path)).result == .restored)
    #expect(try content() == before)
    #expect(try PhotoStore.images(of: path) == images)

    #expect(try report(try await run("restore", path)).result == .restored)
    #expect(try content() == migrated)
  }

  @Test(
    "a restore refuses a backup that was changed, cut short or removed, and leaves the store as it is",
    arguments: ["changed", "shortened", "removed"])
  func damagedBackup(damage: String) async throws {
    let store = try BoxStore("fine", in: folder)
    let backup = try #require(try await migrate(store).backup)
    var bytes = try #require(FileManager.default.contents(atPath: backup))
    switch damage {
    case "changed": bytes[bytes.count / 2] ^= 1
    case "shortened": bytes.removeLast(4096)
    default: break
    }
    if damage == "removed" {
      try FileManager.default.removeItem(atPath: backup)
    } else {
      try bytes.write(to: URL(filePath: backup))
    }
    let before = try folder.contents()["fine.store"]
    let answer = try await run("restore", store.path)
    #expect(answer.status == (damage == "removed" ? 5 : 3))
    let error = try #require(try report(answer).error)
    #expect(error.code == (damage == "removed" ? .missingBackup : .damagedBackup))
    #expect(error.state == "unchanged")
    #expect(try folder.contents()["fine.store"] == before)
    #expect(holds == [])
    let copy = try await run("restore", store.path, "--to", folder.path("copy"))
    #expect(copy.status == (damage == "removed" ? 5 : 3))
    #expect(!folder.names().contains { $0.hasPrefix("copy") })
  }

  @Test("restore --to writes the backup to a new file and changes nothing else")
  func copy() async throws {
    let store = try BoxStore("fine", in: folder)
    let migration = try await migrate(store)
    let before = try folder.contents()
    let copy = folder.path("old.store")
    #expect(try await run("restore", store.path, "--to", copy).status == 0)
    #expect(try BoxStore(path: copy).sizes() == Array(0..<50))
    let backup = try #require(migration.backup)
    #expect(
      FileManager.default.contents(atPath: copy) == FileManager.default.contents(atPath: backup))
    for name in folder.names() where name.hasPrefix("old.store") {
      try FileManager.default.removeItem(atPath: folder.path(name))
    }
    let after = try folder.contents()
    #expect(Set(after.keys) == Set(before.keys))
    for (name, file) in before where file.bytes != nil { #expect(after[name] == file) }
    #expect(holds == [])

    // An existing file stays.
    try folder.write("mine", to: "mine")
    let refused = try await run("restore", store.path, "--to", folder.path("mine"))
    #expect(refused.status == 1)
    #expect(try folder.text(of: "mine") == "mine")
  }

  /// An answer of `instarctl restore --to --json` that failed.
  private struct CopyFailure: Decodable {
    var error: InstarError
  }

  @Test(
    "restore --to refuses a file with a log or journal of a killed app beside it, and says how to go on",
    arguments: ["-wal", "-shm", "-journal"])
  func staleSideFile(suffix: String) async throws {
    let store = try BoxStore("fine", in: folder)
    let migration = try await migrate(store)
    for name in folder.names() where name.hasPrefix("fine.store") {
      try FileManager.default.removeItem(atPath: folder.path(name))
    }
    let sideFile = "fine.store\(suffix)"
    try folder.write("stale", to: sideFile)

    let missing = try #require(try report(try await run("restore", store.path)).error)
    #expect(missing.code == .missingStore)
    let advice = missing.next ?? ""
    let aside = "'\(folder.path(sideFile))' '\(store.path).damaged\(suffix)'"
    let restore = "instarctl restore --run '\(migration.run)' '\(store.path)' "
    #expect(
      advice.hasPrefix("stop the app, then run: mv --backup=numbered -T \(aside) && \(restore)"))
    #expect(advice.hasSuffix("--to '\(store.path)'"))
    let refused = try await run("restore", store.path, "--to", store.path)
    #expect(refused.status == 1)
    let error = try #require(try refused.objects(CopyFailure.self).last).error
    #expect(error.code == .outputFailed && error.cause.contains("'\(folder.path(sideFile))'"))
    let move = "mv '\(folder.path(sideFile))' '\(folder.path(sideFile)).old'"
    #expect(error.next?.contains(move) == true)
    #expect(folder.names().filter { $0.hasPrefix("fine.store") } == [sideFile])
    #expect(try folder.text(of: sideFile) == "stale")
    #expect(holds == [])

    try await follow(advice)
    #expect(try store.sizes() == Array(0..<50))
    #expect(try folder.text(of: "fine.store.damaged\(suffix)") == "stale")
    #expect(holds.count == 1)
  }

  @Test(
    "a restore of a store with a log whose page size was changed is refused, and succeeds as the error says"
  )
  func otherPageSize() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "wal")
    _ = try await migrate(store)
    try write(
      "PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM; PRAGMA journal_mode = WAL",
      to: store)
    let answer = try await run("restore", store.path)
    #expect(answer.status == 1)
    let error = try #require(try report(answer).error)
    #expect(error.code == .unsupported && error.state == "unchanged")
    #expect(error.cause.contains("pages of 4096 bytes and the store of 8192"))
    let way = "sqlite3 '\(store.path)' 'PRAGMA journal_mode = DELETE'"
    #expect(error.next?.contains(way) == true)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(holds == [] && backups.count == 1 && folder.names(".instar").count == 2)

    try write("PRAGMA journal_mode = DELETE", to: store)
    #expect(try report(try await run("restore", store.path)).result == .restored)
    #expect(try store.sizes() == Array(0..<50))
    #expect(try store.read { try Int.fetchOne($0, sql: "PRAGMA page_size") } == 4096)
    #expect(try report(try await run("restore", store.path)).result == .restored)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test(
    "a restore of a damaged store succeeds; a second one would bring the damage back, and names a sound backup"
  )
  func damagedStore() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    let migration = try await migrate(store)
    var bytes = try #require(FileManager.default.contents(atPath: store.path))
    for position in 4096..<8192 { bytes[position] = 0xFF }
    try bytes.write(to: URL(filePath: store.path))
    let undo = try report(try await run("restore", store.path))
    #expect(undo.result == .restored && undo.manifest?.check != "ok")
    #expect(undo.hold?.run == undo.run)

    let again = try await run("restore", store.path)
    #expect(again.status == 3)
    let error = try #require(try report(again).error)
    #expect(error.code == .damagedBackup && error.cause.contains(undo.run))
    let next = "instarctl restore --run '\(migration.run)' '\(store.path)' --state-dir "
    #expect(error.next?.contains(next) == true)
    #expect(try store.sizes() == Array(0..<50))
    #expect(try report(try await run("restore", store.path, "--run", migration.run)).error == nil)
  }

  /// What becomes of a store whose disk fails, and the code of its error.
  private enum Ruin: CaseIterable {
    case text, random, empty, half, header, firstPage

    func bytes(of store: Data) -> Data {
      switch self {
      case .text: Data(String(repeating: "garbage ", count: 500).utf8)
      case .random: Data((0..<8192).map { _ in UInt8.random(in: 0...255) })
      case .empty: Data()
      case .half: store.prefix(store.count / 2)
      case .header: store.prefix(50)
      case .firstPage:
        store.prefix(100) + Data(repeating: 0xFF, count: 3996) + store.dropFirst(4096)
      }
    }

    var code: InstarError.Code {
      switch self {
      case .text, .empty: .notAStore
      case .random: .encryptedStore
      case .half, .header, .firstPage: .corruptStore
      }
    }
  }

  @Test(
    "a restore of a file that SQLite cannot open is refused, and its advice, as that of migrate and verify, puts the file aside and the backup in its place",
    arguments: Ruin.allCases)
  private func unusableStore(ruin: Ruin) async throws {
    let store = try BoxStore("it's fine", in: folder, journalMode: "delete")
    _ = try await migrate(store)
    #expect(chmod(store.path, 0o640) == 0)
    // Nobody else can give a file to another group.
    if geteuid() == 0 { #expect(chown(store.path, 4001, 4002) == 0) }
    var before = stat()
    #expect(stat(store.path, &before) == 0)
    let whole = try #require(FileManager.default.contents(atPath: store.path))
    let garbage = ruin.bytes(of: whole)
    try garbage.write(to: URL(filePath: store.path))
    // A log may have what the app wrote last.
    let log = try folder.write("a log", to: "it's fine.store-wal")
    let refused = try await run("restore", store.path)
    let error = try #require(try report(refused).error)
    #expect(error.code == ruin.code && error.state == "unchanged")
    let next = try #require(error.next)
    // Its app may have encrypted it.
    if ruin != .random {
      // Other commands than `restore` do not know that the file is to be a store.
      let advice = [.text, .empty].contains(ruin) ? "if it was a store, \(next)" : next
      let migration = try report(
        try await run("migrate", store.path, "--plugin", try await FixturePlugins.boxes.value))
      #expect(migration.error?.code == ruin.code && migration.error?.next == advice)
      let verification = try await run("verify", store.path).objects(VerificationReport.self)
      #expect(verification.first?.errors.map(\.next) == [advice])
    }
    try await follow(next)
    #expect(try store.sizes() == Array(0..<50))
    #expect(holds.count == 1)
    let held = try report(
      try await run("migrate", store.path, "--plugin", try await FixturePlugins.boxes.value))
    #expect(held.error?.code == .heldStore)
    #expect(FileManager.default.contents(atPath: store.path + ".damaged") == garbage)
    // The header of this one is whole: SQLite removes the log of a store that is not in that mode.
    if ruin != .firstPage {
      #expect(try folder.text(of: "it's fine.store.damaged-wal") == "a log")
    }
    #expect(access(log, F_OK) != 0)
    var after = stat()
    #expect(stat(store.path, &after) == 0 && after.st_mode == before.st_mode)
    #expect(after.st_uid == before.st_uid && after.st_gid == before.st_gid)
  }

  /// Runs the commands of an advice as they are pasted.
  private func follow(_ advice: String) async throws {
    let command = try #require(
      advice.firstRange(of: "run: ").map { String(advice[$0.upperBound...]) })
    let path =
      CommandLineTool.productsFolder.path + ":"
      + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
    let followed = try await Program.run("env", ["PATH=\(path)", "sh", "-c", command])
    #expect(followed.status == 0, Comment(rawValue: followed.messages))
  }

  @Test("an interrupted restore of a store that is gone leaves neither a hold nor a keeper")
  func interruptedCopy() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    _ = try await migrate(store)
    try FileManager.default.removeItem(atPath: store.path)
    let (pid, marker) = (folder.path("pid"), folder.path("at-work"))
    try folder.makePrograms(
      keeper: "echo $$ > '\(pid)'; : > '\(marker)'; exec /bin/sleep 600")
    let answer = try await CommandLineTool.run(
      ["restore", store.path, "--to", store.path, "--json"] + state,
      environment: ["INSTAR_BUILD_DIR": folder.path("programs")]
    ) { [folder] command in
      try await wait("the keeper") { access(marker, F_OK) == 0 }
      #expect(folder.names("state/holds").filter { $0.hasSuffix(".json") }.count == 1)
      #expect(kill(command, SIGINT) == 0)
    }
    #expect(answer.status == 1, Comment(rawValue: answer.messages))
    let error = try #require(try answer.objects(CopyFailure.self).first).error
    #expect(error.code == .interrupted && error.store == store.path, "\(error)")
    #expect(holds == [] && access(store.path, F_OK) != 0)
    let keeper = try #require(
      Int32(try folder.text(of: "pid").trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(kill(keeper, 0) != 0)
    #expect(try await run("restore", store.path, "--to", store.path).status == 0)
    #expect(holds.count == 1)
  }

  @Test("a store is restored although another one, with an interrupted run, cannot be recovered")
  func besideUnrecoverable() async throws {
    let gone = folder.path("gone/a.store")
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    let phase = PhaseRecord(run: "R9", store: gone, phase: .cutover, startedAt: 1)
    let own = try StateFolder(path: folder.path("state"))
    let journal = try RunJournal.start(run: phase.run, store: gone, in: own)
    try journal.enter(phase)
    journal.unlock()
    let answer = try await run("restore", gone, store.path)
    #expect(answer.status == 5, Comment(rawValue: answer.messages))
    let reports = try answer.objects(RunReport.self)
    #expect(reports.map(\.store) == [gone, store.path])
    #expect(reports.map(\.result) == [.refused, .restored])
    #expect(reports.first?.error?.code == .missingStore)
    #expect(try store.version() == Schema.Version(1, 0, 0))
  }

  @Test("the error of a restore of a link names the store to restore")
  func link() async throws {
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    let link = folder.path("link.store")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: store.path)
    let answer = try await run("restore", link)
    #expect(answer.status == 3)
    let error = try #require(try report(answer).error)
    #expect(error.code == .unsafePath && error.next?.contains("'\(store.path)'") == true)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test(
    "restore --to makes a file with the mode of the store; for a store that is gone, only for its owner"
  )
  func modeOfCopy() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    _ = try await migrate(store)
    func modeOfCopy(_ name: String) async throws -> mode_t {
      #expect(try await run("restore", store.path, "--to", folder.path(name)).status == 0)
      var status = stat()
      try #require(stat(folder.path(name), &status) == 0)
      return status.st_mode & 0o777
    }
    try #require(chmod(store.path, 0o640) == 0)
    #expect(try await modeOfCopy("a") == 0o640)
    try FileManager.default.removeItem(atPath: store.path)
    #expect(try await modeOfCopy("b") == 0o600)
  }

  @Test(
    "restore --to says what to do where its file cannot be made",
    arguments: ["none/old.store", "taken"])
  func unusableTarget(name: String) async throws {
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    try FileManager.default.createDirectory(
      atPath: folder.path("taken"), withIntermediateDirectories: false)
    let refused = try await run("restore", store.path, "--to", folder.path(name))
    #expect(refused.status == 1)
    let error = try #require(try refused.objects(CopyFailure.self).last).error
    #expect(error.code == .outputFailed && error.next != nil)
    #expect(folder.names("taken") == [])
  }

  @Test(
    "a restore and a migration say how to allow the owner to write the store",
    .enabled(if: geteuid() == 0, "becoming another user needs root"))
  func readOnly() async throws {
    let owner: UInt32 = 4001
    #expect(chmod(folder.path, 0o755) == 0)
    try FileManager.default.createDirectory(
      atPath: folder.path("srv"), withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o755])
    let made = try BoxStore("fine", in: folder, journalMode: "delete")
    let store = BoxStore(path: folder.path("srv/fine.store"))
    try FileManager.default.moveItem(atPath: made.path, toPath: store.path)
    for path in [folder.path("srv"), store.path] { try #require(chown(path, owner, owner) == 0) }
    try #require(chmod(store.path, 0o444) == 0)
    let unwritable = try await run(
      "migrate", store.path, "--plugin", try await FixturePlugins.boxes.value)
    let advice = try report(unwritable).error?.next
    #expect(advice?.contains("chmod u+rw '\(store.path)'") == true, "\(unwritable.output)")
    try #require(chmod(store.path, 0o644) == 0)
    let migration = try await migrate(store)
    try #require(chmod(store.path, 0o444) == 0)

    let error = try #require(try report(try await run("restore", store.path)).error)
    #expect(error.state?.hasPrefix("unchanged") == true)
    #expect(!error.description.contains("migrated clone"))
    let next = try #require(error.next, Comment(rawValue: error.description))
    #expect(next.contains("chmod u+w '\(store.path)'"), Comment(rawValue: next))
    #expect(next.contains("instarctl restore --run '\(migration.run)' '\(store.path)'"))
  }

  // MARK: Kills

  private func children(of parent: Int32) -> [Int32] {
    let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return entries.compactMap(Int32.init).filter { pid in
      guard let line = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
      else { return false }
      return line.split(separator: ")").last?.split(separator: " ").dropFirst().first
        == "\(parent)"
    }
  }

  /// The content before a restore and after it may have the same version: the store was restored once, and then an app
  /// wrote.
  @Test(
    "a restore that is killed at a random instant leaves the whole old or the whole new content, and the ledger says which",
    arguments: ["delete", "wal"], [false, true])
  func killed(journalMode: String, hasSameVersion: Bool) async throws {
    let plugin = try await FixturePlugins.boxes.value
    let store = try BoxStore("fine", boxes: 60, in: folder, journalMode: journalMode)
    try write("UPDATE ZBOX SET ZNAME = hex(zeroblob(50000))", to: store)
    let first = try await migrate(store)
    if hasSameVersion {
      #expect(try report(try await run("restore", store.path)).result == .restored)
    }
    var random = SeededGenerator(seed: Self.seed)
    var killed = 0
    for attempt in 0..<6 {
      let place: Comment = "seed \(Self.seed), attempt \(attempt) of \(journalMode)"
      // The sum tells the two contents apart.
      try write("UPDATE ZBOX SET ZSIZE = ZSIZE + 100000", to: store)
      _ = try await run("release", store.path)
      let old = try store.sizes()
      let known = try await history.count
      let waitsForCutover = Bool.random(using: &random)
      // The first one is killed at once: later its keeper may have ended.
      let delay =
        attempt == 0
        ? 0 : UInt32.random(in: 0...(waitsForCutover ? 20_000 : 80_000), using: &random)
      let killsCommand = Bool.random(using: &random)
      let earlierBackups = backups.count
      let restore = try ChildProcess.start(
        executable: CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
        arguments: ["restore", store.path, "--run", first.run] + state + ["--json"],
        environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
      while (try? restore.wait(deadline: .now)) == nil {
        if waitsForCutover
          ? backups.count > earlierBackups
          : folder.names(".instar").contains(where: { $0.hasPrefix("run-") })
        {
          usleep(delay)
          let keepers = children(of: restore.pid)
          if killsCommand { restore.kill() }
          killed += keepers.count { Glibc.kill($0, SIGKILL) == 0 }
          break
        }
        usleep(500)
      }
      _ = try restore.wait(deadline: soon())

      // Recovers, and then finds no such run.
      let answer = try await run("restore", store.path, "--run", "none")
      #expect(answer.status == 5, place)
      #expect(folder.names("state/phases").filter { $0.hasSuffix(".json") } == [], place)
      let version = try store.version()
      let last = try await history.dropFirst(known).last
      if try store.sizes() == old {
        // Without a line it was killed before it asked for its first phase.
        #expect(last?.result != .restored, place)
        #expect(version == (hasSameVersion ? first.from : first.to), place)
        #expect(backups.count == earlierBackups, place)
        #expect(holds == [], place)
      } else {
        #expect(try store.sizes() == Array(0..<60), place)
        #expect(version == Schema.Version(1, 0, 0), place)
        #expect(last?.result == .restored && last?.restoredRun == first.run, place)
        #expect(backups.count == earlierBackups + 1, place)
        #expect(holds.count == 1, place)
      }
      #expect(
        folder.names(".instar").allSatisfy { $0.hasSuffix(".backup") || $0.hasSuffix(".json") },
        place)
      if !hasSameVersion, version == Schema.Version(1, 0, 0) {
        _ = try await run("release", store.path)
        #expect(
          try report(try await run("migrate", store.path, "--plugin", plugin)).result == .migrated)
      }
    }
    #expect(killed > 0, "seed \(Self.seed): no keeper was killed")
  }
}
