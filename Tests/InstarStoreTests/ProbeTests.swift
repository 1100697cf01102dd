import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("Probing a store")
struct ProbeTests {
  let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(
    "a real store is read without changing a byte of it or leaving a side file",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"), arguments: RealStores.all)
  func realStore(path: String) throws {
    let copy = "\(folder.path)/\(URL(fileURLWithPath: path).lastPathComponent)"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let before = try folder.contents()
    let probe = try StoreProbe.read(copy, rows: .all)
    #expect(try folder.contents() == before)
    #expect(probe.identity.format == .coredata)
    #expect(!probe.entities.isEmpty)
    #expect(probe.entities.allSatisfy { $0.rows != nil })
    #expect(probe.uuid?.count == 36)
    #expect(probe.metadataProblem == nil)
    #expect(
      Set(probe.entityHashes.keys).count == probe.entities.count,
      "every entity has a hash: \(probe.entityHashes.keys)")
    #expect(probe.entityHashes.values.allSatisfy { $0.count == 32 })
  }

  @Test(
    "a real store's version, rows and fingerprint are read",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
  func knownStores() throws {
    func probe(_ name: String) throws -> StoreProbe {
      let path = try #require(RealStores.all.first { $0.hasSuffix(name) })
      let copy = "\(folder.path)/\(name)"
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      return try StoreProbe.read(copy, rows: .all)
    }
    let first = try probe("249d147-1.0.0-App.sqlite")
    let second = try probe("249d147-2.0.0-App.sqlite")
    #expect(first.identity.version == Schema.Version(1, 0, 0))
    #expect(second.identity.version == Schema.Version(2, 0, 0))
    #expect(first.entities == [CountedEntity(name: "User", rows: 0)])
    #expect(first.identity.structure.tables.map(\.name) == ["ZUSER"])
    #expect(first.identity.fingerprint != second.identity.fingerprint)
    #expect(first.identity.fingerprint.count == 64)

    let inheriting = try probe("SampleModel2_V1.sqlite")
    #expect(inheriting.entities.compactMap(\.rows).reduce(0, +) > 5000)
    #expect(inheriting.identity.version == nil)
  }

  @Test("history, metadata and SQLite's own tables are not part of the structure")
  func systemTables() throws {
    let path = try makeStore(
      """
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY);
      CREATE TABLE ATRANSACTION (Z_PK INTEGER PRIMARY KEY, ZTIMESTAMP FLOAT);
      CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION (ZTIMESTAMP);
      CREATE INDEX ZNOTE_ZTITLE_INDEX ON ZNOTE (ZTITLE);
      CREATE UNIQUE INDEX Z_Note_UNIQUE_title ON ZNOTE (ZTITLE COLLATE BINARY ASC);
      ANALYZE;
      """)
    let probe = try StoreProbe.read(path)
    #expect(probe.identity.structure.tables.map(\.name) == ["ZNOTE"])
    #expect(
      probe.identity.structure.indexes == [
        StoreStructure.Index(
          name: "ZNOTE(ZTITLE)", table: "ZNOTE", isUnique: false, columns: ["ZTITLE"]),
        StoreStructure.Index(
          name: "ZNOTE(unique ZTITLE)", table: "ZNOTE", isUnique: true, columns: ["ZTITLE"]),
      ])
  }

  @Test("a store whose property list is NULL is known by its entities")
  func nullPlist() throws {
    let path = try makeStore("UPDATE Z_METADATA SET Z_PLIST = NULL")
    let probe = try StoreProbe.read(path, rows: .all)
    #expect(probe.entities == [CountedEntity(name: "Note", rows: 2)])
    #expect(probe.metadataProblem == "Z_METADATA holds no property list")
    #expect(probe.identity.version == nil)
  }

  @Test("a store whose property list is damaged is corrupt", arguments: ["x'00'", "x'62'", "'b'"])
  func damagedPlist(plist: String) throws {
    let path = try makeStore("UPDATE Z_METADATA SET Z_PLIST = \(plist)")
    let error = #expect(throws: InstarError.self) { try StoreProbe.read(path) }
    #expect(error?.code == .corruptStore && error?.next?.contains("restore") == true)
  }

  @Test("a file that begins with zeros is told from a store, with what to do")
  func zeroedPage() throws {
    let path = try makeStore()
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.write(contentsOf: Data(count: 4096))
    try file.close()
    let error = #expect(throws: InstarError.self) { try StoreProbe.read(path) }
    #expect(error?.code == .notAStore)
    #expect(error?.next?.contains("instarctl restore '\(path)'") == true)
  }

  @Test("a damaged Z_METADATA is reported as corrupt")
  func damagedMetadata() throws {
    let path = try makeStore()
    let queue = try DatabaseQueue(path: path)
    let (page, size) = try queue.read { db in
      (
        try #require(
          try Int.fetchOne(
            db, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'Z_METADATA'")),
        try #require(try Int.fetchOne(db, sql: "PRAGMA page_size"))
      )
    }
    try queue.close()
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64((page - 1) * size))
    try file.write(contentsOf: Data(count: size))
    try file.close()
    func code(_ body: (Database) throws -> Void) -> InstarError.Code? {
      #expect(throws: InstarError.self) {
        try StoreReader.withReadOnlyStore(path, body: body)
      }?.code
    }
    #expect(
      #expect(throws: InstarError.self) { try StoreProbe.read(path) }?.code == .corruptStore)
    #expect(code { _ = try CoreDataMetadata.readIfSound($0) } == .corruptStore)
    #expect(code { _ = try CoreDataConventions(of: $0) } == .corruptStore)
    #expect(
      #expect(throws: InstarError.self) { try StoreProbe.readShared(path, busyTimeout: 1) }?.code
        == .corruptStore)
  }

  @Test("an index of the log that a crash left behind does not hide frames")
  func staleLogIndex() throws {
    let path = try makeStore()
    let app = try OtherProcess(
      """
      db = sqlite3.connect(sys.argv[1], isolation_level=None)
      db.execute("PRAGMA journal_mode = wal")
      db.execute("PRAGMA wal_autocheckpoint = 0")
      db.execute("UPDATE ZNOTE SET ZTITLE = 'first'")
      print("ready", flush=True)
      for line in sys.stdin:
        for i in range(20):
          db.execute(line, (str(i),))
        print("done", flush=True)
      """, path: path)
    let index = try Data(contentsOf: URL(fileURLWithPath: path + "-shm"))
    app.tell("UPDATE ZNOTE SET ZTITLE = ?")
    app.kill()
    try index.write(to: URL(fileURLWithPath: path + "-shm"))
    let file = try StoreProbe.read(path).file
    #expect(!file.logIsInUse)
    let size = try #require(file.log?.size)
    #expect(file.pendingLogBytes() == size - 32)

    // A frame that was not written whole ends the log, and so do all behind it.
    let log = try FileHandle(forUpdating: URL(fileURLWithPath: path + "-wal"))
    try log.seek(toOffset: UInt64(size - 100))
    try log.write(contentsOf: Data([0xAA]))
    try log.close()
    #expect(file.pendingLogBytes() == size - 32 - (4096 + 24))
  }

  @Test("only the frames of a log that are not in the store yet are counted, whatever its size")
  func pendingLog() throws {
    let path = try makeStore()
    let app = try OtherProcess(
      """
      db = sqlite3.connect(sys.argv[1], isolation_level=None)
      db.execute("PRAGMA journal_mode = wal")
      db.execute("PRAGMA wal_autocheckpoint = 0")
      for i in range(20):
        db.execute("UPDATE ZNOTE SET ZTITLE = ?", (str(i),))
      print("ready", flush=True)
      for line in sys.stdin:
        db.execute(line)
        print("done", flush=True)
      """, path: path)
    func pending() throws -> Int64? { try StoreProbe.read(path).file.pendingLogBytes() }
    let size = try #require(try StoreProbe.read(path).file.log?.size)
    let frame = Int64(4096 + 24)
    #expect(try pending() == size - 32)

    app.tell("PRAGMA wal_checkpoint(PASSIVE)")
    let copied = try pending()
    #expect(copied == 0)
    // The next write begins a new round at the start of the log; the frames behind it are of the one before.
    app.tell("UPDATE ZNOTE SET ZTITLE = 'new'")
    let file = try StoreProbe.read(path).file
    #expect(file.log?.size == size)
    #expect(try #require(file.pendingLogBytes()) < size / 4)
    #expect(try #require(file.pendingLogBytes()) >= frame)

    // Left without its index by a process that is gone.
    app.kill()
    try FileManager.default.removeItem(atPath: path + "-shm")
    #expect(try pending() == file.pendingLogBytes())
    let second = try OtherProcess(
      """
      db = sqlite3.connect(sys.argv[1], isolation_level=None)
      db.execute("UPDATE ZNOTE SET ZTITLE = 'newer'")
      db.execute("PRAGMA wal_checkpoint(PASSIVE)")
      print("ready", flush=True)
      sys.stdin.readline()
      """, path: path)
    second.kill()
    try FileManager.default.removeItem(atPath: path + "-shm")
    #expect(try #require(StoreProbe.read(path).file.log).size > 32)
    let left = try pending()
    #expect(left == 0)
  }

  @Test("tables of no Core Data store make a plain one")
  func plainStore() throws {
    let path = "\(folder.path)/plain.db"
    let queue = try DatabaseQueue(path: path)
    try queue.write {
      try $0.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY); INSERT INTO note VALUES (1)")
    }
    try queue.close()
    let probe = try StoreProbe.read(path, rows: .all)
    #expect(probe.identity.format == .plain)
    #expect(probe.entities == [CountedEntity(name: "note", rows: 1)])
  }

  @Test("a file that is not a store is reported with its kind and left unchanged")
  func hostileFiles() throws {
    let whole = Array(FileManager.default.contents(atPath: try makeStore()) ?? Data())
    var generator = SystemRandomNumberGenerator()
    let random = (0..<4096).map { _ in UInt8.random(in: 0...255, using: &generator) }
    var badPageSize = whole
    badPageSize[16] = 3
    var damaged = whole
    for index in 4096..<damaged.count { damaged[index] = 0xA5 }
    let cases: [(String, [UInt8], InstarError.Code)] = [
      ("empty", [], .notAStore),
      ("text", Array("hello, world\n".utf8), .notAStore),
      ("text512", [UInt8](repeating: 0x61, count: 512), .notAStore),
      ("random", random, .encryptedStore),
      ("odd", Array(random.dropLast()), .notAStore),
      ("header", Array(whole.prefix(50)), .corruptStore),
      ("magic", Array(whole.prefix(16)), .corruptStore),
      ("cut", Array(whole.dropLast(700)), .corruptStore),
      ("pagesize", badPageSize, .corruptStore),
      ("damaged", damaged, .corruptStore),
    ]
    for (name, bytes, _) in cases {
      _ = try folder.file(name, bytes)
    }
    let before = try folder.contents()
    for (name, _, code) in cases {
      let error = #expect(throws: InstarError.self, "\(name)") {
        try StoreProbe.read("\(folder.path)/\(name)", rows: .all)
      }
      #expect(error?.code == code, "\(name): \(String(describing: error))")
      #expect(error?.store != nil)
    }
    let cut = #expect(throws: InstarError.self) { try StoreProbe.read("\(folder.path)/cut") }
    #expect(cut?.cause.contains("700 of \(whole.count) bytes are missing") == true)
    #expect(try folder.contents() == before)
  }

  @Test("folders, FIFOs, symbolic links and missing files are refused by their kind")
  func kinds() throws {
    let store = try makeStore()
    #expect(mkfifo("\(folder.path)/fifo", 0o600) == 0)
    #expect(symlink(store, "\(folder.path)/link") == 0)
    try FileManager.default.createDirectory(
      atPath: "\(folder.path)/folder", withIntermediateDirectories: false)
    func code(_ path: String) -> InstarError.Code? {
      #expect(throws: InstarError.self) { try StoreProbe.read(path) }?.code
    }
    #expect(code("\(folder.path)/fifo") == .notAStore)
    #expect(code("\(folder.path)/link") == .unsafePath)
    #expect(code("\(folder.path)/folder") == .notAStore)
    #expect(code("\(folder.path)/missing") == .missingStore)
    #expect(code("\(store)/below") == .missingStore)
    #expect(code("\(store)\0tail") == .unsafePath)
    #expect(code("") == .unsafePath)
    let tooLong = String(repeating: "n", count: 256)
    #expect(code("\(folder.path)/\(tooLong)") == .missingStore)
  }

  @Test(
    "a side file that is not a regular file is named, and moved aside by the advice",
    arguments: ["-wal", "-shm", "-journal"])
  func irregularSideFiles(suffix: String) throws {
    let store = try makeStore()
    let side = store + suffix
    let makes: [(String) -> Int32] = [
      { mkfifo($0, 0o600) }, { mkdir($0, 0o700) }, { symlink("/dev/zero", $0) },
    ]
    for make in makes {
      #expect(make(side) == 0)
      let error = #expect(throws: InstarError.self) { try StoreProbe.read(store) }
      #expect(error?.code == .unreadableStore && error?.cause.contains("'\(side)'") == true)
      let command = try #require(error?.next?.components(separatedBy: "run: ").last)
      let shell = try Process.run(URL(filePath: "/bin/sh"), arguments: ["-c", command])
      shell.waitUntilExit()
      #expect(shell.terminationStatus == 0)
      #expect(try StoreProbe.read(store).entities.map(\.name) == ["Note"])
    }
  }

  @Test("names that mean something to SQLite or a shell are only names")
  func oddNames() throws {
    let store = try makeStore()
    for name in ["a b?mode=memory&cache=shared#x%20", "file:x", "ü\"'\n.store"] {
      let path = "\(folder.path)/\(name)"
      try FileManager.default.copyItem(atPath: store, toPath: path)
      #expect(try StoreProbe.read(path).entities.map(\.name) == ["Note"])
    }
  }

  @Test("an endless view in the place of a table is not read")
  func hostileView() throws {
    let path = try makeStore(
      """
      DROP TABLE ZNOTE;
      CREATE VIEW ZNOTE AS
        WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS Z_PK FROM n;
      CREATE VIRTUAL TABLE words USING fts5(word);
      """)
    let probe = try StoreProbe.read(path, rows: .all)
    #expect(probe.entities == [CountedEntity(name: "Note", rows: nil)])
    #expect(probe.identity.structure.tables.first { $0.name == "words" }?.columns == [])
  }

  // MARK: Logs and journals

  @Test("a log that a killed process left is read, and stays as it is")
  func leftLog() throws {
    let path = try makeStore("PRAGMA journal_mode = WAL")
    let writer = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA wal_autocheckpoint=0")
      c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 'c')")
      print("ready", flush=True)
      sys.stdin.read()
      """, path: path)
    let beside = try StoreProbe.read(path, rows: .all)
    #expect(beside.file.logIsInUse)
    #expect(beside.entities.first?.rows == 3, "beside the living process")
    writer.kill()
    let before = try folder.contents()
    #expect(before.count == 3)
    let probe = try StoreProbe.read(path, rows: .all)
    #expect(probe.entities.first?.rows == 3, "with shared memory left behind")
    #expect(try folder.contents() == before)

    try FileManager.default.removeItem(atPath: path + "-shm")
    let without = try folder.contents()
    #expect(try StoreProbe.read(path, rows: .all).entities.first?.rows == 3)
    #expect(try folder.contents() == without)
  }

  @Test("a clean store in write-ahead-log mode gets no side files")
  func cleanLog() throws {
    let path = try makeStore("PRAGMA journal_mode = WAL")
    let before = try folder.contents()
    #expect(Array(before.keys) == ["Notes.store"])
    let probe = try StoreProbe.read(path, rows: .all)
    #expect(probe.file.usesWriteAheadLog)
    #expect(probe.entities.first?.rows == 2)
    #expect(try folder.contents() == before)
  }

  @Test("a transaction that was cut off is not seen, and its journal stays")
  func hotJournal() throws {
    let path = try makeStore()
    let writer = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA cache_size=1")
      c.execute("BEGIN IMMEDIATE")
      for n in range(2000):
        c.execute("INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, ?)", ("x" * 500,))
      print("ready", flush=True)
      sys.stdin.read()
      """, path: path)
    let busy = #expect(throws: InstarError.self) {
      try StoreReader.withReadOnlyStore(path, busyTimeout: 0) {
        try Int.fetchOne($0, sql: "SELECT count(*) FROM ZNOTE")
      }
    }
    #expect(busy?.code == .busyStore)
    writer.kill()
    let before = try folder.contents()
    #expect(before["Notes.store-journal"] != nil)
    #expect(try StoreProbe.read(path, rows: .all).entities.first?.rows == 2)
    #expect(try folder.contents() == before)
  }

  /// A small store in the layout of Core Data, in rollback mode: one entity, two rows.
  private func makeStore(_ sql: String = "") throws -> String {
    let path = "\(folder.path)/Notes.store"
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Note", attributes: [Schema.Attribute(name: "title", type: .string)])
      ], version: Schema.Version(1, 0, 0))
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR );
          CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
          CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
          CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
          INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 2), (16001, 'CHANGE', 0, 0);
          INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 'a'), (1, 1, 'b');
          """)
      try CoreDataMetadata(newStoreFor: schema).write(db)
      if !sql.isEmpty { try db.execute(sql: sql) }
    }
    try queue.close()
    return path
  }
}
