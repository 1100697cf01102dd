import Foundation
import GRDB
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Backups")
struct BackupsTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A line of `instarctl backups --json`.
  private struct Line: Decodable {
    var run: String
    var store: String
    var backup: String
    var state: String
    var bytes: Int64?
    var copy: String?
    var manifest: BackupManifest?
    var reason: String?
    var error: InstarError?
  }

  /// An answer of `instarctl restore --json` that failed.
  private struct Failure: Decodable {
    var error: InstarError
  }

  private func run(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(
      arguments + ["--state-dir", folder.path("state"), "--json"])
  }

  private func backups(_ arguments: String...) async throws -> (status: Int32, lines: [Line]) {
    let answer = try await CommandLineTool.run(
      ["backups"] + arguments + ["--state-dir", folder.path("state"), "--json"])
    return (answer.status, try answer.objects(Line.self))
  }

  /// A store with a migration and so many restores: one backup more than these.
  private func makeStore(restores: Int) async throws -> BoxStore {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", store.path, "--plugin", plugin).status == 0)
    for _ in 0..<restores { #expect(try await run("restore", store.path).status == 0) }
    return store
  }

  @Test("backups are listed with size and state, and a deleted one is listed as missing")
  func list() async throws {
    let store = try await makeStore(restores: 1)
    let listed = try await backups("list", store.path)
    #expect(listed.lines.map(\.state) == ["present", "present"])
    #expect(listed.lines.allSatisfy { $0.bytes.map { $0 > 0 } == true })
    try FileManager.default.removeItem(atPath: listed.lines[0].backup)
    #expect(try await backups("list").lines.map(\.state) == ["missing", "present"])
    let verified = try await backups("verify")
    #expect(verified.status == 5 && verified.lines.map(\.state) == ["missing", "sound"])
  }

  @Test("a backup that somebody deleted is missing until prune removes it from the list")
  func deleted() async throws {
    let store = try await makeStore(restores: 2)
    let all = try await backups("list").lines
    for backup in all.prefix(2) { try FileManager.default.removeItem(atPath: backup.backup) }
    let verified = try await backups("verify")
    #expect(verified.lines.map(\.state) == ["missing", "missing", "sound"])
    let prune = "instarctl backups prune --keep 3 '\(store.path)' --state-dir "
    #expect(verified.lines[0].error?.next?.contains(prune) == true)
    let dry = try await backups("prune", "--dry-run", "--keep", "3", store.path)
    #expect(dry.lines.map(\.state) == ["surplus", "surplus"])
    #expect(try await backups("list").lines.count == 3)

    let pruned = try await backups("prune", "--keep", "3", store.path)
    #expect(pruned.status == 0 && pruned.lines.map(\.run) == all.prefix(2).map(\.run))
    #expect(pruned.lines.allSatisfy { $0.state == "removed" && $0.reason == "its file is gone" })
    let again = try await backups("verify")
    #expect(again.status == 0 && again.lines.map(\.run) == [all[2].run])
    #expect(folder.names(".instar").count == 2, "one backup and its manifest")
  }

  @Test("a backup whose folder is gone stays in the list: its disk may not be mounted")
  func missingFolder() async throws {
    _ = try await makeStore(restores: 0)
    try FileManager.default.moveItem(
      atPath: folder.path(".instar"), toPath: folder.path("away"))
    let verified = try await backups("verify")
    #expect(verified.status == 5)
    #expect(verified.lines.first?.error?.next?.hasPrefix("if its disk is not mounted") == true)
    #expect(try await backups("prune").lines.isEmpty)
    try FileManager.default.moveItem(
      atPath: folder.path("away"), toPath: folder.path(".instar"))
    #expect(try await backups("verify").lines.map(\.state) == ["sound"])
  }

  @Test(
    "a backup that was deleted with its copy, or with its folder, is missing until prune is told to forget it",
    arguments: [true, false])
  func forgotten(hasCopy: Bool) async throws {
    let store = try await makeStore(restores: 1)
    let copies = folder.path("copies")
    if hasCopy {
      try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
      #expect(try await backups("copy", "--backup-folder", copies).lines.count == 2)
      let oldest = try await backups("list").lines[0]
      for file in [oldest.backup, try #require(oldest.copy)] {
        try FileManager.default.removeItem(atPath: file)
      }
    } else {
      try FileManager.default.removeItem(atPath: folder.path(".instar"))
    }
    let missing = hasCopy ? ["missing"] : ["missing", "missing"]
    let left = hasCopy ? ["sound"] : []
    #expect(try await backups("prune").lines.isEmpty)
    let verified = try await backups("verify")
    #expect(verified.status == 5 && verified.lines.map(\.state) == missing + left)
    let advice = try #require(verified.lines[0].error?.next)
    #expect(
      advice.contains(
        "run: instarctl backups prune --missing --keep 2 '\(store.path)' --state-dir "),
      "\(advice)")
    let dry = try await backups("prune", "--missing", "--dry-run")
    #expect(dry.lines.map(\.state) == missing.map { _ in "surplus" })

    let pruned = try await backups("prune", "--missing", "--keep", "2", store.path)
    #expect(pruned.status == 0 && pruned.lines.map(\.state) == missing.map { _ in "removed" })
    let reason = hasCopy ? "its file and its copy are gone" : "its file is gone"
    #expect(pruned.lines.allSatisfy { $0.reason == reason })
    let again = try await backups("verify")
    #expect(again.status == 0 && again.lines.map(\.state) == left)
    guard hasCopy else { return }
    #expect(folder.names("copies").count == 2 && folder.names(".instar").count == 2)
    let removals = folder.path("state/ledger/removed.jsonl")
    #expect(try !String(contentsOfFile: removals, encoding: .utf8).contains("leavesCopy"))
  }

  @Test("a verification of backups finds a changed byte")
  func verify() async throws {
    let store = try await makeStore(restores: 1)
    #expect(try await backups("verify", store.path).status == 0)
    let listed = try await backups("list").lines
    try flipByte(in: listed[1].backup)
    let verified = try await backups("verify", store.path)
    #expect(verified.status == 3 && verified.lines.map(\.state) == ["sound", "damaged"])
    #expect(verified.lines[1].error?.code == .damagedBackup)
    // To verify the backups is what was just done.
    let list = "run: instarctl backups list '\(store.path)' --state-dir '\(folder.path("state"))'"
    #expect(verified.lines[1].error?.next?.hasSuffix(list) == true)
  }

  @Test(
    "the backups of several stores are verified in the order in which they were made, and counted")
  func verifySeveral() async throws {
    let first = try await makeStore(restores: 1)
    let second = try BoxStore("second", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", second.path, "--plugin", plugin).status == 0)
    #expect(try await run("restore", first.path).status == 0)
    let listed = try await backups("list").lines
    #expect(listed.map(\.store) == [first.path, first.path, second.path, first.path])
    try FileManager.default.removeItem(atPath: listed[0].backup)
    try flipByte(in: listed[2].backup)
    let verified = try await backups("verify", second.path, first.path)
    #expect(verified.lines.map(\.run) == listed.map(\.run))
    #expect(verified.lines.map(\.state) == ["missing", "sound", "damaged", "sound"])
    let text = try await CommandLineTool.run(
      "backups", "verify", "--state-dir", folder.path("state"))
    #expect(
      text.output == "\(listed[1].backup): sound\n\(listed[3].backup): sound\n", "\(text.output)")
    #expect(
      text.messages.hasSuffix("\n4 backups: 2 sound, 1 damaged, 1 missing\n"), "\(text.messages)")
    #expect(text.status == 3)
    let one = try await CommandLineTool.run(
      "backups", "verify", second.path, "--state-dir", folder.path("state"))
    #expect(!one.messages.contains("backup:"), "\(one.messages)")
  }

  @Test("if the state folder is lost, backups are found by their manifests")
  func lostStateFolder() async throws {
    let store = try await makeStore(restores: 1)
    let before = try await backups("list", store.path).lines
    try FileManager.default.removeItem(atPath: folder.path("state"))
    let lost = try await run("backups", "list")
    #expect(try lost.status == 5 && lost.errors().map(\.code) == [.missingFile])
    let found = try await backups("list", store.path).lines
    #expect(found.map(\.run) == before.map(\.run))
    #expect(found.map(\.backup) == before.map(\.backup))
    #expect(found.map(\.manifest) == before.map(\.manifest) && found[0].manifest != nil)
    try flipByte(in: found[1].backup)
    #expect(try await backups("verify", store.path).lines.map(\.state) == ["sound", "damaged"])
    let restored = try await run("restore", store.path, "--run", found[0].run)
    #expect(restored.status == 0, Comment(rawValue: restored.output))
    // The new ledger knows the store now, so its other backups are known without naming it.
    #expect(try await backups("list").lines.count == 3)
    #expect(try await backups("prune", "--keep", "1").lines.contains { $0.state == "removed" })
    let left = try await backups("list").lines.map(\.backup)
    #expect(left.allSatisfy { FileManager.default.fileExists(atPath: $0) })
    #expect(folder.names(".instar").count == left.count * 2)
  }

  @Test("a file that is not the manifest of the backup beside it is ignored")
  func foreignManifests() async throws {
    let store = try await makeStore(restores: 0)
    let backup = try #require(try await backups("list").lines.first?.backup)
    let manifest = String(backup.dropLast("backup".count)) + "json"
    try FileManager.default.removeItem(atPath: folder.path("state/ledger"))
    for text in ["", "{}", "{\"run\":\"../x\"}", "not JSON"] {
      try Data(text.utf8).write(to: URL(filePath: manifest))
      #expect(try await backups("list", store.path).lines.isEmpty)
    }
    try FileManager.default.removeItem(atPath: manifest)
    #expect(mkfifo(manifest, 0o600) == 0)
    #expect(try await backups("list", store.path).lines.isEmpty)
  }

  @Test("backups have a verified copy in another folder, which verify, restore and prune know")
  func copies() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    try FileManager.default.createDirectory(
      atPath: folder.path("copies"), withIntermediateDirectories: false)
    let answer = try await run(
      "migrate", store.path, "--plugin", plugin, "--backup-folder", folder.path("copies"))
    let report = try #require(try answer.objects(RunReport.self).first)
    let (backup, copy) = (try #require(report.backup), try #require(report.backupCopy))
    #expect(copy.hasPrefix(folder.path("copies") + "/"))
    #expect(
      FileManager.default.contents(atPath: copy) == FileManager.default.contents(atPath: backup))
    #expect(folder.names("copies").count == 2, "copy and manifest")
    #expect(try await backups("list").lines.map(\.copy) == [copy])
    #expect(try await backups("verify").lines.map(\.state) == ["sound"])

    try flipByte(in: copy)
    let damaged = try await backups("verify").lines
    #expect(damaged.map(\.state) == ["damaged"])
    #expect(damaged.first?.error?.cause.contains(copy) == true)
    try flipByte(in: copy)

    try FileManager.default.removeItem(atPath: backup)
    let restored = try await run("restore", store.path)
    let restore = try #require(try restored.objects(RunReport.self).first)
    #expect(restore.result == .restored, "\(String(describing: restore.error))")
    #expect(restore.notes.contains { $0.contains(copy) })
    #expect(try store.version() == Schema.Version(1, 0, 0))
  }

  @Test("a backup and its copy are removed together")
  func prunedCopies() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    try FileManager.default.createDirectory(
      atPath: folder.path("copies"), withIntermediateDirectories: false)
    _ = try await run(
      "migrate", store.path, "--plugin", plugin, "--backup-folder", folder.path("copies"))
    #expect(try await run("restore", store.path).status == 0)
    let pruned = try await backups("prune", "--keep", "1")
    #expect(pruned.lines.map(\.state) == ["removed"])
    #expect(folder.names("copies").isEmpty)
    #expect(folder.names(".instar").count == 2, "one backup and its manifest")
  }

  @Test(
    "backups are removed while the disk with their copies is not mounted, and the copies when it is mounted again",
    arguments: [true, false])
  func absentCopies(hasMountPoint: Bool) async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    let (copies, away) = (folder.path("copies"), folder.path("away"))
    try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
    let options = ["--backup-folder", copies]
    _ = try await run("migrate", store.path, "--plugin", plugin, options[0], options[1])
    #expect(try await run("restore", store.path).status == 0)
    #expect(try await backups("copy", options[0], options[1]).lines.map(\.state) == ["copied"])
    #expect(folder.names("copies").count == 4)

    try FileManager.default.moveItem(atPath: copies, toPath: away)
    if hasMountPoint {
      try FileManager.default.createDirectory(atPath: copies, withIntermediateDirectories: false)
    }
    #expect(try await backups("prune", "--keep", "1").lines.map(\.state) == ["removed"])
    let left = try await backups("list").lines
    #expect(left.map(\.state) == ["present"] && folder.names(".instar").count == 2)
    func removals() throws -> [Bool] {
      try String(contentsOfFile: folder.path("state/ledger/removed.jsonl"), encoding: .utf8)
        .split(separator: "\n").map { $0.contains("\"leavesCopy\":true") }
    }
    #expect(try removals() == [true])

    if hasMountPoint { try FileManager.default.removeItem(atPath: copies) }
    try FileManager.default.moveItem(atPath: away, toPath: copies)
    #expect(try await backups("list").lines.map(\.state) == ["copyOnly", "present"])
    // Damage of the copy of a sound backup stops nothing.
    try flipByte(in: try #require(left.first?.copy))
    #expect(try await backups("prune", "--keep", "1").lines.map(\.state) == ["removed"])
    #expect(try await backups("list").lines.map(\.state) == ["present"])
    #expect(folder.names("copies").count == 2)
    #expect(try removals() == [true, false])
  }

  @Test("a run does not begin without a folder that can have copies, if copies are wanted")
  func noFolder() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    try FileManager.default.createDirectory(
      atPath: folder.path("other/.instar"), withIntermediateDirectories: true)
    let unusable = [
      ("copies", InstarError.Code.missingFile, "the folder does not exist"),
      ("fine.store", .missingFile, "not a folder"),
      ("other/.instar", .outputFailed, "Instar keeps the backups of stores in this folder"),
    ]
    for (name, code, cause) in unusable {
      let answer = try await run(
        "migrate", store.path, "--plugin", plugin, "--backup-folder", folder.path(name))
      #expect(answer.status != 0)
      let error = try #require(try answer.errors().first, "\(answer.output)")
      #expect(error.code == code && error.cause == cause && error.what.contains(folder.path(name)))
    }
    #expect(try store.version() == Schema.Version(1, 0, 0))
  }

  @Test(
    "no backup is copied to a folder that is a file, and the error says that it is not a folder")
  func fileAsFolder() async throws {
    let store = try await makeStore(restores: 0)
    let file = try folder.write("", to: "file")
    let copied = try await backups("copy", store.path, "--backup-folder", file)
    #expect(copied.status == 1)
    #expect(copied.lines.map(\.error?.cause) == ["'\(file)' is not a folder"])
  }

  @Test("a store without backups is named in a note, and backups of other stores do not count")
  func ofOtherStore() async throws {
    let store = try await makeStore(restores: 0)
    let other = try BoxStore("slow", in: folder)
    #expect(store.path != other.path)
    let answer = try await CommandLineTool.run(
      "backups", "verify", other.path, "--state-dir", folder.path("state"))
    #expect(answer.status == 0)
    #expect(
      answer.messages
        == "no backups of '\(other.path)' in the ledger of '\(folder.path("state"))'\n")
  }

  @Test("prune removes backups down to a number, and a dry run removes none")
  func prune() async throws {
    let store = try await makeStore(restores: 3)
    let all = try await backups("list").lines
    let rehearsed = try await backups("prune", "--dry-run", "--keep", "2", store.path)
    #expect(rehearsed.lines.map(\.run) == all.prefix(2).map(\.run))
    #expect(rehearsed.lines.allSatisfy { $0.state == "surplus" && $0.reason != nil })
    let said = try await CommandLineTool.run(
      ["backups", "prune", "--dry-run", "--keep", "2", "--state-dir", folder.path("state")])
    #expect(said.output.contains("would be removed (") && !said.output.contains(": removed"))
    #expect(try await backups("list").lines.count == 4)
    let pruned = try await backups("prune", "--keep", "2", store.path)
    #expect(pruned.status == 0 && pruned.lines.map(\.run) == all.prefix(2).map(\.run))
    #expect(pruned.lines.allSatisfy { $0.state == "removed" && $0.reason != nil })
    // What was removed on purpose is not missing.
    #expect(try await backups("list").lines.map(\.run) == all.suffix(2).map(\.run))
    #expect(folder.names(".instar").count == 4)
    let gone = try await run("restore", store.path, "--run", all[0].run)
    #expect(gone.status == 5)
    #expect(try await run("restore", store.path).status == 0)
  }

  @Test("backups are removed if they are too large together, or if one is too old")
  func pruneBySizeAndAge() async throws {
    let store = try BoxStore("fine", boxes: 20_000, in: folder)
    let plugin = try await FixturePlugins.boxes.value
    #expect(try await run("migrate", store.path, "--plugin", plugin).status == 0)
    for _ in 0..<3 { #expect(try await run("restore", store.path).status == 0) }
    let all = try await backups("list").lines
    let bytes = all.reduce(0) { $0 + ($1.bytes ?? 0) }
    let limit = 1 + ((bytes / 2) >> 20)
    let tooMany = try await backups("prune", "--size", "\(limit)MiB", store.path).lines
    #expect(tooMany.allSatisfy { $0.state == "removed" && $0.reason?.contains("MiB") == true })
    let left = try await backups("list").lines
    #expect(left.map(\.run) == all.suffix(left.count).map(\.run))
    try #require(left.count > 1)
    #expect(left.reduce(0) { $0 + ($1.bytes ?? 0) } <= limit << 20)

    // Two hours ago by the clock, as the ledger has it.
    let ledger = folder.path("state/ledger/ledger.jsonl")
    let old = try #require(left[0].manifest?.madeAt)
    let text = try String(contentsOfFile: ledger, encoding: .utf8)
    let aged = text.replacing("\"madeAt\":\(old)", with: "\"madeAt\":\(old - 7200)")
    #expect(aged != text)
    try aged.write(toFile: ledger, atomically: false, encoding: .utf8)
    let tooOld = try await backups("prune", "--age", "1h", store.path).lines
    #expect(tooOld.map(\.run) == [left[0].run])
    #expect(tooOld.first?.reason == "older than 1 h")
    #expect(try await backups("verify").lines.map(\.run) == left.dropFirst().map(\.run))
  }

  /// Two stores with three backups each.
  private func makeTwoStores() async throws -> [Line] {
    let plugin = try await FixturePlugins.boxes.value
    let stores = try ["fine", "more"].map { try BoxStore($0, boxes: 20_000, in: folder) }
    for store in stores {
      #expect(try await run("migrate", store.path, "--plugin", plugin).status == 0)
    }
    // By turns: the oldest are of both.
    for _ in 0..<2 {
      for store in stores { #expect(try await run("restore", store.path).status == 0) }
    }
    let all = try await backups("list").lines
    try #require(all.count == 6)
    return all
  }

  /// A total in MiB that the newest four of six backups fit in, and five do not.
  private func totalOfFour(_ all: [Line]) throws -> Int64 {
    let four = all.suffix(4).reduce(0) { $0 + ($1.bytes ?? 0) }
    let total = (four >> 20) + 1
    try #require(four + (all[1].bytes ?? 0) > total << 20)
    return total
  }

  @Test("when the backups of several stores are too large together, the oldest are removed")
  func pruneByTotalSize() async throws {
    let all = try await makeTwoStores()
    let total = try totalOfFour(all)
    let stores = [all[1].store, all[0].store]
    // The order in which the stores are named says nothing about age.
    #expect(try await backups("list", stores[0], stores[1]).lines.map(\.run) == all.map(\.run))
    let pruned = try await backups("prune", "--total-size", "\(total)MiB", stores[0], stores[1])
    #expect(pruned.status == 0 && Set(pruned.lines.map(\.run)) == Set(all.prefix(2).map(\.run)))
    #expect(
      pruned.lines.allSatisfy {
        $0.state == "removed" && $0.reason?.hasSuffix("of backups of all stores") == true
      })
    // Each store keeps its newest one, whatever the size.
    let most = try await backups("prune", "--total-size", "0MiB").lines
    #expect(Set(most.map(\.run)) == Set(all[2...3].map(\.run)))
    #expect(try await backups("verify").lines.map(\.state) == ["sound", "sound"])
    #expect(try await run("backups", "prune", "--total-size", "many").status == 2)
  }

  @Test("the daemon removes the oldest backups of a watch where all together are too large")
  func daemonTotalSize() async throws {
    let all = try await makeTwoStores()
    let output = try await outputOfCheck("backups: {totalSize: \(try totalOfFour(all))MiB}")
    for backup in all.prefix(2) {
      #expect(output.contains("removed the backup '\(backup.backup)'"), Comment(rawValue: output))
    }
    #expect(try await backups("list").lines.map(\.run) == all.suffix(4).map(\.run))
  }

  /// Runs instard until it has checked the backups.
  private func outputOfCheck(_ setting: String) async throws -> String {
    let fixture = try DaemonFixture(in: folder, plugins: [])
    // The ledger names stores by their paths, so the folder of the watch is that of the store.
    try fixture.watchWholeFolder()
    try fixture.configure("checkBackups: 1s\n\(setting)")
    let daemon = try fixture.start()
    try await fixture.wait(for: "INSTAR_EVENT=backups-verified", in: daemon)
    let output = daemon.capturedOutput
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    return output
  }

  @Test("a backup that cannot be removed is present, with the error")
  func keptBackup() async throws {
    let store = try await makeStore(restores: 1)
    let oldest = try await backups("list").lines[0]
    // Not even root can remove a folder as a file.
    try FileManager.default.removeItem(atPath: oldest.backup)
    try FileManager.default.createDirectory(
      atPath: oldest.backup, withIntermediateDirectories: false)
    let pruned = try await backups("prune", "--keep", "1", store.path)
    #expect(pruned.status == 3 && pruned.lines.map(\.state) == ["present"])
    #expect(pruned.lines[0].error?.what.hasPrefix("cannot remove the backup") == true)
  }

  @Test("the last good backup is never removed, however many damaged ones are newer")
  func lastGood() async throws {
    let store = try await makeStore(restores: 3)
    let all = try await backups("list").lines
    for damaged in all.suffix(2) { try flipByte(in: damaged.backup) }
    let pruned = try await backups("prune", "--keep", "1", store.path)
    #expect(pruned.status == 3)
    #expect(pruned.lines.filter { $0.state == "damaged" }.map(\.run) == [all[3].run, all[2].run])
    // The second is the newest sound one, so it stays although only one is to be kept.
    #expect(pruned.lines.filter { $0.state == "removed" }.map(\.run) == [all[0].run, all[2].run])
    #expect(FileManager.default.fileExists(atPath: all[1].backup))
    #expect(try await backups("verify", store.path).lines.map(\.state) == ["sound", "damaged"])

    // Where none is sound, all stay for whoever repairs them.
    try flipByte(in: all[1].backup)
    let none = try await backups("prune", "--keep", "1", store.path)
    #expect(!none.lines.isEmpty && none.lines.allSatisfy { $0.state == "damaged" })
    #expect(folder.names(".instar").count == 4)
  }

  @Test(
    "backups of a damaged store are marked, are not restored, and never replace the last sound one")
  func damagedStore() async throws {
    let store = try await makeStore(restores: 0)
    let (page, size) = try store.read { db in
      (
        try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'ZBOX'") ?? 0,
        try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
      )
    }
    let file = try FileHandle(forUpdating: URL(filePath: store.path))
    try file.seek(toOffset: UInt64((page - 1) * size))
    try file.write(contentsOf: Data(repeating: 0xFF, count: size))
    try file.close()
    // A sound backup replaces a damaged store.
    #expect(try await run("restore", store.path).status == 0)
    #expect(try store.sizes() == Array(0..<50))

    let all = try await backups("list").lines
    #expect(all.map(\.state) == ["present", "damaged"])
    let verified = try await backups("verify")
    #expect(verified.status == 3 && verified.lines.map(\.state) == ["sound", "damaged"])
    #expect(verified.lines[1].error?.code == .damagedBackup)
    let pruned = try await backups("prune", "--keep", "1", store.path)
    #expect(pruned.status == 3 && pruned.lines.map(\.state) == ["damaged"])
    #expect(FileManager.default.fileExists(atPath: all[0].backup))

    for target in [[], ["--to", folder.path("copy.store")]] {
      let answer = try await CommandLineTool.run(
        ["restore", store.path, "--state-dir", folder.path("state"), "--json"] + target)
      #expect(answer.status == 3)
      let error = try #require(try answer.objects(Failure.self).last).error
      #expect(error.code == .damagedBackup)
      #expect(error.next?.contains("restore --run '\(all[0].run)' '\(store.path)'") == true)
    }
    #expect(!folder.names().contains { $0.hasPrefix("copy.store") })
    #expect(try store.sizes() == Array(0..<50))
    #expect(try await run("restore", store.path, "--run", all[0].run).status == 0)
  }

  @Test("backups that this user cannot reach are unreadable, not missing or empty")
  func unreadable() async throws {
    let store = try await makeStore(restores: 0)
    try FileManager.default.moveItem(
      atPath: folder.path(".instar"), toPath: folder.path("aside"))
    // Unlike a closed folder, a link to itself stops root too.
    try FileManager.default.createSymbolicLink(
      atPath: folder.path(".instar"), withDestinationPath: ".instar")
    for command in ["list", "verify"] {
      let answer = try await backups(command, store.path)
      #expect(answer.status != 0 && answer.lines.map(\.state) == ["unreadable"])
      #expect(answer.lines[0].bytes == nil)
      #expect(answer.lines[0].error?.code == .unreadableStore)
      #expect(answer.lines[0].error?.next != nil)
    }
    let restored = try await run("restore", store.path)
    let error = try #require(try restored.objects(Failure.self).last).error
    #expect(error.code == .unreadableStore && error.next != nil)
  }

  @Test("the daemon removes backups that are too many, and verifies a sample")
  func daemon() async throws {
    let made = try await makeStore(restores: 3)
    let all = try await backups("list").lines
    try flipByte(in: all[3].backup)
    let output = try await outputOfCheck("backups: {keep: 2}")
    #expect(output.contains("verified 2 of 2 backups: 1 sound"), Comment(rawValue: output))
    #expect(output.contains("removed the backup '\(all[0].backup)'"))
    #expect(output.contains("removed the backup '\(all[1].backup)'"))
    #expect(output.contains("INSTAR_EVENT=backup-damaged"))
    #expect(try await backups("list", made.path).lines.map(\.run) == all.suffix(2).map(\.run))
  }
}
