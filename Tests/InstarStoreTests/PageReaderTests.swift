import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarStore

@Suite("Stores that are probed by their pages")
struct PageReaderTests {
  let folder: TemporaryFolder
  private static let source = VersionSource.table("store_meta", column: "version")

  init() throws {
    folder = try TemporaryFolder()
  }

  /// All that a probe finds out.
  private struct Findings: Hashable {
    var file: StoreFile
    var entities: [CountedEntity]
    var identity: StoreIdentity
    var entityList: [CoreDataProbe.ListedEntity]?
    var frameworkObjects: [String]
    var conventions: CoreDataConventions
    var uuid: String?
    var entityHashes: [String: Data]
    var metadataProblem: String?
    var replicator: Replicator?

    init(_ probe: StoreProbe) {
      file = probe.file
      entities = probe.entities
      identity = probe.identity
      entityList = probe.entityList
      frameworkObjects = probe.frameworkObjects
      conventions = probe.conventions
      uuid = probe.uuid
      entityHashes = probe.entityHashes
      metadataProblem = probe.metadataProblem
      replicator = probe.replicator
    }
  }

  private static func findings(_ path: String, readsPages: Bool) -> Result<Findings, InstarError> {
    Result { () throws(InstarError) in
      try StoreProbe.read(path, versionSources: [source], busyTimeout: 0, readsPages: readsPages)
    }.map(Findings.init)
  }

  /// Whether the pages suffice once SQLite knows the schema.
  ///
  /// - Parameter known: The state in which the store's file is expected; `nil` for the one that it has.
  private static func readsPages(_ path: String, as known: StoreFile? = nil) -> Bool {
    // Other tests probe so many schemas at the same time that this one may be forgotten again.
    (0..<20).contains { _ in
      _ = findings(path, readsPages: false)
      guard let file = try? known ?? StoreFile.probe(path) else { return false }
      return StoreProbe(pagesOf: file, versionSources: [source]) != nil
    }
  }

  /// Compares what is found out with and without SQLite, which sees the store first and so knows its schema.
  private static func expectSameFindings(_ path: String, _ comment: String) {
    let asked = findings(path, readsPages: false)
    let read = findings(path, readsPages: true)
    // A file that takes too much processor time is refused, and one that is too large for another reason. Which of the
    // two is found first depends on how fast the machine is just now.
    if isStopped(asked) || isStopped(read) {
      #expect(throws: InstarError.self, "\(comment)") { try asked.get() }
      #expect(throws: InstarError.self, "\(comment)") { try read.get() }
    } else {
      #expect(read == asked, "\(comment)")
    }
  }

  /// Whether a probe ended because it took too much processor time.
  private static func isStopped(_ findings: Result<Findings, InstarError>) -> Bool {
    guard case .failure(let error) = findings else { return false }
    return error.cause.hasPrefix("reading does not end")
  }

  private func makePlain(_ name: String, _ sql: String = "", pragmas: String = "") throws -> String
  {
    let path = folder.path(name)
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          \(pragmas);
          CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL, weight REAL);
          CREATE INDEX of_title ON note (title DESC);
          CREATE TABLE store_meta (version TEXT, written REAL);
          INSERT INTO store_meta VALUES ('1.2.0', 5);
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300)
          INSERT INTO note SELECT x, 'note ' || x, x / 2.0 FROM n;
          PRAGMA user_version = 3; \(sql);
          """)
    }
    try queue.close()
    return path
  }

  /// With small pages and many entities, so that trees have several levels and the property list needs other pages.
  private func makeWide(_ name: String, pragmas: String) throws -> String {
    let path = folder.path(name)
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: pragmas)
      for statement in CoreDataLayout.systemTableStatements { try db.execute(sql: statement) }
      for number in 1...120 {
        try db.execute(
          sql: "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, 0)",
          arguments: [number, "Entity\(number)", number % 3 == 0 ? nil : 0])
      }
      for number in 1...20 {
        try db.execute(
          sql:
            "CREATE TABLE ZENTITY\(number) (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZNAME VARCHAR)"
        )
      }
      var metadata = CoreDataMetadata(
        uuid: "", plist: ["NSStoreModelVersionIdentifiers": ["2.0.0"], "filler": Data(count: 3000)])
      metadata.uuid = "0F0E"
      try metadata.write(db)
    }
    try queue.close()
    return path
  }

  @Test("plain and Core Data stores are probed by their pages, in both journal modes")
  func used() throws {
    let plain = try makePlain("plain.store")
    #expect(Self.readsPages(plain))
    let versions = try StoreProbe.read(plain, versionSources: [Self.source]).identity
      .declaredVersions
    #expect(
      versions == [.userVersion: Schema.Version(3, 0, 0), Self.source: Schema.Version(1, 2, 0)])
    let logged = try makePlain("logged.store", pragmas: "PRAGMA journal_mode = WAL")
    #expect(Self.readsPages(logged))
    #expect(Self.readsPages(try makeWide("wide.store", pragmas: "PRAGMA page_size = 512")))
    for store in AppleStore.all where store.hasMetadata {
      #expect(Self.readsPages(try store.write(to: folder)), "\(store)")
    }
  }

  @Test(
    "real stores are probed by their pages",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
  func realStores() throws {
    for path in RealStores.all {
      let copy = folder.path(URL(filePath: path).lastPathComponent)
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      let before = try folder.contents()
      #expect(Self.readsPages(copy), "\(path)")
      Self.expectSameFindings(copy, path)
      #expect(try folder.contents() == before)
    }
  }

  @Test(
    "stores that are probed by their pages have the same answer as by SQLite, whatever the file is",
    .timeLimit(.minutes(5)))
  func sameFindings() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    for file in try HostileStores(in: folder, flips: 100, seed: seed).files {
      Self.expectSameFindings(file.path, "\(file.path), seed \(seed)")
    }
    for store in AppleStore.all {
      Self.expectSameFindings(try store.write(to: folder), store.name)
    }
  }

  @Test(
    "stores that are probed by their pages have the same answer as by SQLite when they are damaged",
    .timeLimit(.minutes(5)))
  func damage() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    try HostileStores.makeStore(folder.path("own.store"))
    let stores = [
      folder.path("own.store"), try makePlain("plain.store", pragmas: "PRAGMA page_size = 512"),
      try makeWide("wide.store", pragmas: "PRAGMA page_size = 512"),
      try makeWide("vacuum.store", pragmas: "PRAGMA page_size = 512; PRAGMA auto_vacuum = 2"),
      try AppleStore.notes.write(to: folder),
    ]
    let damaged = folder.path("damaged.store")
    for store in stores {
      #expect(Self.readsPages(store), "\(store)")
      let bytes = try Data(contentsOf: URL(filePath: store))
      let pageSize = try StoreFile.probe(store).pageSizeBytes
      for round in 0..<200 {
        var changed = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          let page = Int.random(in: 0..<(bytes.count / pageSize), using: &generator)
          // Most in what describes a page, and in the header of the file.
          let offset = [
            Int.random(in: 0..<100, using: &generator),
            page * pageSize + (page == 0 ? 100 : 0) + Int.random(in: 0..<40, using: &generator),
            page * pageSize + Int.random(in: 0..<pageSize, using: &generator),
          ][Int.random(in: 0..<3, using: &generator)]
          changed[min(offset, bytes.count - 1)] =
            [0, 255, 1, UInt8.random(in: 0...255, using: &generator)].randomElement(
              using: &generator)
            ?? 0
        }
        try changed.write(to: URL(filePath: damaged))
        Self.expectSameFindings(damaged, "\(store), seed \(seed), round \(round)")
      }
    }
  }

  @Test("SQLite probes stores where a log, a journal or a lock says that somebody writes")
  func writers() throws {
    let path = try makePlain("a.store")
    #expect(Self.readsPages(path))
    let known = try StoreFile.probe(path)
    func readsPages() -> Bool { Self.readsPages(path, as: known) }

    let writer = try OtherProcess.holding(path, "EXCLUSIVE")
    #expect(!readsPages())
    #expect(Self.findings(path, readsPages: true) == Self.findings(path, readsPages: false))
    writer.finish()
    #expect(readsPages())
    let reader = try OtherProcess.holding(path, "DEFERRED")
    #expect(readsPages())
    reader.finish()

    // Of a process that is gone.
    try Data([0xD9, 0xD5]).write(to: URL(filePath: path + "-journal"))
    #expect(!readsPages())
    // Kept after a transaction.
    try Data(count: 512).write(to: URL(filePath: path + "-journal"))
    #expect(readsPages())
    try FileManager.default.removeItem(atPath: path + "-journal")
    try Data(count: 64).write(to: URL(filePath: path + "-wal"))
    #expect(!readsPages())
    try FileManager.default.removeItem(atPath: path + "-wal")

    let other = try makePlain("b.store", pragmas: "PRAGMA journal_mode = WAL")
    let app = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("PRAGMA user_version = 7")
      print("written", flush=True)
      sys.stdin.read()
      c.close()
      """, path: other)
    var inUse = try StoreFile.probe(other)
    #expect(inUse.logIsInUse && inUse.logHasContent)
    #expect(!Self.readsPages(other))
    app.finish()
    // The log is gone, so this is another state than the one that was probed.
    inUse.log = nil
    #expect(!Self.readsPages(other, as: inUse))
    #expect(Self.readsPages(other))
    #expect(try StoreProbe.read(other).identity.version == Schema.Version(7, 0, 0))
  }

  @Test("SQLite probes stores whose schema was not seen before, or with anything else unusual")
  func unusual() throws {
    let name = "new_\(UInt64.random(in: 0...UInt64.max))"
    let new = try makePlain("new.store", "CREATE TABLE \(name) (x)")
    #expect(StoreProbe(pagesOf: try StoreFile.probe(new), versionSources: []) == nil)
    #expect(Self.readsPages(new))

    for (index, (sql, pragmas)) in [
      ("", "PRAGMA encoding = 'UTF-16'"),
      ("CREATE TABLE alembic_version (version_num TEXT)", ""),
      ("CREATE INDEX of_version ON store_meta (version)", ""),
      ("ALTER TABLE store_meta ADD COLUMN again AS (version)", ""),
      ("UPDATE store_meta SET version = NULL", ""),
      ("UPDATE store_meta SET version = x'31'", ""),
    ].enumerated() {
      let path = try makePlain("\(index).store", sql, pragmas: pragmas)
      #expect(!Self.readsPages(path), "\(sql) \(pragmas)")
      Self.expectSameFindings(path, "\(sql) \(pragmas)")
    }
    // A real is written with a point, also in a column of whole numbers.
    let numbered = try makePlain(
      "real.store",
      "DROP TABLE store_meta; CREATE TABLE store_meta (version INTEGER); INSERT INTO store_meta VALUES (2.5)"
    )
    #expect(!Self.readsPages(numbered))
    Self.expectSameFindings(numbered, "a real")
  }

  @Test(
    "stores that are probed by their pages have one version while another process changes it all the time",
    .timeLimit(.minutes(5)))
  func concurrentWriter() throws {
    let path = try makePlain("a.store", "UPDATE store_meta SET version = '3.0.0'")
    #expect(Self.readsPages(path))
    let writer = try OtherProcess(
      """
      import threading
      c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
      over = []
      threading.Thread(target=lambda: (sys.stdin.read(), over.append(1))).start()
      print("writing", flush=True)
      n = 3
      while not over:
        n = 3 + (n - 2) % 5000
        c.execute("BEGIN IMMEDIATE")
        c.execute("UPDATE store_meta SET version = ?", (f"{n}.0.0",))
        c.execute("UPDATE note SET weight = weight + 1")
        c.execute(f"PRAGMA user_version = {n}")
        c.execute("COMMIT")
      """, path: path)
    var versions: Set<Schema.Version> = []
    var byPages = 0
    // On a busy machine the other process may get its turn late.
    for _ in 0..<1_000_000 where versions.count < 20 || byPages < 20 {
      guard let file = try? StoreFile.probe(path),
        let probe = StoreProbe(pagesOf: file, versionSources: [Self.source])
      else {
        // The schema may be forgotten, because other tests probe many.
        _ = Self.findings(path, readsPages: false)
        continue
      }
      byPages += 1
      let declared = probe.identity.declaredVersions
      #expect(declared[.userVersion] == declared[Self.source])
      if let version = declared[.userVersion] { versions.insert(version) }
    }
    writer.finish()
    #expect(versions.count >= 20)
  }
}
