import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarSupervisor

@Suite("Backups after the clock was set back")
struct BackupOrderTests {
  let folder: TemporaryFolder
  let state: StateFolder

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    state = try StateFolder(path: folder.path("state"))
  }

  /// Notes a run whose backup was made at that time, and makes the file.
  @discardableResult
  private func note(
    run: String, at time: Double, store: String, copy: String? = nil, externalBytes: Int64? = nil
  ) throws -> String {
    let backup = folder.path("\(run).backup")
    try Data("backup".utf8).write(to: URL(filePath: backup))
    var report = RunReport(run: run, store: store, result: .migrated, startedAt: time)
    report.backup = backup
    report.backupCopy = copy
    report.manifest = BackupManifest(
      run: run, store: store, madeAt: time, bytes: 6, contentHash: "xxh3-128:00",
      externalFiles: 0, externalBytes: externalBytes, format: .plain)
    try state.append(report)
    return backup
  }

  @Test("the newest backup is the one that was made last, whatever the times say")
  func newest() throws {
    let store = folder.path("a.store")
    let times = [5000.0, 9000, 1000, 2000]
    let runs = times.indices.map { "2026010\(9 - $0)T000000Z-00000\($0)" }
    for (run, time) in zip(runs, times) { try note(run: run, at: time, store: store) }
    #expect(try state.backups(of: store).map(\.reference.run) == runs)
    #expect(try state.backup(of: store, run: nil).run == runs[3])
    let kept = BackupRetention(count: 2).surplus(
      of: try state.backups(of: store).map {
        .init(
          run: $0.reference.run, store: store, owner: 0, madeAt: $0.madeAt, bytes: $0.occupiedBytes)
      }, now: 1500)
    #expect(Set(kept.keys.map(\.run)) == Set(runs.prefix(2)))
  }

  @Test("backups are checked within one interval, although the last check lies in the future")
  func check() throws {
    #expect(state.timeToBackupCheck(every: .seconds(60)) == .zero)
    try state.noteBackupCheck()
    #expect(state.timeToBackupCheck(every: .seconds(60)) > .zero)
    let file = folder.path("state/backups-checked")
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: 400 * 86_400)], ofItemAtPath: file)
    #expect(state.timeToBackupCheck(every: .seconds(60)) == .seconds(60))
  }

  @Test(
    "backups count with the size of their copies, and a backup whose copy alone is left is not missing"
  )
  func sizes() throws {
    let store = folder.path("a.store")
    let backup = try note(run: "20260101T000000Z-000001", at: 1000, store: store)
    let reference = try state.backup(of: store, run: nil)
    let copy = folder.path("copy.backup.zst")
    try Data("co".utf8).write(to: URL(filePath: copy))
    try state.noteCopy(BackupCopy(path: copy, bytes: 2, contentHash: "xxh3-128:00"), of: reference)
    #expect(try state.backups(of: store).map(\.occupiedBytes) == [8])
    try FileManager.default.removeItem(atPath: backup)
    let left = try #require(try state.backups(of: store).first)
    #expect(left.isCopyOnly && !left.isMissing && left.occupiedBytes == 2)
    try FileManager.default.removeItem(atPath: copy)
    #expect(try state.backups(of: store).map(\.isMissing) == [true])
  }

  @Test("backups count with their files of large values, in each place where they have some")
  func externalSizes() throws {
    let store = folder.path("a.store")
    let backup = try note(
      run: "20260101T000000Z-000001", at: 1000, store: store, externalBytes: 100)
    let copy = folder.path("copy.backup")
    try Data("backup".utf8).write(to: URL(filePath: copy))
    #expect(try state.backups(of: store).map(\.occupiedBytes) == [106])
    let reference = try state.backup(of: store, run: nil)
    try state.noteCopy(BackupCopy(path: copy, bytes: 6, contentHash: "xxh3-128:00"), of: reference)
    #expect(try state.backups(of: store).map(\.occupiedBytes) == [212])
    try FileManager.default.removeItem(atPath: backup)
    #expect(try state.backups(of: store).map(\.occupiedBytes) == [106])
  }

  @Test("backups have the copy that was made last, not the one in the report of their run")
  func latestCopy() throws {
    let store = folder.path("a.store")
    let (first, last) = (folder.path("first.backup"), folder.path("last.backup"))
    try note(run: "20260101T000000Z-000001", at: 1000, store: store, copy: first)
    let reference = try state.backup(of: store, run: nil)
    #expect(reference.copy == first)
    try state.noteCopy(BackupCopy(path: last, bytes: 6, contentHash: "xxh3-128:00"), of: reference)
    #expect(try state.backup(of: store, run: nil).copy == last)
  }

  @Test(
    "backups of a tree that was moved or copied are found at their new paths, each with its own copy"
  )
  func movedTree() throws {
    let (run, name) = ("20260101T000000Z-000001", "a.store")
    func put(_ place: String) throws -> String {
      let instar = folder.path("\(place)/.instar")
      try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: true)
      let store = folder.path("\(place)/\(name)")
      let backup = try folder.write("b", to: "\(place)/.instar/\(name).\(run).backup", mode: 0o600)
      let manifest = BackupManifest(
        run: run, store: store, madeAt: 1, bytes: 1, contentHash: "xxh3-128:00", externalFiles: 0,
        format: .plain)
      try WireCoder.line(manifest).write(to: URL(filePath: BackupManifest.path(ofBackup: backup)))
      return store
    }
    let old = try put("old")
    var report = RunReport(run: run, store: old, result: .migrated, startedAt: 1)
    report.backup = folder.path("old/.instar/\(name).\(run).backup")
    try state.append(report)
    let copy = try folder.write("c", to: "copy", mode: 0o600)
    let reference = try state.backup(of: old, run: nil)
    try state.noteCopy(BackupCopy(path: copy, bytes: 1, contentHash: ""), of: reference)
    #expect(try state.backups().map(\.reference.store) == [old], "found, and in the ledger")

    let new = try put("new")
    try state.append(RunReport(run: "R2", store: new, result: .failed, startedAt: 2))
    try note(run: "R3", at: 3, store: new)
    func present() throws -> [BackupReference] {
      try state.backups().filter { $0.bytes != nil && $0.reference.run == run }.map(\.reference)
    }
    #expect(try Set(present().map(\.store)) == [old, new])
    #expect(try present().map { [$0.store: $0.copy] }.contains([old: copy]))
    #expect(try present().map { [$0.store: $0.copy] }.contains([new: nil]))
    // The removal of one says nothing about the other.
    let found = try #require(try present().first { $0.store == new })
    try state.noteRemoval(of: found, why: "a test")
    #expect(try state.removedBackups() == [found.identity])
    try FileManager.default.removeItem(atPath: folder.path("old"))
    #expect(try present().map(\.store) == [new])
  }

  @Test("a removed backup of two stores with one copy is listed again only when both are removed")
  func sharedCopy() throws {
    let run = "20260101T000000Z-000001"
    let store = folder.path("a.store")
    let backup = try note(run: run, at: 1000, store: store)
    let copy = try folder.write("backup", to: "copy", mode: 0o600)
    // The other watch spells the folder for copies with a link.
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path)
    let reference = try state.backup(of: store, run: nil)
    var other = reference
    other.store = folder.path("other/a.store")
    for (backup, path) in [(reference, copy), (other, folder.path("link/copy"))] {
      try state.noteCopy(BackupCopy(path: path, bytes: 6, contentHash: ""), of: backup)
    }
    #expect(try state.backups(of: store).map(\.reference.copy) == [copy])
    try FileManager.default.removeItem(atPath: backup)
    #expect(try state.backups(of: store).map(\.isCopyOnly) == [true])
    try state.noteRemoval(of: reference, why: "a test")
    #expect(try state.backups(of: store).isEmpty)
    // The disk with the copy was away when the other one was removed.
    try state.noteRemoval(of: other, why: "a test")
    #expect(try state.backups(of: store).map(\.isCopyOnly) == [true])
  }

  @Test("backups of a manifest with impossible numbers count with numbers that can be added")
  func impossibleManifest() throws {
    let store = folder.path("a.store")
    let run = "20260101T000000Z-000001"
    try FileManager.default.createDirectory(
      atPath: folder.path(".instar"), withIntermediateDirectories: false)
    let backup = try folder.write("b", to: ".instar/a.store.\(run).backup", mode: 0o600)
    let manifest = BackupManifest(
      run: run, store: store, madeAt: 1e300, bytes: .max, contentHash: "xxh3-128:00",
      externalFiles: .max, externalBytes: .max, format: .plain)
    try WireCoder.line(manifest).write(to: URL(filePath: BackupManifest.path(ofBackup: backup)))
    try note(run: "20260101T000000Z-000002", at: 2, store: store, externalBytes: .max)
    let backups = try state.backups(of: store)
    #expect(backups.map(\.occupiedBytes) == [(1 << 50) + 6, (1 << 50) + 1])
    #expect(backups.allSatisfy { Quantity.time(secondsSince1970: $0.madeAt).count < 30 })
  }
}
