import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

/// Values of a store that lie in files beside it, through a run.
@Suite("Large values in files")
struct ExternalFilesTests {
  private static let kept = "6B29FC40-CA47-1067-B31D-00DD010662D1"
  private static let replaced = "6B29FC40-CA47-1067-B31D-00DD010662D2"
  private static let unknown = "6B29FC40-CA47-1067-B31D-00DD010662D3"
  private static let new = "6B29FC40-CA47-1067-B31D-00DD010662D4"

  private static let absent = "6B29FC40-CA47-1067-B31D-00DD010662D5"

  private let fixture: KeeperFixture

  init() throws {
    fixture = try KeeperFixture()
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true)
    for name in [Self.kept, Self.replaced, Self.unknown] {
      try Data(name.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    }
    try fixture.execute(
      Self.set(Self.kept, ofRow: 1) + Self.set(Self.replaced, ofRow: 2)
        + "UPDATE ZNOTE SET ZPHOTO = x'01AABB' WHERE Z_PK = 3;")
  }

  private var folder: String { fixture.folder + "/.Notes_SUPPORT/_EXTERNAL_DATA" }
  private var backupFolder: String {
    "\(fixture.folder)/.instar/.Notes.store.\(fixture.request().run)_SUPPORT/_EXTERNAL_DATA"
  }

  private static func set(_ name: String, ofRow key: Int) -> String {
    "UPDATE ZNOTE SET ZPHOTO = CAST(x'02' || '\(name)' || x'00' AS BLOB) WHERE Z_PK = \(key);"
  }

  private func names(_ folder: String) -> [String]? {
    try? FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  /// Gives row 2 another file, as a plan's code does that sets a value.
  private func host(makesFile: Bool = true) -> SQLHost {
    let ownFolder = folder
    return SQLHost(sql: KeeperFixture.addPinned + ";" + Self.set(Self.new, ofRow: 2)) { work in
      #expect(work.externalFolder == ownFolder)
      guard makesFile else { return }
      let folder = work.cloneFolder + "/.Notes_SUPPORT/_EXTERNAL_DATA"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true)
      try Data("new".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(Self.new)"))
    }
  }

  @Test(
    "what rows refer to stays, what a stage made comes, what nobody refers to any more is with the backup only"
  )
  func run() throws {
    let (report, _) = try fixture.migrate(host())
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(names(folder) == [Self.kept, Self.unknown, Self.new].sorted())
    #expect(FileManager.default.contents(atPath: "\(folder)/\(Self.new)") == Data("new".utf8))
    #expect(names(backupFolder) == [Self.kept, Self.replaced].sorted())
    // What a recovery would have gone by is gone.
    #expect(fixture.state().instar?.contains { $0.hasSuffix(".files") } == false)
    #expect(
      try fixture.query(String.self, "SELECT hex(ZPHOTO) FROM ZNOTE WHERE Z_PK = 3") == "01AABB")
  }

  @Test(
    "what another store may refer to whose name differs only in its end stays, and a note says so",
    arguments: ["Notes.sqlite", "Notes.bak", "Notes"])
  func sharedFolder(other: String) throws {
    let path = "\(fixture.folder)/\(other)"
    try FileManager.default.copyItem(atPath: fixture.store, toPath: path)
    let (report, _) = try fixture.migrate(host())
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown, Self.new].sorted())
    #expect(names(backupFolder) == [Self.kept, Self.replaced].sorted())
    #expect(fixture.state().instar?.contains { $0.hasSuffix(".files") } == false)
    let note =
      "1 file of a large value that the store no longer references stays in '\(folder)': "
      + "'\(path)' may reference them"
    #expect(report.notes.contains(note), "\(report.notes)")
  }

  @Test(
    "what files and folders beside the store cannot refer to goes",
    arguments: ["Notes.txt", "Notes.folder/", "Note.sqlite", "Notes.store.bak"])
  func ownFolder(other: String) throws {
    let path = "\(fixture.folder)/\(other)"
    if other.hasSuffix("/") {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } else if other.hasSuffix(".txt") {
      try Data("text".utf8).write(to: URL(fileURLWithPath: path))
    } else {
      try FileManager.default.copyItem(atPath: fixture.store, toPath: path)
    }
    let (report, _) = try fixture.migrate(host())
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(names(folder) == [Self.kept, Self.unknown, Self.new].sorted())
  }

  @Test("all large values of a damaged store go to its backup, and all stay, whatever is restored")
  func damagedStore() throws {
    let (migration, _) = try fixture.migrate(host())
    let backup = try #require(migration.backup)
    var bytes = try #require(FileManager.default.contents(atPath: fixture.store))
    for position in bytes.count - 4096..<bytes.count { bytes[position] = 0xFF }
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: fixture.store))
    try file.write(contentsOf: bytes)
    try file.close()
    let reference = BackupReference(
      run: migration.run, store: fixture.store, path: backup, manifest: migration.manifest)
    let run = "20260101T000000Z-000002"
    let conversation = ScriptedConversation([
      .restore(RestoreRequest(run: run, store: fixture.store, backup: reference))
    ])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    let report = try #require(conversation.reports.first)
    #expect(report.result == .restored, "\(String(describing: report.error))")
    #expect(report.manifest?.isSound == false)
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown, Self.new].sorted())
    let kept = "\(fixture.folder)/.instar/.Notes.store.\(run)_SUPPORT/_EXTERNAL_DATA"
    #expect(names(kept) == [Self.kept, Self.unknown, Self.new].sorted())
    #expect(
      report.notes.contains { $0.hasPrefix("2 files of large values stay") }, "\(report.notes)")
  }

  @Test("a value that references a missing file ends the run, and nothing has changed")
  func missing() throws {
    let before = fixture.state()
    let (report, _) = try fixture.migrate(host(makesFile: false))
    #expect(report.result == .failed)
    #expect(report.error?.code == .brokenReferences)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown].sorted())
  }

  @Test("a run that is canceled before the cutover leaves neither backup nor files")
  func calledOff() throws {
    let (report, _) = try fixture.migrate(host()) { $0.phase == .cloning }
    #expect(report.result == .failed)
    #expect(fixture.state().instar == nil)
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown].sorted())
  }

  @Test(
    "files that rows do not reference may belong to another store, and refuse no plan without external storage",
    arguments: [OpenPolicy.any, .shared])
  func undeclared(openPolicy: OpenPolicy) throws {
    var plan = try #require(try KeeperFixture.manifest().plans.first)
    for version in plan.versions.indices {
      for entity in plan.versions[version].schema.entities.indices {
        for attribute in plan.versions[version].schema.entities[entity].attributes.indices {
          plan.versions[version].schema.entities[entity].attributes[attribute].options = []
        }
      }
    }
    let host = LightweightHost(besides: ManifestHost(plan: plan))
    func migrate(_ run: String) throws -> RunReport {
      let conversation = ScriptedConversation([.migrate(fixture.request(run: run))])
      try Keeper(conversation: conversation, host: host, openPolicy: openPolicy).serve()
      return try #require(conversation.reports.first)
    }
    try fixture.execute("UPDATE ZNOTE SET ZPHOTO = NULL WHERE Z_PK <> 1")
    let refused = try migrate("20260101T000000Z-000001")
    #expect(refused.result == .refused)
    #expect(
      refused.error?.cause.hasPrefix("the store has 1 external value in '\(folder)', but no ")
        == true, "\(String(describing: refused.error))")
    try fixture.execute("UPDATE ZNOTE SET ZPHOTO = x'02AABB'")
    if openPolicy == .any {
      let conversation = ScriptedConversation([
        .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
      ])
      try Keeper(conversation: conversation, host: host).serve()
      let findings = try #require(conversation.plans.first).findings
      #expect(
        findings.map(\.message) == [
          "the files in '\(folder)' stay there: no row of the store references them"
        ])
      #expect(findings.map(\.severity) == [.note])
    }
    let migrated = try migrate("20260101T000000Z-000002")
    #expect(migrated.result == .migrated, "\(String(describing: migrated.error))")
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown].sorted())
  }

  @Test("a copy of a large value has the bytes, and may be read by whom it should be")
  func copied() throws {
    let folder = try TemporaryFolder()
    let (source, target) = (try folder.file("a", Array("value".utf8)), folder.path("b"))
    try ExternalFiles.copy(source, to: target, mode: 0o644)
    #expect(FileManager.default.contents(atPath: target) == Data("value".utf8))
    let attributes = try FileManager.default.attributesOfItem(atPath: target)
    #expect(attributes[.posixPermissions] as? Int == 0o644)
    // What is there stays.
    #expect(throws: InstarError.self) {
      try ExternalFiles.copy(folder.path("a"), to: target, mode: 0o600)
    }
    #expect(FileManager.default.contents(atPath: target) == Data("value".utf8))
  }

  @Test(
    "files that a run had put in place before it was cut off are removed by the recovery, be they links or copies",
    arguments: [true, false])
  func recovery(isCopied: Bool) throws {
    let run = fixture.request().run
    let clone = "\(fixture.folder)/.instar/run-\(run)/clone"
    let cloneFolder = clone + "/.Notes_SUPPORT/_EXTERNAL_DATA"
    try FileManager.default.createDirectory(
      atPath: cloneFolder, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: backupFolder, withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: fixture.store, toPath: clone + "/Notes.store")
    try Data("new".utf8).write(to: URL(fileURLWithPath: "\(cloneFolder)/\(Self.new)"))
    let (source, target) = ("\(cloneFolder)/\(Self.new)", "\(folder)/\(Self.new)")
    if isCopied {
      try ExternalFiles.copy(source, to: target, mode: 0o600)
    } else {
      try FileManager.default.linkItem(atPath: source, toPath: target)
    }
    // One that the run did not come to is listed, too.
    let list = "\(fixture.folder)/.instar/Notes.store.\(run).files"
    try Data("\(Self.new)\n\(Self.absent)\n../\(Self.kept)".utf8)
      .write(to: URL(fileURLWithPath: list))
    var record = PhaseRecord(run: run, store: fixture.store, phase: .cutover, startedAt: 0)
    record.from = Schema.Version(1, 0, 0)
    record.to = Schema.Version(2, 0, 0)
    // As long as the store is in use nothing is decided, and nothing forgotten.
    let holder = try OtherProcess.holding(fixture.store, "EXCLUSIVE")
    let error = try record.recoveryError()
    holder.finish()
    #expect(error.code == .busyStore)
    #expect(names(folder)?.contains(Self.new) == true)
    _ = try record.recovered()
    #expect(names(folder) == [Self.kept, Self.replaced, Self.unknown].sorted())
    #expect(fixture.state().instar == nil)
  }

  @Test(
    "files that only the old version referenced are removed by the recovery of a cut-off cutover")
  func recoveryAfterCutover() throws {
    let (report, conversation) = try fixture.migrate(host())
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    // As if the keeper had died right after its commit.
    try FileManager.default.linkItem(
      atPath: "\(backupFolder)/\(Self.replaced)", toPath: "\(folder)/\(Self.replaced)")
    let list = "\(fixture.folder)/.instar/Notes.store.\(report.run).files"
    try Data("\(Self.new)\n-\(Self.replaced)\n-\(Self.unknown)\n-../\(Self.kept)".utf8)
      .write(to: URL(fileURLWithPath: list))
    let record = try #require(conversation.asked.last)
    let recovered = try record.recovered()
    #expect(recovered.outcome == .finished)
    // The backup does not have the unknown one.
    #expect(names(folder) == [Self.kept, Self.unknown, Self.new].sorted())
    #expect(names(backupFolder) == [Self.kept, Self.replaced].sorted())
    #expect(fixture.state().instar?.contains { $0.hasSuffix(".files") } == false)
  }

  @Test("what another store may refer to is left by the recovery of a cut-off cutover, as it says")
  func sharedFolderInRecovery() throws {
    let (report, conversation) = try fixture.migrate(host())
    try FileManager.default.linkItem(
      atPath: "\(backupFolder)/\(Self.replaced)", toPath: "\(folder)/\(Self.replaced)")
    let list = "\(fixture.folder)/.instar/Notes.store.\(report.run).files"
    try Data("-\(Self.replaced)".utf8).write(to: URL(fileURLWithPath: list))
    try FileManager.default.copyItem(
      atPath: try #require(report.backup), toPath: fixture.folder + "/Notes.sqlite")
    let record = try #require(conversation.asked.last)
    let recovered = try record.recovered()
    #expect(recovered.outcome == .finished)
    #expect(names(folder)?.contains(Self.replaced) == true)
    #expect(recovered.notes?.contains { $0.contains("Notes.sqlite' may reference") } == true)
    #expect(fixture.state().instar?.contains { $0.hasSuffix(".files") } == false)
  }

  @Test("a list that a keeper was writing when it died is removed by the recovery")
  func unfinishedList() throws {
    let run = fixture.request().run
    let instar = fixture.folder + "/.instar"
    try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: true)
    for list in ["Notes.store.\(run).files.12.34.tmp", "Other.store.\(run).files.12.34.tmp"] {
      try Data(Self.new.utf8).write(to: URL(fileURLWithPath: "\(instar)/\(list)"))
    }
    var record = PhaseRecord(run: run, store: fixture.store, phase: .cutover, startedAt: 0)
    record.from = Schema.Version(1, 0, 0)
    record.to = Schema.Version(2, 0, 0)
    _ = try record.recovered()
    #expect(fixture.state().instar == ["Other.store.\(run).files.12.34.tmp"])
  }

  @Test("a file that cannot be removed stays listed until a recovery has removed it")
  func unremovable() throws {
    let run = fixture.request().run
    let list = "\(fixture.folder)/.instar/Notes.store.\(run).files"
    try FileManager.default.createDirectory(
      atPath: fixture.folder + "/.instar", withIntermediateDirectories: true)
    try Data(Self.new.utf8).write(to: URL(fileURLWithPath: list))
    // An unlink of a folder fails.
    #expect(mkdir("\(folder)/\(Self.new)", 0o700) == 0)
    var record = PhaseRecord(run: run, store: fixture.store, phase: .cutover, startedAt: 0)
    record.from = Schema.Version(1, 0, 0)
    record.to = Schema.Version(2, 0, 0)
    let error = try record.recoveryError()
    #expect(error.cause.contains(list))
    #expect(rmdir("\(folder)/\(Self.new)") == 0)
    _ = try record.recovered()
    #expect(fixture.state().instar == nil)
  }
}
