import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

extension Exchange.Result {
  fileprivate var isDone: Bool { if case .done = self { true } else { false } }
  fileprivate var isDisturbed: Bool { if case .disturbed = self { true } else { false } }
}

@Suite("A cutover by exchange")
struct ExchangeTests {
  /// A run right before its cutover: the store is locked, and the clone has the new version.
  private final class ReadyRun {
    let fixture: KeeperFixture
    let lock: StoreLock
    private(set) var clone: String
    let inode: UInt64
    private var folder: RunFiles?
    private let usesLog: Bool

    init(_ journalMode: String) throws {
      fixture = try KeeperFixture(journalMode: journalMode)
      inode = try Self.inode(of: fixture.store)
      usesLog = journalMode == "wal"
      lock = try StoreLock(try StoreFile.probe(fixture.store), busyTimeout: 0)
      let folder = try RunFiles(StorePaths(resolvedStore: lock.path), run: "cut-off")
      self.folder = folder
      clone = folder.cloneFile
      try lock.copy(to: clone)
      try FileCopy.useRollbackJournal(clone)
      let queue = try DatabaseQueue(path: clone)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: KeeperFixture.addPinned)
        var metadata = CoreDataMetadata(newStoreFor: KeeperFixture.second)
        metadata.stamp(
          schema: KeeperFixture.second, unchangedEntities: [],
          fingerprint: try CoreDataLayout(schema: KeeperFixture.second).structure.fingerprint)
        try metadata.write(db)
      }
      try queue.close()
    }

    deinit {
      lock.release()
      folder?.remove()
    }

    private struct Killed: Error {}

    /// Exchanges up to a step, the first one if it is `nil`, and leaves everything as the kernel leaves it when the
    /// process is killed there.
    func die(at step: Exchange.Step? = nil) throws {
      #expect(throws: Killed.self) {
        try exchange { if step == nil || $0 == step { throw Killed() } }
      }
      if let descriptor = try lock.soleDescriptor() { lock.handOver(descriptor)?.release() }
      folder = nil
    }

    static func inode(of path: String) throws -> UInt64 {
      var status = stat()
      try #require(lstat(path, &status) == 0)
      return UInt64(status.st_ino)
    }

    var backup: String { fixture.folder + "/.instar/Notes.store.cut-off.backup" }

    /// What the backup is now.
    func backupManifest() throws -> BackupManifest {
      try BackupManifest(
        ofFile: backup, run: "cut-off", store: fixture.store, format: .coredata, external: (0, 0))
    }

    /// The clone waits under the name of the backup, which the store's own file becomes.
    func giveBackupNameToClone() throws {
      try #require(rename(clone, backup) == 0)
      clone = backup
    }

    func exchange(
      _ onStep: @escaping (Exchange.Step) throws -> Void = { _ in }
    ) throws -> Exchange.Result {
      let paths = try #require(folder).paths
      return try Exchange(lock: lock, paths: paths, clone: clone, onStep: onStep).perform { _ in }
    }

    /// The phase that is on disk when the exchange begins.
    var record: PhaseRecord {
      get throws {
        var record = PhaseRecord(
          run: "cut-off", store: fixture.store, phase: .cutover, startedAt: 0)
        record.from = KeeperFixture.first.version
        record.to = KeeperFixture.second.version
        record.cutover = .exchange
        record.usesLog = usesLog
        record.cloneInode = try Self.inode(of: clone)
        record.storeInode = inode
        return record
      }
    }

    var hasOldFile: Bool { get throws { try Self.inode(of: fixture.store) == inode } }

    /// Requires that the store has all rows and none is damaged, and that its mode is that of before.
    func requireSound(
      rows: Int, _ version: Schema.Version, at location: SourceLocation = #_sourceLocation
    ) throws {
      #expect(try usesLog == ExchangeTests.usesLog(fixture), sourceLocation: location)
      #expect(
        try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == rows, sourceLocation: location)
      #expect(
        try fixture.query(String.self, "PRAGMA integrity_check") == "ok", sourceLocation: location)
      #expect(try fixture.version() == version, sourceLocation: location)
    }
  }

  /// Whether the store's header names a write-ahead log.
  private static func usesLog(_ fixture: KeeperFixture) throws -> Bool {
    try #require(FileManager.default.contents(atPath: fixture.store))[18] == 2
  }

  private static let old = Schema.Version(1, 0, 0)
  private static let new = Schema.Version(2, 0, 0)
  static let modes = ["delete", "wal"]
  /// The steps after which the store's path has the clone.
  static let exchangedSteps = [Exchange.Step.exchanged, .synchronized, .done]

  /// An app that opens the store, inserts a note, and ends. Says when it begins, and whether the note was committed.
  private static func inserting(_ path: String) throws -> OtherProcess {
    try OtherProcess(
      """
      print("begun", flush=True)
      c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
      c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
      print("committed", flush=True)
      sys.stdin.read()
      """, path: path)
  }

  /// An app whose open(2) has resolved the path before the exchange, and ends when the app is told.
  ///
  /// It leaves the inode that it opened in a file beside the store, with the suffix `.opened`.
  private static func lateOpener(of store: String) throws -> OtherProcess {
    try OtherProcess(
      """
      store = os.open(sys.argv[1], os.O_PATH)
      print("resolved", flush=True)
      sys.stdin.readline()
      print("opening", flush=True)
      opened = os.open(f"/proc/self/fd/{store}", os.O_RDWR)
      open(sys.argv[1] + ".opened", "w").write(str(os.fstat(opened).st_ino))
      """, path: store)
  }

  /// An app that keeps the file open that the Python expression opens, until it is finished.
  private static func keepingOpen(
    _ path: String, _ expression: String = "open(sys.argv[1], 'rb')"
  ) throws -> OtherProcess {
    try OtherProcess(
      "c = \(expression)\nprint('open', flush=True)\nsys.stdin.read()", path: path)
  }

  /// Waits until somebody waits to open the file of a descriptor of this process.
  private static func waitForOpener(of path: String) throws {
    let inode = try ReadyRun.inode(of: path)
    let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    let getLease: Int32 = 1025
    let descriptor = try #require(
      names.compactMap(Int32.init).first { descriptor in
        var status = stat()
        // One of the path alone has no lease.
        return fstat(descriptor, &status) == 0 && UInt64(status.st_ino) == inode
          && fcntl(descriptor, getLease) >= 0
      })
    let deadline = soon()
    while fcntl(descriptor, getLease) == F_WRLCK {
      try #require(ContinuousClock.now < deadline, "nobody opened \(path)")
      usleep(1000)
    }
  }

  @Test(
    "an exchange gives the clone the store's path, and keeps its journal mode", arguments: modes)
  func replaces(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    try #require(try run.exchange().isDone)
    #expect(try !run.hasOldFile)
    try run.requireSound(rows: 10, Self.new)
    try run.fixture.execute("DELETE FROM ZNOTE")
  }

  @Test("a run reports an exchange, and leaves the backup only", arguments: modes)
  func report(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let request = fixture.request(cutover: .exchange)
    let (report, conversation) = try fixture.migrate(request: request)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.cutover == .exchange)
    #expect(report.notes.isEmpty)
    #expect(conversation.asked.last?.cutover == .exchange)
    #expect(conversation.asked.last?.usesLog == (journalMode == "wal"))
    let backup = "Notes.store.\(request.run)"
    #expect(fixture.state().instar == ["\(backup).backup", "\(backup).json"])
    #expect(try Self.usesLog(fixture) == (journalMode == "wal"))
    #expect(try fixture.version() == Self.new)
  }

  @Test("a small store is not exchanged")
  func small() throws {
    let fixture = try KeeperFixture()
    let (report, conversation) = try fixture.migrate()
    #expect(report.cutover == .writeBack)
    #expect(conversation.asked.last?.cutover == .writeBack)
    #expect(report.notes.isEmpty)
  }

  @Test(
    "an exchange gives way to a write-back where another process has the store open",
    arguments: modes,
    [
      "sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM ZNOTE').fetchall()",
      "open(sys.argv[1], 'rb')",
    ])
  func opened(journalMode: String, how: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let inode = try ReadyRun.inode(of: fixture.store)
    let app = try Self.keepingOpen(fixture.store, how)
    let (report, _) = try fixture.migrate(request: fixture.request(cutover: .exchange))
    app.finish()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.cutover == .writeBack)
    #expect(
      report.notes == [
        "Instar wrote to the store's file instead of exchanging it for the clone: "
          + Exchange.inUse
      ]
    )
    #expect(try ReadyRun.inode(of: fixture.store) == inode)
    #expect(try Self.usesLog(fixture) == (journalMode == "wal"))
    #expect(try fixture.version() == Self.new)
  }

  @Test(
    "an exchange is undone for an app that waited to open the store, and keeps what it writes",
    arguments: modes, [Exchange.Step.leased, .handedOver])
  func blockedOpener(journalMode: String, step: Exchange.Step) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    var app: OtherProcess?
    let result = try run.exchange { reached in
      guard reached == step else { return }
      app = try Self.inserting(store)
      try Self.waitForOpener(of: store)
    }
    try #require(result.isDisturbed)
    app?.tell("")
    app?.finish()
    #expect(try run.hasOldFile)
    try run.requireSound(rows: 11, Self.old)
  }

  @Test(
    "an exchange is undone for an app that opens the file that left, and keeps what it writes",
    arguments: modes, exchangedSteps)
  func lateOpener(journalMode: String, step: Exchange.Step) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    let app = try Self.lateOpener(of: store)
    let departed = run.clone
    let result = try run.exchange { reached in
      guard reached == step else { return }
      app.tell("")
      try Self.waitForOpener(of: departed)
    }
    try #require(result.isDisturbed)
    app.finish()
    #expect(try String(contentsOfFile: store + ".opened", encoding: .utf8) == "\(run.inode)")
    #expect(try run.hasOldFile)
    try run.requireSound(rows: 10, Self.old)
  }

  @Test(
    "an exchange lets an app that opens the store's path meanwhile wait, and work on the new store",
    arguments: modes, [Exchange.Step.exchanged, .synchronized])
  func newOpener(journalMode: String, step: Exchange.Step) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    var app: OtherProcess?
    let result = try run.exchange { reached in
      guard reached == step else { return }
      app = try Self.inserting(store)
      try Self.waitForOpener(of: store)
    }
    try #require(result.isDone)
    app?.tell("")
    app?.finish()
    try run.requireSound(rows: 11, Self.new)
  }

  @Test("an exchange locks both files until it is done")
  func locks() throws {
    let run = try ReadyRun("delete")
    let inodes = try [run.inode, ReadyRun.inode(of: run.clone)]
    _ = try run.exchange { step in
      guard Self.exchangedSteps.contains(step) else { return }
      let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
      for inode in inodes {
        #expect(locks.contains("OFDLCK") && locks.contains(":\(inode) 1073741824 1073742335"))
      }
    }
    let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
    for inode in inodes { #expect(!locks.contains(":\(inode) ")) }
  }

  @Test(
    "an exchange loses no write of an app that opens and closes the store all the time",
    arguments: modes)
  func reopeningApp(journalMode: String) throws {
    for _ in 0..<5 {
      let fixture = try KeeperFixture(journalMode: journalMode)
      let count = fixture.folder + "/count"
      let app = try OtherProcess(
        """
        import threading
        stop = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
        done = 0
        while not stop.is_set():
            c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
            try:
                c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')")
                done += 1
                if done == 3: print("writing", flush=True)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error): raise
            c.close()
            stop.wait(0.002)
        open(os.path.dirname(sys.argv[1]) + "/count", "w").write(str(done))
        """, path: fixture.store)
      let request = fixture.request(busyTimeout: 30, cutover: .exchange)
      let (report, _) = try fixture.migrate(request: request)
      app.finish()
      let committed = try #require(Int(String(contentsOfFile: count, encoding: .utf8)))
      // The app may write before each attempt; then the store stays as it is.
      #expect(
        report.result == .migrated || report.result == .busy, "\(String(describing: report.error))")
      #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 10 + committed)
      #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
      let isNew = try fixture.version() == Self.new
      #expect(isNew == (report.result == .migrated))
    }
  }

  @Test("an exchange keeps mode and extended attributes of the store", arguments: modes)
  func attributes(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    #expect(chmod(fixture.store, 0o640) == 0)
    // The list: owner rw-, user 1 r--, group ---, mask r--, others ---.
    try OtherProcess(
      """
      import struct
      entries = ((1, 6, -1), (2, 4, 1), (4, 0, -1), (16, 4, -1), (32, 0, -1))
      acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
      os.setxattr(sys.argv[1], "user.app", b"blue")
      os.setxattr(sys.argv[1], "system.posix_acl_access", acl)
      """, path: fixture.store
    ).finish()
    let before = try Self.attributes(of: fixture)
    #expect(before.contains("user.app") && before.contains("posix_acl_access"))
    let (report, _) = try fixture.migrate(request: fixture.request(cutover: .exchange))
    #expect(report.cutover == .exchange)
    #expect(try Self.attributes(of: fixture) == before)
  }

  /// Owner, group, mode and extended attributes of the store, as another program reads them.
  private static func attributes(of fixture: KeeperFixture) throws -> String {
    let output = fixture.folder + "/attributes"
    try OtherProcess(
      """
      path = sys.argv[1]
      status = os.stat(path)
      found = [status.st_uid, status.st_gid, oct(status.st_mode)]
      found += [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]
      open(os.path.dirname(path) + "/attributes", "w").write(str(found))
      """, path: fixture.store
    ).finish()
    return try String(contentsOfFile: output, encoding: .utf8)
  }

  @Test(
    "a keeper that is killed at any step leaves a whole store, which recovery finishes or leaves as it was",
    arguments: modes, Exchange.Step.allCases)
  func killed(journalMode: String, step: Exchange.Step) throws {
    let run = try ReadyRun(journalMode)
    let fixture = run.fixture
    let record = try run.record
    try FileManager.default.copyItem(atPath: fixture.store, toPath: run.backup)
    try run.die(at: step)
    let isNew = Self.exchangedSteps.contains(step)
    #expect(try run.hasOldFile == !isNew)
    for _ in 0..<2 {
      let report = try record.recovered()
      #expect(report.outcome == (isNew ? .finished : .discarded))
      #expect(report.cutover == (isNew ? .exchange : nil))
      try run.requireSound(rows: 10, isNew ? Self.new : Self.old)
      #expect(fixture.state().instar == (isNew ? ["Notes.store.cut-off.backup"] : nil))
    }
  }

  @Test(
    "a keeper that is killed leaves the store's own file as the backup, or none", arguments: modes,
    Exchange.Step.allCases)
  func killedWithoutCopy(journalMode: String, step: Exchange.Step) throws {
    let run = try ReadyRun(journalMode)
    let fixture = run.fixture
    try run.giveBackupNameToClone()
    let record = try run.record
    try run.die(at: step)
    let isNew = Self.exchangedSteps.contains(step)
    for _ in 0..<2 {
      let report = try record.recovered()
      #expect(report.outcome == (isNew ? .finished : .discarded))
      try run.requireSound(rows: 10, isNew ? Self.new : Self.old)
      #expect(report.backup == (isNew ? run.backup : nil))
      #expect(fixture.state().instar == (isNew ? ["Notes.store.cut-off.backup"] : nil))
      guard isNew else { continue }
      #expect(try ReadyRun.inode(of: run.backup) == run.inode)
      #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE", in: run.backup) == 10)
      #expect(try fixture.version(of: run.backup) == Self.old)
    }
  }

  @Test("a recovery reports a store that was damaged after the exchange", arguments: modes)
  func damagedAfterDeath(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    try run.giveBackupNameToClone()
    let record = try run.record
    try run.die(at: .exchanged)
    let root = try #require(
      try run.fixture.query(Int.self, "SELECT rootpage FROM sqlite_schema WHERE name = 'ZNOTE'"))
    let pageSize = try #require(try run.fixture.query(Int.self, "PRAGMA page_size"))
    let file = try FileHandle(forUpdating: URL(filePath: store))
    // The page's number of cells.
    try file.seek(toOffset: UInt64((root - 1) * pageSize + 3))
    try file.write(contentsOf: Data([0, 0]))
    try file.close()
    for _ in 0..<2 {
      let error = try record.recoveryError()
      #expect(error.code == .corruptStore)
      #expect(error.state == "damaged; backup kept at \(run.backup)")
    }
  }

  /// What another process does to the store of a dead run whose clone still waits for the exchange.
  enum Change: CaseIterable {
    case none, ownMigration, otherColumn, removed, damaged
  }

  @Test(
    "a clone that waits for the exchange does not pass for a backup", arguments: modes,
    Change.allCases)
  func waitingClone(journalMode: String, change: Change) throws {
    let run = try ReadyRun(journalMode)
    let fixture = run.fixture
    try run.giveBackupNameToClone()
    var record = try run.record
    record.declaredVersion = Self.old
    try run.die()
    switch change {
    case .none: break
    case .ownMigration:
      try Data(contentsOf: URL(fileURLWithPath: run.clone))
        .write(to: URL(fileURLWithPath: fixture.store))
    case .otherColumn: try fixture.execute("ALTER TABLE ZNOTE ADD COLUMN ZAPP VARCHAR")
    case .removed: try FileManager.default.removeItem(atPath: fixture.store)
    case .damaged:
      let file = try #require(FileHandle(forWritingAtPath: fixture.store))
      try file.write(contentsOf: Data(repeating: 0xff, count: 2048))
      try file.close()
    }
    guard change != .damaged else {
      let error = try record.recoveryError()
      // The clone may be the only whole file.
      #expect(error.state == "damaged")
      #expect(error.description.contains(run.backup) == false)
      #expect(try ReadyRun.inode(of: run.backup) == record.cloneInode)
      return
    }
    let report = try record.recovered()
    #expect(report.outcome == (change == .removed ? .storeMissing : .discarded))
    #expect(report.backup == nil)
    #expect(fixture.state().instar == nil)
  }

  @Test("a backup that was the store stays, though the store is as before again", arguments: modes)
  func replacedAfterDeath(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    let fixture = run.fixture
    try run.giveBackupNameToClone()
    let record = try run.record
    try run.die(at: .done)
    // Somebody helps himself with an earlier copy.
    try FileManager.default.removeItem(atPath: fixture.store)
    try FileManager.default.copyItem(atPath: run.backup, toPath: fixture.store)
    let report = try record.recovered()
    #expect(report.outcome == .discarded)
    #expect(report.backup == run.backup)
    #expect(try ReadyRun.inode(of: run.backup) == run.inode)
    #expect(try fixture.version() == Self.old)
  }

  private static func requireLockedOut(
    _ app: DatabaseQueue?, at location: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: DatabaseError.self, sourceLocation: location) {
      _ = try app?.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ZNOTE") }
    }
    #expect(error?.resultCode == .SQLITE_BUSY, sourceLocation: location)
  }

  /// Whether somebody keeps SQLite from using a file.
  private static func isLocked(_ inode: UInt64) throws -> Bool {
    try String(contentsOfFile: "/proc/locks", encoding: .utf8)
      .contains(":\(inode) 1073741824 1073742335")
  }

  @Test(
    "an app that has the clone of an undone exchange open is locked out until it closes the clone",
    arguments: modes)
  func staleClone(journalMode: String) async throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    let (departed, clone) = (run.clone, try ReadyRun.inode(of: run.clone))
    // It has the exchange undone.
    let late = try Self.lateOpener(of: store)
    var stale: OtherProcess?
    let result = try run.exchange { reached in
      guard reached == .exchanged else { return }
      stale = try OtherProcess(
        """
        print("begun", flush=True)
        c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        for line in sys.stdin:
            try: print(c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT) VALUES (2, 1)").rowcount, flush=True)
            except sqlite3.OperationalError as error: print(error, flush=True)
        """, path: store)
      try Self.waitForOpener(of: store)
      late.tell("")
      try Self.waitForOpener(of: departed)
    }
    guard case .disturbed(let file) = result, let app = stale else {
      Issue.record("\(result)")
      return
    }
    late.finish()
    #expect(file?.isLocked == true && file?.holders.map(\.pid) == [app.pid])
    #expect(file?.note.contains("that file is open in \(app.pid) (python3") == true)
    // The app's SQLite would use this transaction's journal or log.
    try run.fixture.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) VALUES (2, 1, 'other')")
    #expect(app.tell("") == "database is locked")
    try run.requireSound(rows: 11, Self.old)
    #expect(try Self.isLocked(clone))
    app.finish()
    try await wait("the lock to end with the app") { try !Self.isLocked(clone) }
  }

  /// What apps do with the file that left, after the keeper was killed.
  enum Use: CaseIterable {
    case none, written, open
  }

  @Test(
    "what an app without a journal does to the file that left after a keeper was killed is reported",
    arguments: modes, Use.allCases)
  func usedAfterDeath(journalMode: String, use: Use) throws {
    let run = try ReadyRun(journalMode)
    let fixture = run.fixture
    try run.giveBackupNameToClone()
    var record = try run.record
    try run.die(at: .exchanged)
    let manifest = try run.backupManifest()
    record.manifest = manifest
    var app: DatabaseQueue?
    if use != .none {
      app = try DatabaseQueue(path: run.backup)
      try app?.writeWithoutTransaction { db in
        try db.execute(
          sql: """
            PRAGMA journal_mode = MEMORY;
            \(use == .written ? "INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) VALUES (2, 1, 'app')" : "")
            """)
      }
    }
    if use == .written {
      try app?.close()
      app = nil
    }
    for _ in 0..<2 {
      let report = try record.recovered()
      #expect(report.outcome == .finished && report.backup == run.backup)
      try run.requireSound(rows: 10, Self.new)
      guard use != .none else {
        #expect(report.notes == nil && report.manifest == nil)
        continue
      }
      let note = try #require(report.notes?.first)
      // The process that keeps the lock is not an app to restart.
      #expect(!note.contains("(instar-lock"))
      #expect(
        note.contains(
          use == .open
            ? "has a file open that was at the store's path"
            : "the store lacks what the app wrote there"))
      #expect(report.notes?.count == 1)
      #expect((report.manifest != nil) == (use == .written))
      let found = report.manifest ?? manifest
      #expect(found.isSound && (found.contentHash != manifest.contentHash) == (use == .written))
      if use == .written {
        let rows = try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE", in: run.backup)
        #expect(rows == 11)
      } else {
        Self.requireLockedOut(app)
      }
      // A restore compares the backup with what it is now.
      let reference = BackupReference(
        run: "cut-off", store: fixture.store, path: run.backup, manifest: found)
      try StoredBackup(reference: reference).verify()
    }
    try app?.close()
  }

  @Test(
    "a recovery fails while an app reads the file that left, and the next one finishes the run",
    arguments: modes)
  func readAfterDeath(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    try run.giveBackupNameToClone()
    var record = try run.record
    try run.die(at: .exchanged)
    record.manifest = try run.backupManifest()
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("BEGIN")
      c.execute("SELECT count(*) FROM ZNOTE").fetchone()
      print("reading", flush=True)
      sys.stdin.read()
      """, path: run.backup)
    let error = try record.recoveryError()
    #expect(error.code == .busyStore)
    #expect(error.cause.contains("\(app.pid) (python3") && error.cause.contains("stop the app now"))
    // The store has no log yet, which the app could damage.
    #expect(try !Self.usesLog(run.fixture))
    app.finish()
    let report = try record.recovered()
    #expect(report.outcome == .finished && report.backup == run.backup)
    try run.requireSound(rows: 10, Self.new)
  }

  @Test("an exchange makes the store's own file the backup, with its manifest", arguments: modes)
  func ownFile(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let inode = try ReadyRun.inode(of: fixture.store)
    let request = fixture.request(cutover: .exchange)
    let (report, conversation) = try fixture.migrate(request: request) { _ in
      let copy = fixture.folder + "/.instar/run-\(request.run)/backup"
      #expect(!FileManager.default.fileExists(atPath: copy))
      return true
    }
    let backup = try #require(report.backup)
    #expect(report.cutover == .exchange)
    #expect(try ReadyRun.inode(of: backup) == inode)
    #expect(try fixture.version(of: backup) == Self.old)
    #expect(conversation.steps.suffix(2) == [.backedUp, .cutOver])
    #expect(conversation.asked.last?.manifest == report.manifest)
    try Self.requireVerified(report)
  }

  @Test(
    "an exchange copies the store after all where an app opened it in the meantime",
    arguments: modes, [false, true])
  func openedMeanwhile(journalMode: String, isLongerThanItsPages: Bool) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    if isLongerThanItsPages {
      let file = try #require(FileHandle(forWritingAtPath: fixture.store))
      try file.seekToEnd()
      try file.write(contentsOf: Data(count: 8192))
      try file.close()
    }
    let inode = try ReadyRun.inode(of: fixture.store)
    let request = fixture.request(cutover: .exchange)
    var app: OtherProcess?
    let (report, _) = try fixture.migrate(request: request) { record in
      if record.phase == .cutover, app == nil { app = try? Self.keepingOpen(fixture.store) }
      return true
    }
    app?.finish()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.cutover == .writeBack)
    #expect(try ReadyRun.inode(of: fixture.store) == inode)
    #expect(try fixture.version() == Self.new)
    #expect(try Self.usesLog(fixture) == (journalMode == "wal"))
    let backup = try #require(report.backup)
    #expect(try fixture.version(of: backup) == Self.old)
    #expect(fixture.state().instar?.contains("run-\(request.run)") == false)
    try Self.requireVerified(report)
  }

  /// Requires that the backup is what its manifest says.
  private static func requireVerified(_ report: RunReport) throws {
    #expect(report.manifest != nil)
    let reference = BackupReference(
      run: report.run, store: report.store, path: try #require(report.backup),
      manifest: report.manifest)
    try StoredBackup(reference: reference).verify()
  }

  @Test("an exchange is undone where the file that left gets a second name", arguments: modes)
  func linked(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    let (store, departed) = (run.fixture.store, run.clone)
    let result = try run.exchange { step in
      if step == .synchronized { #expect(link(departed, store + ".other") == 0) }
    }
    try #require(result.isDisturbed)
    #expect(try run.hasOldFile)
    #expect(unlink(store + ".other") == 0)
    try run.requireSound(rows: 10, Self.old)
  }

  @Test("an exchange leaves a file alone that took the store's path before", arguments: modes)
  func replacedBefore(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    let result = try run.exchange { step in
      guard step == .handedOver else { return }
      #expect(rename(store, store + ".old") == 0)
      try Data("another".utf8).write(to: URL(fileURLWithPath: store))
    }
    try #require(result.isDisturbed)
    #expect(FileManager.default.contents(atPath: store) == Data("another".utf8))
  }

  @Test(
    "an exchange is in doubt where a file takes the store's path in the middle", arguments: modes)
  func replacedAfter(journalMode: String) throws {
    let run = try ReadyRun(journalMode)
    let store = run.fixture.store
    let error = #expect(throws: InstarError.self) {
      try run.exchange { step in
        guard step == .synchronized else { return }
        #expect(rename(store, store + ".old") == 0)
        try Data("another".utf8).write(to: URL(fileURLWithPath: store))
      }
    }
    #expect(error?.isInDoubt == true)
    #expect(FileManager.default.contents(atPath: store) == Data("another".utf8))
  }
}
