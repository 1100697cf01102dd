import Foundation
import GRDB
import InstarKeeper
import InstarSchema
import InstarStore
import InstarWire
import Testing

@Suite("One run")
struct MigrationRunTests {
  @Test("a store is migrated, with a backup of what it was", arguments: ["delete", "wal"])
  func migrates(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let uuid = try fixture.query(String.self, "SELECT Z_UUID FROM Z_METADATA")
    let inode =
      try FileManager.default.attributesOfItem(atPath: fixture.store)[.systemFileNumber] as? Int
    let (report, conversation) = try fixture.migrate()
    #expect(report.error == nil)
    #expect(report.result == .migrated)
    #expect(report.from == Schema.Version(1, 0, 0))
    #expect(report.to == Schema.Version(2, 0, 0))
    #expect(
      report.entities == [
        RunReport.Entity(name: "Folder", rowsBefore: 1, rowsAfter: 1),
        RunReport.Entity(name: "Note", rowsBefore: 10, rowsAfter: 10),
      ])
    #expect(report.relationships.count == 1)
    #expect(report.relationships.first?.linksBefore == 10)
    #expect(report.relationships.first?.linksAfter == 10)
    #expect(report.stages.count == 1)
    #expect(conversation.asked.map(\.phase) == [.cloning, .cutover])
    #expect(
      conversation.steps == [
        .started, .locked, .backedUp, .stageStarted, .stageFinished, .verified, .cutOver,
      ])

    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(try fixture.query(String.self, "SELECT Z_UUID FROM Z_METADATA") == uuid)
    #expect(try fixture.query(String.self, "PRAGMA quick_check") == "ok")
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE WHERE ZPINNED IS NULL") == 10)
    let after =
      try FileManager.default.attributesOfItem(atPath: fixture.store)[.systemFileNumber] as? Int
    #expect(after == inode, "the same file")
    let probe = try StoreProbe.read(fixture.store)
    #expect(probe.file.usesWriteAheadLog == (journalMode == "wal"))

    let backup = try #require(report.backup)
    let name = URL(fileURLWithPath: backup).deletingPathExtension().lastPathComponent
    #expect(fixture.state().instar == ["\(name).backup", "\(name).json"])
    #expect(try fixture.version(of: backup) == Schema.Version(1, 0, 0))
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE", in: backup) == 10)
    let mode = try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder)
    #expect(!names.contains { $0.hasSuffix("-journal") || $0.hasSuffix("-wal") })

    let (again, _) = try fixture.migrate(request: fixture.request(run: "r2"))
    #expect(again.result == .current)
  }

  @Test("a refused store is left byte for byte as it was, and nothing is made beside it")
  func refusals() throws {
    func refused(_ fixture: KeeperFixture, _ code: InstarError.Code, adopt: Schema.Version? = nil)
      throws
    {
      let before = fixture.state()
      let (report, conversation) = try fixture.migrate(request: fixture.request(adopt: adopt))
      #expect(report.result == .refused)
      #expect(report.error?.code == code)
      #expect(report.error?.provesDamage == (code == .corruptStore ? true : nil))
      #expect(report.error?.state == "unchanged")
      #expect(fixture.state().bytes == before.bytes)
      #expect(fixture.state().instar == nil)
      #expect(conversation.asked.isEmpty)
    }
    try refused(try KeeperFixture(version: Schema.Version(3, 0, 0)), .storeAhead)
    try refused(try KeeperFixture(version: Schema.Version(0, 5, 0)), .unversionedStore)
    try refused(
      try KeeperFixture(version: Schema.Version(0, 5, 0)), .unversionedStore,
      adopt: Schema.Version(2, 0, 0))
    let other = try KeeperFixture()
    let queue = try DatabaseQueue(path: other.store)
    try queue.write { try $0.execute(sql: "ALTER TABLE ZNOTE ADD COLUMN ZEXTRA INTEGER") }
    try queue.close()
    try refused(other, .unknownVersion)
    let text = try KeeperFixture()
    try Data("no store".utf8).write(to: URL(fileURLWithPath: text.store))
    try refused(text, .notAStore)
    let cut = try KeeperFixture()
    let bytes = try #require(FileManager.default.contents(atPath: cut.store))
    try bytes.dropLast(5000).write(to: URL(fileURLWithPath: cut.store))
    try refused(cut, .corruptStore)
    let external = try KeeperFixture()
    try FileManager.default.createSymbolicLink(
      atPath: external.folder + "/.Notes_SUPPORT", withDestinationPath: "/tmp")
    try refused(external, .unsafePath)
  }

  @Test("a store with a second hard link is refused by run and plan, with the other name")
  func hardLink() throws {
    let fixture = try KeeperFixture()
    let other = fixture.folder + "/Other.store"
    try FileManager.default.linkItem(atPath: fixture.store, toPath: other)
    let before = fixture.state()
    let (report, conversation) = try fixture.migrate()
    #expect(report.result == .refused)
    #expect(report.error?.code == .unsafePath)
    #expect(report.error?.cause.contains("2 names (hard links), also '\(other)'") == true)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
    #expect(conversation.asked.isEmpty)
    let planning = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: planning, host: SQLHost()).serve()
    #expect(planning.plans.first?.findings.first?.code == .unsafePath)
  }

  @Test(
    "a hard link that is made during the run ends it before the store is written",
    arguments: ["delete", "wal"])
  func hardLinkDuringRun(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let store = fixture.store
    let host = SQLHost(tamper: { _ in
      try FileManager.default.linkItem(atPath: store, toPath: store + ".other")
    })
    let (report, _) = try fixture.migrate(host)
    #expect(report.result == .failed)
    #expect(report.error?.code == .unsafePath)
    #expect(report.error?.state == "unchanged")
    #expect(report.backup == nil)
    #expect(fixture.state().instar == nil)
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
  }

  /// SQL that makes of a store one that is refused, and what the reason names.
  static let strangeStores: [(String, InstarError.Code, String)] = [
    (
      "CREATE TRIGGER Z_DA_ZNOTE_Note_total AFTER INSERT ON ZNOTE BEGIN SELECT 1; END",
      .unsupported, "Z_DA_ZNOTE_Note_total"
    ),
    ("CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY)", .unsupported, "CloudKit"),
    ("UPDATE Z_PRIMARYKEY SET Z_ENT = 7 WHERE Z_NAME = 'Note'", .unknownVersion, "Note"),
    ("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Note'", .unknownVersion, "Note"),
    ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 1 WHERE Z_NAME = 'Note'", .unknownVersion, "Note"),
    (
      "UPDATE Z_PRIMARYKEY SET Z_NAME = CASE Z_ENT WHEN 1 THEN 'Note' ELSE 'Folder' END",
      .unknownVersion, "Folder"
    ),
    ("INSERT INTO Z_PRIMARYKEY VALUES (3, 'Tag', 0, 0)", .unknownVersion, "Tag"),
  ]

  @Test(
    "a store with a part that no schema describes, or with other numbers, is refused by run and plan",
    arguments: strangeStores)
  func strangeStore(sql: String, code: InstarError.Code, name: String) throws {
    let fixture = try KeeperFixture()
    try fixture.execute(sql)
    let before = fixture.state()
    let (report, conversation) = try fixture.migrate()
    #expect(report.result == .refused)
    #expect(report.error?.code == code)
    #expect(report.error?.cause.contains(name) == true, "\(String(describing: report.error))")
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
    #expect(conversation.asked.isEmpty)
    let planning = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: planning, host: SQLHost()).serve()
    let finding = planning.plans.first?.findings.first
    #expect(finding?.severity == .error)
    #expect(finding?.code == code)
  }

  @Test("broken links are reported by the plan, and do not refuse a run")
  func brokenLinks() throws {
    let fixture = try KeeperFixture()
    try fixture.execute("UPDATE ZNOTE SET ZFOLDER = 99 WHERE Z_PK > 7")
    let planning = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: planning, host: SQLHost()).serve()
    let finding = planning.plans.first?.findings.first
    #expect(finding?.severity == .warning)
    #expect(finding?.code == .brokenReferences)
    #expect(
      finding?.message
        == "3 of 10 links of Folder.notes reference missing rows: rows 8, 9, 10")
    #expect(finding?.rows == AffectedRows(count: 3, keys: ["8", "9", "10"]))
    #expect(try fixture.migrate().report.result == .migrated)
  }

  @Test("a store whose own trigger and view stay what they are is migrated with them")
  func ownTrigger() throws {
    let fixture = try KeeperFixture()
    try fixture.execute(
      """
      CREATE TABLE ATRANSACTIONS (x);
      CREATE TRIGGER noted AFTER INSERT ON ZNOTE BEGIN INSERT INTO ATRANSACTIONS VALUES (1); END;
      CREATE VIEW titles AS SELECT ZTITLE FROM ZNOTE;
      """)
    let (report, _) = try fixture.migrate()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      try fixture.query(
        Int.self, "SELECT count(*) FROM sqlite_master WHERE name IN ('noted', 'titles')") == 2)
    let other = try KeeperFixture()
    try other.execute("CREATE TRIGGER noted AFTER INSERT ON ZNOTE BEGIN SELECT 1; END")
    let (changed, _) = try other.migrate(
      SQLHost(
        sql: KeeperFixture.addPinned + """
          ; DROP TRIGGER noted;
          CREATE TRIGGER noted AFTER INSERT ON ZNOTE BEGIN SELECT 2; END
          """))
    #expect(changed.error?.code == .unexpectedStructure)
    #expect(changed.error?.cause.contains("trigger 'noted' has '") == true)
  }

  @Test(
    "an identifier of the store that Instar does not read stays as it is",
    arguments: [
      "NULL", "''", "x'0102'", "7", "'a' || char(0) || 'b'", "CAST(x'41ff42' AS TEXT)",
      "printf('%.1001c', 'a')", "x'41424344'",
    ])
  func oddIdentifier(_ value: String) throws {
    let fixture = try KeeperFixture()
    try fixture.execute("UPDATE Z_METADATA SET Z_UUID = \(value)")
    let sql = "SELECT typeof(Z_UUID) || hex(CAST(Z_UUID AS BLOB)) FROM Z_METADATA"
    let before = try fixture.query(String.self, sql)
    #expect(try fixture.migrate().report.result == .migrated)
    #expect(try fixture.query(String.self, sql) == before)
  }

  @Test("rows of no entity stay as they are, and may become neither more nor fewer")
  func strayRows() throws {
    let stray = "INSERT INTO ZNOTE (Z_PK, Z_ENT, ZTITLE) VALUES (90, 77, 'stray')"
    let fixture = try KeeperFixture()
    try fixture.execute(stray)
    let (report, _) = try fixture.migrate()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      report.notes.contains(
        "1 rows of ZNOTE belong to no entity, as before the run; they are unchanged")
    )
    #expect(
      try fixture.query(String.self, "SELECT ZTITLE || Z_ENT FROM ZNOTE WHERE Z_PK = 90")
        == "stray77")

    let other = try KeeperFixture()
    try other.execute(stray)
    let before = other.state()
    let (failed, _) = try other.migrate(
      SQLHost(
        sql: KeeperFixture.addPinned
          + "; INSERT INTO ZNOTE (Z_PK, Z_ENT, ZTITLE) VALUES (91, 78, 'another')"))
    #expect(failed.error?.code == .verificationFailed)
    #expect(failed.error?.cause.contains("2 rows of ZNOTE belong to no entity") == true)
    #expect(other.state().bytes == before.bytes)

    for loss in ["DELETE FROM ZNOTE WHERE Z_PK = 90", "UPDATE ZNOTE SET Z_ENT = 2 WHERE Z_PK = 90"]
    {
      let (refused, _) = try other.migrate(SQLHost(sql: KeeperFixture.addPinned + "; " + loss))
      #expect(refused.error?.code == .verificationFailed || refused.error?.code == .rowsLost)
      #expect(other.state().bytes == before.bytes)
    }
  }

  @Test("an unversioned store is adopted on request")
  func adoption() throws {
    let fixture = try KeeperFixture(version: Schema.Version(0, 5, 0))
    let (report, _) = try fixture.migrate(
      request: fixture.request(adopt: Schema.Version(1, 0, 0)))
    #expect(report.result == .migrated)
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
  }

  /// What can be wrong with a clone, and how it is called.
  static let wrongs: [(String, InstarError.Code)] = [
    ("SELECT 1", .unexpectedStructure),
    (KeeperFixture.addPinned + "; CREATE TABLE extra (x)", .unexpectedStructure),
    (KeeperFixture.addPinned + "; DELETE FROM ZNOTE WHERE Z_PK = 3", .rowsLost),
    (KeeperFixture.addPinned + "; UPDATE ZNOTE SET ZFOLDER = NULL WHERE Z_PK = 3", .rowsLost),
    (KeeperFixture.addPinned + "; UPDATE ZNOTE SET ZFOLDER = 77 WHERE Z_PK = 3", .brokenReferences),
    (
      KeeperFixture.addPinned + "; UPDATE ZNOTE SET ZTITLE = NULL WHERE Z_PK < 4",
      .missingRequiredValues
    ),
    (KeeperFixture.addPinned + "; UPDATE ZNOTE SET Z_ENT = 1", .verificationFailed),
    (KeeperFixture.addPinned + "; DELETE FROM Z_PRIMARYKEY", .verificationFailed),
    (
      KeeperFixture.addPinned
        + "; CREATE TRIGGER t AFTER INSERT ON ZNOTE BEGIN DELETE FROM ZFOLDER; END",
      .unexpectedStructure
    ),
    (KeeperFixture.addPinned + "; CREATE VIEW v AS SELECT 1", .unexpectedStructure),
    (
      // A list that calls a trigger an index.
      KeeperFixture.addPinned + """
        ; CREATE TRIGGER t AFTER INSERT ON ZNOTE BEGIN DELETE FROM ZFOLDER; END;
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET type = 'index' WHERE name = 't'
        """, .verificationFailed
    ),
    (
      "PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM; " + KeeperFixture.addPinned,
      .verificationFailed
    ),
  ]

  @Test("a clone that fails verification is removed", arguments: wrongs)
  func wrongClones(sql: String, code: InstarError.Code) throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let (report, _) = try fixture.migrate(SQLHost(sql: sql))
    #expect(report.result == .failed)
    #expect(report.error?.code == code, "\(String(describing: report.error))")
    #expect(report.error?.state == "unchanged")
    #expect(report.backup == nil)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
  }

  @Test("a clone that was replaced, linked, damaged or left half-written is removed")
  func wrongFiles() throws {
    let tampers: [@Sendable (CloneWork) throws -> Void] = [
      { try FileManager.default.removeItem(atPath: $0.clone) },
      { work in
        try FileManager.default.moveItem(atPath: work.clone, toPath: work.clone + "2")
        try FileManager.default.createSymbolicLink(
          atPath: work.clone, withDestinationPath: work.clone + "2")
      },
      { try FileManager.default.linkItem(atPath: $0.clone, toPath: $0.clone + "2") },
      { try Data([1]).write(to: URL(fileURLWithPath: $0.clone + "-journal")) },
      { try Data("text".utf8).write(to: URL(fileURLWithPath: $0.clone)) },
      { work in
        let bytes = try #require(FileManager.default.contents(atPath: work.clone))
        try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: work.clone))
      },
    ]
    for tamper in tampers {
      let fixture = try KeeperFixture()
      let before = fixture.state()
      let (report, _) = try fixture.migrate(SQLHost(tamper: tamper))
      #expect(report.error?.code == .verificationFailed, "\(String(describing: report.error))")
      #expect(fixture.state().bytes == before.bytes)
      #expect(fixture.state().instar == nil)
    }
  }

  @Test("a folder that a worker made deep, dark and full of strange names is removed with its run")
  func deepFolder() throws {
    let fixture = try KeeperFixture()
    let (report, _) = try fixture.migrate(
      SQLHost(tamper: { work in
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
          "python3", "-c",
          """
          import os, sys
          os.chdir(sys.argv[1])
          os.symlink("/", "link")
          open(b"\\xff\\xfe", "w").close()
          os.mkdir("moved-1"); os.mkdir("moved-1/x"); open("moved-2", "w").close()
          os.mkdir("dark"); os.mkdir("dark/within"); os.chmod("dark", 0)
          for i in range(300):
              os.mkdir("d"); open("f", "w").close(); os.mkdir("e"); os.mkdir("e/e"); os.chdir("d")
          """, work.cloneFolder,
        ]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
      }))
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(fixture.state().instar?.count == 2, "backup and manifest")
  }

  @Test(
    "a write-back that fails leaves the store as it was, and no backup of what is there still",
    arguments: ["delete", "wal"])
  func failedWriteBack(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode, rows: 3000)
    let clone = fixture.folder + "/.instar/run-\(fixture.request().run)/clone/Notes.store"
    let (report, _) = try fixture.migrate(onAsk: { record in
      if record.phase == .cutover {
        #expect(truncate(clone, 40960) == 0)
      }
      return true
    })
    #expect(report.result == .failed)
    #expect(report.error?.code == .writeBackFailed)
    #expect(report.backup == nil)
    #expect(fixture.state().instar == nil)
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 3000)
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
    let (again, _) = try fixture.migrate(request: fixture.request(run: "again"))
    #expect(again.result == .migrated)
  }

  @Test("durations out of all bounds are cut, not trapped over", arguments: [1e300, -1e300])
  func durations(seconds: Double) throws {
    let fixture = try KeeperFixture()
    var request = fixture.request(busyTimeout: seconds)
    request.stageTimeLimitSeconds = seconds
    #expect(try fixture.migrate(request: request).report.result == .migrated)
  }

  @Test("code may delete rows, and the report notes it")
  func customStage() throws {
    let fixture = try KeeperFixture()
    let (report, _) = try fixture.migrate(
      SQLHost(kind: .custom, sql: KeeperFixture.addPinned + "; DELETE FROM ZNOTE WHERE Z_PK > 7"))
    #expect(report.result == .migrated)
    #expect(report.notes.contains("Note had 10 rows and has 7"))
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 7)
  }

  @Test("a failed stage is reported with its place")
  func failedStage() throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let (report, _) = try fixture.migrate(
      SQLHost(failure: InstarError(.workerDied, "cannot run", cause: "killed by SIGILL")))
    #expect(report.error?.code == .workerDied)
    #expect(report.error?.stage == "1.0.0 → 2.0.0 (1 of 1), plugin 'Notes.so'")
    #expect(report.error?.what == "cannot migrate '\(fixture.store)' from 1.0.0 to 2.0.0")
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
  }

  @Test("a supervisor that refrains ends the run at either question", arguments: Phase.allCases)
  func refrained(phase: Phase) throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let (report, _) = try fixture.migrate(onAsk: { $0.phase != phase })
    #expect(report.error?.code == .interrupted)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == nil)
  }

  @Test("the folder of a dead run is removed, and those of other stores stay")
  func sweeping() throws {
    let fixture = try KeeperFixture()
    let instar = fixture.folder + "/.instar"
    for name in ["Notes.store", "Other.store"] {
      try FileManager.default.createDirectory(
        atPath: "\(instar)/run-of-\(name)/clone/deep", withIntermediateDirectories: true)
      try Data().write(to: URL(fileURLWithPath: "\(instar)/run-of-\(name)/clone/\(name)"))
    }
    #expect(chmod(instar, 0o700) == 0)
    let (report, _) = try fixture.migrate()
    #expect(report.result == .migrated)
    #expect(fixture.state().instar?.contains("run-of-Notes.store") == false)
    #expect(fixture.state().instar?.contains("run-of-Other.store") == true)
  }

  @Test("a shared .instar folder is not used")
  func sharedFolder() throws {
    let fixture = try KeeperFixture()
    try FileManager.default.createDirectory(
      atPath: fixture.folder + "/.instar", withIntermediateDirectories: false)
    #expect(chmod(fixture.folder + "/.instar", 0o777) == 0)
    let (report, _) = try fixture.migrate()
    #expect(report.error?.code == .unsafePath)
  }
}
