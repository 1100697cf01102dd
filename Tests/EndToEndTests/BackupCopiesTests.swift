import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Copies of backups in another folder")
struct BackupCopiesTests {
  static let seed =
    ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    ?? UInt64.random(in: 1...999_999)

  let folder: TemporaryFolder
  private var copies: String { folder.path("copies") }

  init() throws { folder = try TemporaryFolder() }

  /// A line of `instarctl backups --json`.
  private struct Line: Decodable {
    var run: String
    var backup: String
    var state: String
    var bytes: Int64?
    var copy: String?
    var copyBytes: Int64?
    var manifest: BackupManifest?
    var error: InstarError?
  }

  private func run(_ arguments: [String]) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(arguments + ["--state-dir", folder.path("state"), "--json"])
  }

  private func backups(_ arguments: String...) async throws -> [Line] {
    try await run(["backups"] + arguments).objects(Line.self)
  }

  private func migrate(_ store: BoxStore, _ more: String...) async throws -> RunReport {
    let plugin = try await FixturePlugins.boxes.value
    let answer = try await run(["migrate", store.path, "--plugin", plugin] + more)
    return try #require(
      try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
  }

  @Test(
    "copies are compressed if the operator wants it, and are listed, verified and counted as they are"
  )
  func compressed() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let report = try await migrate(
      store, "--backup-folder", copies, "--backup-compression", "zstd")
    let (backup, copy) = (try #require(report.backup), try #require(report.backupCopy))
    #expect(copy.hasPrefix(copies + "/") && copy.hasSuffix(".backup.zst"))
    #expect(folder.names("copies").count == 2, "copy and manifest")
    let listed = try #require(try await backups("list").first)
    let size = { (path: String) throws in
      try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64
    }
    #expect(listed.copy == copy)
    #expect(try listed.copyBytes == size(copy) && listed.bytes == size(backup))
    #expect(try #require(listed.copyBytes) < #require(listed.bytes))
    #expect(try await backups("verify").map(\.state) == ["sound"])

    try flipByte(in: copy)
    let damaged = try #require(try await backups("verify").first)
    #expect(damaged.state == "damaged" && damaged.error?.cause.contains(copy) == true)
  }

  @Test("a compressed copy that alone is left is restored, to the store and to a file")
  func restored() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let report = try await migrate(
      store, "--backup-folder", copies, "--backup-compression", "zstd")
    let (backup, copy) = (try #require(report.backup), try #require(report.backupCopy))
    let content = try #require(FileManager.default.contents(atPath: backup))
    try FileManager.default.removeItem(atPath: backup)
    #expect(try await backups("list").map(\.state) == ["copyOnly"])
    let verified = try #require(try await backups("verify").first)
    #expect(verified.state == "missing" && verified.error?.cause.contains("is sound") == true)

    let written = try await run(["restore", store.path, "--to", folder.path("old.store")])
    #expect(written.status == 0, Comment(rawValue: written.output))
    #expect(FileManager.default.contents(atPath: folder.path("old.store")) == content)

    let answer = try await run(["restore", store.path])
    let restore = try #require(try answer.objects(RunReport.self).first)
    #expect(restore.result == .restored, "\(String(describing: restore.error))")
    #expect(restore.notes.contains { $0.contains(copy) })
    #expect(try store.version() == Schema.Version(1, 0, 0) && store.sizes() == Array(0..<50))
    // The undo of the undo.
    #expect(try await run(["restore", store.path]).status == 0)
    #expect(try store.version() == Schema.Version(2, 0, 0))
    // The limits of a retention find the copy too.
    #expect(try await backups("prune", "--keep", "1").contains { $0.state == "removed" })
    #expect(folder.names("copies").isEmpty)
  }

  @Test("a damaged compressed copy is refused before anything is touched")
  func damagedCopy() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let report = try await migrate(
      store, "--backup-folder", copies, "--backup-compression", "zstd")
    let copy = try #require(report.backupCopy)
    try FileManager.default.removeItem(atPath: try #require(report.backup))
    try flipByte(in: copy)
    let answer = try await run(["restore", store.path])
    let refused = try #require(try answer.objects(RunReport.self).first)
    #expect(refused.result == .refused && refused.error != nil)
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test("a copy that could not be made is made later, from what the ledger knows")
  func madeLater() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    _ = try await migrate(store, "--backup-folder", copies, "--backup-compression", "zstd")
    // As if the disk of the copies had gone away during the run.
    for path in [copies, folder.path("state/ledger/copies.jsonl")] {
      try FileManager.default.removeItem(atPath: path)
    }
    let failed = try #require(try await backups("copy", store.path).first)
    #expect(failed.state == "present" && failed.error?.code == .outputFailed)
    try folder.makeFolder("copies")
    let made = try #require(try await backups("copy", store.path).first)
    #expect(made.state == "copied" && made.copy?.hasSuffix(".backup.zst") == true)
    #expect(try await backups("copy").isEmpty, "there is nothing left to do")
    #expect(try await backups("verify").map(\.state) == ["sound"])
    let history = try await run(["history", store.path]).objects(RunReport.self)
    #expect(history.map(\.backupCopy) == [made.copy])
  }

  @Test("the recovery makes the copy of a run that was cut off before its line in the ledger")
  func recovered() async throws {
    let store = try BoxStore("fine", in: folder)
    // Neither run nor copy can be written to the ledger, as if its supervisor had been killed just before.
    let records = ["ledger", "copies"].map { folder.path("state/ledger/\($0).jsonl") }
    for record in records {
      try FileManager.default.createDirectory(atPath: record, withIntermediateDirectories: true)
    }
    try folder.makeFolder("copies")
    let report = try await migrate(store, "--backup-folder", copies)
    #expect(report.result == .migrated && report.backupCopy == nil)
    let note = try #require(report.notes.first { $0.contains("has no copy in '\(copies)'") })
    #expect(note.contains("run: instarctl backups copy '\(store.path)'"))
    for record in records { try FileManager.default.removeItem(atPath: record) }
    try FileManager.default.removeItem(atPath: copies)
    try folder.makeFolder("copies")
    let plugin = try await FixturePlugins.boxes.value
    let answer = try await run(["migrate", store.path, "--plugin", plugin])
    #expect(answer.messages.contains("copied to \(copies)"), Comment(rawValue: answer.messages))
    let listed = try #require(try await backups("list").first)
    let copy = try #require(listed.copy)
    #expect(
      FileManager.default.contents(atPath: copy)
        == FileManager.default.contents(atPath: listed.backup))
  }

  @Test("a copy that has its name already, as after a crash, is read and recorded")
  func foundCopy() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let copy = try #require(try await migrate(store, "--backup-folder", copies).backupCopy)
    try FileManager.default.removeItem(atPath: folder.path("state/ledger/copies.jsonl"))
    try Data("part".utf8).write(to: URL(filePath: copy + ".1.part"))
    #expect(try await backups("list").map(\.copy) == [nil])
    #expect(try await backups("copy").map(\.copy) == [copy])
    // One that is not the backup is reported, and is not replaced.
    try FileManager.default.removeItem(atPath: folder.path("state/ledger/copies.jsonl"))
    try flipByte(in: copy)
    #expect(try await backups("copy").map(\.error?.code) == [.damagedBackup])
    try FileManager.default.removeItem(atPath: copy)
    #expect(try await backups("copy").map(\.state) == ["copied"])
    #expect(folder.names("copies").count == 2, "the part of an attempt that was cut off is gone")
  }

  @Test(
    "the copy of a backup is that of both stores if the store was copied with its backups, until neither needs it"
  )
  func copiedTree() async throws {
    for name in ["copies", "stores"] { try folder.makeFolder(name) }
    let store = try BoxStore("stores/fine", in: folder)
    let report = try await migrate(store, "--backup-folder", copies)
    let (backup, copy) = (try #require(report.backup), try #require(report.backupCopy))
    try FileManager.default.copyItem(
      atPath: folder.path("stores"), toPath: folder.path("stores2"))
    let other = BoxStore(path: folder.path("stores2/fine.store"))
    #expect(try await run(["restore", other.path]).status == 0)
    let made = try await backups("copy", "--backup-folder", copies, other.path)
    #expect(made.map(\.state) == ["copied", "copied"] && made.first?.copy == copy)
    #expect(folder.names("copies").count == 4, "copies of two runs, each with its manifest")
    #expect(try await backups("list", store.path).map(\.copy) == [copy])
    #expect(try await backups("list", other.path).map(\.copy) == made.map(\.copy))
    for path in [store.path, other.path] {
      let repeated = try await backups("copy", "--backup-folder", copies, path)
      #expect(repeated.isEmpty, "there is nothing left to do")
    }

    try FileManager.default.removeItem(atPath: backup)
    let pruned = try await backups("prune", "--keep", "1", other.path)
    #expect(pruned.map(\.state) == ["removed"] && pruned.first?.copy == nil)
    #expect(try await backups("list", other.path).map(\.state) == ["present"])
    #expect(try await backups("list", store.path).map(\.state) == ["copyOnly"])
    #expect(try await run(["restore", store.path]).status == 0)
    #expect(try store.version() == Schema.Version(1, 0, 0) && store.sizes() == Array(0..<50))

    #expect(try await backups("prune", "--keep", "1", store.path).map(\.copy) == [copy])
    #expect(try await backups("list").map(\.state) == ["present", "present"])
    #expect(folder.names("copies").count == 2, "the copy of the other run and its manifest")
  }

  @Test("a backup is not its own copy, and has none in a folder with backups")
  func ownFolder() async throws {
    let store = try BoxStore("fine", in: folder)
    let backup = try #require(try await migrate(store).backup)
    try folder.makeFolder("other")
    try folder.makeFolder("other/.instar")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path(".instar"))
    for name in [".instar", "link", "other/.instar"] {
      for compression in ["none", "zstd"] {
        let refused = try #require(
          try await backups(
            "copy", store.path, "--backup-folder", folder.path(name),
            "--backup-compression", compression
          ).first)
        #expect(refused.error?.code == .outputFailed && refused.copy == nil, "\(name)")
        #expect(
          refused.error?.cause.contains(name == "other/.instar" ? "keeps" : "the backup itself")
            == true)
      }
    }
    #expect(folder.names("other/.instar").isEmpty)
    #expect(folder.names(".instar").count == 2, "backup and manifest")
    #expect(try await backups("list").map(\.copy) == [nil])
    #expect(FileManager.default.fileExists(atPath: backup))
  }

  @Test("commands that copy a backup with large values at the same time leave the copy whole")
  func simultaneous() async throws {
    let store = folder.path("Photos.store")
    try PhotoStore.make(at: store)
    try folder.makeFolder("copies")
    let plugin = try await FixturePlugins.photos.value
    #expect(try await run(["migrate", store, "--plugin", plugin]).status == 0)
    let states = try await withThrowingTaskGroup(of: [Line].self) { group in
      for _ in 0..<6 { group.addTask { try await backups("copy", "--backup-folder", copies) } }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    // A command that finds the record of another's copy has nothing to do. None waits long for the lock of another.
    #expect(states.contains { $0.state == "copied" })
    #expect(
      states.allSatisfy {
        $0.state == "copied"
          || $0.error?.cause.hasPrefix("another process is copying the backup") == true
      }, "\(states)")
    let listed = try #require(try await backups("list").first)
    #expect(try await backups("verify").map(\.state) == ["sound"])
    let copy = try #require(listed.copy)
    #expect(try PhotoStore.images(of: copy).count == PhotoStore.images(of: listed.backup).count)
    #expect(folder.names("copies").count == 3, "copy, manifest and files")
    #expect(try #require(listed.manifest?.externalBytes) > 5 * 300_000)
  }

  /// Starts `instarctl`, and waits until its keeper runs.
  private func startKeeper(_ arguments: String...) async throws -> ChildProcess {
    let command = try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
      arguments: arguments + ["--state-dir", folder.path("state")],
      environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    let children = "/proc/\(command.pid)/task"
    while (try? command.wait(deadline: .now)) == nil,
      !(try FileManager.default.contentsOfDirectory(atPath: children)).contains(where: {
        FileManager.default.contents(atPath: "\(children)/\($0)/children")?.isEmpty == false
      })
    { try await Task.sleep(for: .milliseconds(5)) }
    return command
  }

  @Test("Ctrl-C ends a copy: the command says so, and leaves the backup and no file")
  func interrupted() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let backup = try #require(try await migrate(store).backup)
    // The copy waits for this lock.
    let lock = try #require(try FolderLock.tryLock(backup))
    let command = try await startKeeper("backups", "copy", store.path, "--backup-folder", copies)
    command.kill(SIGINT)
    #expect(try command.wait(deadline: soon()) == .exited(1))
    #expect(command.capturedOutput.contains("interrupted before the end of this work"))
    #expect(folder.names("copies") == [])
    lock.release()
    let made = try await backups("copy", "--backup-folder", copies, store.path)
    #expect(made.map(\.state) == ["copied"])
  }

  @Test(
    "a copy that another process takes long to make is left to that process, and the message names it"
  )
  func lockedByAnother() async throws {
    let store = try BoxStore("fine", in: folder)
    try folder.makeFolder("copies")
    let backup = try #require(try await migrate(store).backup)
    let other = try OtherProcess(
      """
      import fcntl
      file = open(sys.argv[1])
      fcntl.flock(file, fcntl.LOCK_EX)
      print("locked", flush=True)
      sys.stdin.read()
      """, path: backup)
    let answer = try #require(
      try await backups("copy", store.path, "--backup-folder", copies).first)
    let cause = try #require(answer.error?.cause)
    #expect(cause.hasPrefix("another process is copying the backup"), "\(cause)")
    #expect(cause.contains("; the backup is open in \(other.pid) (python3"), "\(cause)")
    other.finish()
    #expect(folder.names("copies") == [])
  }

  @Test("each backup has a copy, and nothing else is left, however a command was killed")
  func killed() async throws {
    try folder.makeFolder("copies")
    let plugin = try await FixturePlugins.boxes.value
    var random = SeededGenerator(seed: Self.seed)
    var killed = 0
    for attempt in 0..<6 {
      let store = try BoxStore("\(attempt)", in: folder)
      let command = try ChildProcess.start(
        executable: CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
        arguments: [
          "migrate", store.path, "--plugin", plugin, "--state-dir", folder.path("state"),
          "--backup-folder", copies, "--backup-compression", "zstd",
        ], environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
      while (try? command.wait(deadline: .now)) == nil,
        !folder.names(".instar").contains(where: { $0.hasPrefix("\(attempt).store.") })
      {
        usleep(500)
      }
      // The first one at once: later the command may have ended.
      usleep(attempt == 0 ? 0 : UInt32.random(in: 0...40_000, using: &random))
      command.kill()
      if try command.wait(deadline: soon()) == .signaled(SIGKILL) { killed += 1 }

      func migrateAgain() async throws -> RunReport {
        try await migrate(store, "--backup-folder", copies, "--backup-compression", "zstd")
      }
      var report = try await migrateAgain()
      // The keeper of the killed command first ends its step.
      let end = soon()
      while report.error?.code == .busyStore, ContinuousClock.now < end {
        usleep(50_000)
        report = try await migrateAgain()
      }
      #expect(report.error == nil, "seed \(Self.seed), attempt \(attempt)")
      // A command that was killed while it copied has told the ledger where to.
      _ = try await backups("copy", store.path)
      let lines = try await backups("list", store.path)
      #expect(lines.allSatisfy { $0.copyBytes != nil }, "seed \(Self.seed), attempt \(attempt)")
      #expect(lines.count == 1, "seed \(Self.seed), attempt \(attempt)")
    }
    #expect(killed > 0, "seed \(Self.seed): every command ended before it was killed")
    #expect(try await backups("verify").allSatisfy { $0.state == "sound" })
    #expect(folder.names("copies").count == 12, "seed \(Self.seed): \(folder.names("copies"))")
  }

  @Test("the daemon's regular check makes the missing copies, and says what it read back")
  func daemon() async throws {
    try folder.makeFolder("copies")
    let store = try BoxStore("fine", in: folder)
    _ = try await migrate(store)
    #expect(try await run(["restore", store.path]).status == 0)
    let fixture = try DaemonFixture(in: folder, plugins: [])
    try fixture.watchWholeFolder()
    try fixture.configure(
      """
      checkBackups: 1s
      backupFolder: \(copies)
      backupCompression: zstd
      """)
    let daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=backups-verified", in: daemon)
    let output = daemon.capturedOutput
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    let lines = try await backups("list")
    #expect(lines.count == 2 && lines.allSatisfy { $0.copyBytes != nil })
    for line in lines {
      let hash = try #require(line.manifest?.contentHash)
      #expect(
        output.contains("and read it back: its hash matches the manifest: \(hash)"),
        Comment(rawValue: output))
    }
    #expect(folder.names("copies").filter { $0.hasSuffix(".backup.zst") }.count == 2)
  }
}
