internal import Foundation
public import GRDB

/// Files that are made to harm whoever reads them as a store, or that are damaged; and some that are
/// only unusual.
///
/// The same for the same seed. None takes much room on disk: what is large is sparse.
public struct HostileStores {
  /// What a probe has to make of a file.
  public enum Expectation: Sendable, Hashable {
    /// It is a store whose entities can be told, of which this is the first.
    case understood(firstEntity: String?)
    /// It has this state, and a reason.
    case state(String)
    /// It may be understood or not, as long as there is an answer.
    case anything
  }

  public struct File: Sendable {
    public var path: String
    public var expected: Expectation
  }

  public private(set) var files: [File] = []
  private let folder: String

  /// - Parameters:
  ///   - flips: How many copies of a store with some flipped bits.
  ///   - seed: What is random comes from it.
  public init(in folder: TemporaryFolder, flips: Int, seed: UInt64) throws {
    self.folder = folder.path
    try addOtherKinds()
    try addOtherContents()
    try addUnusualStores()
    try addHugeStores()
    try addExpressions()
    try addNames()
    try addMetadata()
    try addLyingSchemas()
    try addCircularTrees()
    try addSideFiles()
    var generator = SeededGenerator(seed: seed)
    try addTruncations()
    try addFlips(flips, using: &generator)
  }

  // MARK: - Making files

  private mutating func expect(_ name: String, _ expected: Expectation) -> String {
    let path = "\(folder)/\(name)"
    files.append(File(path: path, expected: expected))
    return path
  }

  private mutating func add(_ name: String, _ bytes: [UInt8], _ expected: Expectation) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: expect(name, expected)))
  }

  /// A store of two entities with some rows in the layout of Core Data, then changed by `sql`.
  private mutating func addStore(
    _ name: String, _ expected: Expectation = .understood(firstEntity: "Note"),
    pragmas: String = "PRAGMA page_size = 1024", sql: String = "",
    change: (Database) throws -> Void = { _ in }
  ) throws {
    try Self.makeStore(expect(name, expected), pragmas: pragmas, sql: sql, change: change)
  }

  /// The bytes of such a store.
  private func storeBytes(pragmas: String = "PRAGMA page_size = 1024", sql: String = "") throws
    -> [UInt8]
  {
    let path = "\(folder)/seed"
    try Self.makeStore(path, pragmas: pragmas, sql: sql)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// Makes a small sound store in the layout of Core Data, of the entities Note and Tag.
  public static func makeStore(
    _ path: String, pragmas: String = "PRAGMA page_size = 1024", sql: String = "",
    change: (Database) throws -> Void = { _ in }
  ) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: pragmas)
      try db.execute(sql: "PRAGMA synchronous = OFF")
      try db.execute(
        sql: """
          CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR);
          CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR);
          CREATE INDEX ZNOTE_ZTITLE_INDEX ON ZNOTE (ZTITLE);
          CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
          CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
          CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
          INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 200), (2, 'Tag', 0, 20);
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 200)
            INSERT INTO ZNOTE SELECT x, 1, 1, 'title ' || x FROM n;
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20)
            INSERT INTO ZTAG SELECT x, 2, 1, 'tag ' || x FROM n;
          """)
      try db.execute(
        sql: "INSERT INTO Z_METADATA VALUES (1, '00000000-0000-0000-0000-000000000000', ?)",
        arguments: [try metadata()])
      try db.execute(sql: sql)
      try change(db)
    }
    try queue.close()
  }

  private static func metadata(_ format: PropertyListSerialization.PropertyListFormat = .binary)
    throws -> Data
  {
    try PropertyListSerialization.data(
      fromPropertyList: [
        "NSStoreType": "SQLite",
        "NSStoreModelVersionIdentifiers": ["1.0.0"],
        "NSStoreModelVersionHashes": [
          "Note": Data(repeating: 1, count: 32), "Tag": Data(repeating: 2, count: 32),
        ],
      ] as [String: Any], format: format, options: 0)
  }

  // MARK: - Files that are not stores

  private mutating func addOtherKinds() throws {
    let manager = FileManager.default
    try manager.createDirectory(
      atPath: expect("folder", .state("notAStore")), withIntermediateDirectories: false)
    mkfifo(expect("fifo", .state("notAStore")), 0o600)
    try makeSocket(expect("socket", .state("notAStore")))
    try Self.makeStore("\(folder)/linked")
    symlink("\(folder)/linked", expect("link", .state("unknown")))
    symlink("link-to-itself", expect("link-to-itself", .state("unknown")))
    symlink("/dev/zero", expect("link-to-device", .state("unknown")))
    for path in ["/dev/zero", "/dev/null", "/proc/self/status", "/proc/self/mem"] {
      files.append(File(path: path, expected: .state("notAStore")))
    }
  }

  private func makeSocket(_ path: String) throws {
    // A path in the folder may be too long for a socket's address: it is made by its name alone.
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c",
      "import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind(sys.argv[2])",
      (path as NSString).deletingLastPathComponent, (path as NSString).lastPathComponent,
    ]
    try process.run()
    process.waitUntilExit()
  }

  private mutating func addOtherContents() throws {
    try add("empty", [], .state("notAStore"))
    try add("text", Array("hello, world\n".utf8), .state("notAStore"))
    try add("one-byte", [0], .state("notAStore"))
    try add("zeros", [UInt8](repeating: 0, count: 8192), .state("notAStore"))
    var generator = SeededGenerator(seed: 1)
    let random = (0..<8192).map { _ in UInt8.random(in: 0...255, using: &generator) }
    try add("encrypted", random, .state("encrypted"))
    try add("magic-only", Array("SQLite format 3\0".utf8), .state("corrupt"))
    try add("magic-and-noise", Array("SQLite format 3\0".utf8) + random, .state("corrupt"))
    let store = try storeBytes()
    for size: [UInt8] in [[0, 0], [0, 2], [1, 0], [3, 0], [0x80, 1], [0xFF, 0xFF]] {
      var bytes = store
      bytes[16] = size[0]
      bytes[17] = size[1]
      try add("page-size-\(size[0])-\(size[1])", bytes, .state("corrupt"))
    }
    var newer = store
    newer[18] = 9
    newer[19] = 9
    try add("newer-format", newer, .state("corrupt"))
    // First trunk page and number of free pages.
    var freelist = store
    for index in 32..<40 { freelist[index] = 0xFE }
    try add("freelist", freelist, .anything)
  }

  // MARK: - Unusual, and huge

  private mutating func addUnusualStores() throws {
    for size in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] {
      try addStore("pages-\(size)", pragmas: "PRAGMA page_size = \(size)")
    }
    for encoding in ["UTF-16le", "UTF-16be"] {
      try addStore("encoding-\(encoding)", pragmas: "PRAGMA encoding = '\(encoding)'")
    }
    try addStore("auto-vacuum", pragmas: "PRAGMA auto_vacuum = INCREMENTAL")
    try addStore(
      "empty-tables", sql: "DELETE FROM ZNOTE; DELETE FROM Z_PRIMARYKEY; DELETE FROM Z_METADATA")
    files[files.count - 1].expected = .anything
    try addStore(
      "virtual-tables",
      sql: """
        CREATE VIRTUAL TABLE words USING fts5(word);
        CREATE VIRTUAL TABLE places USING rtree(id, a, b);
        CREATE TABLE strict (a INTEGER PRIMARY KEY, b ANY) STRICT;
        CREATE TABLE bare (a TEXT PRIMARY KEY) WITHOUT ROWID;
        """)
  }

  private mutating func addHugeStores() throws {
    // Written as SQLite would write it, but at once; all have the root page of an empty table.
    func addTables(_ count: Int, _ columns: String) -> String {
      """
      CREATE TABLE blank (a);
      PRAGMA writable_schema = ON;
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT \(count))
        INSERT INTO sqlite_schema
        SELECT 'table', 't' || x, 't' || x,
          (SELECT rootpage FROM sqlite_schema WHERE name = 'blank'),
          'CREATE TABLE t' || x || ' (\(columns))' FROM n;
      """
    }
    try addStore(
      "tables-10000", sql: addTables(10_000, "id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB"))
    let columns = (0..<2000).map { "c\($0) INTEGER" }.joined(separator: ", ")
    try addStore("columns-2000", sql: "CREATE TABLE ZWIDE (\(columns))")
    // 600,000 columns: more than are read.
    let wide = (0..<2000).map { "\"column with a long name \($0)\" INTEGER" }
      .joined(separator: ", ")
    try addStore("columns-everywhere", .anything, sql: addTables(300, wide))
    // One terabyte, none of it written.
    try addStore("sparse")
    truncate(try lastPath(), 1 << 40)
    files[files.count - 1].expected = .anything
    try add("sparse-zeros", [0], .state("notAStore"))
    truncate(try lastPath(), 1 << 40)
    try addStore(
      "entities-many",
      change: { db in
        try db.execute(
          sql: """
            WITH RECURSIVE n(x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n LIMIT 15000)
              INSERT INTO Z_PRIMARYKEY SELECT x, 'Entity' || x, x - 1, 0 FROM n;
            UPDATE Z_PRIMARYKEY SET Z_SUPER = 15000 WHERE Z_ENT = 1;
            """)
      })
  }

  private func lastPath() throws -> String { files.last?.path ?? folder }

  // MARK: - Code in a schema

  private mutating func addExpressions() throws {
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
    try addStore(
      "views",
      sql: """
        CREATE VIEW bomb AS \(endless) SELECT x FROM n;
        DROP TABLE ZTAG;
        CREATE VIEW ZTAG AS \(endless) SELECT x AS Z_PK, 2 AS Z_ENT FROM n;
        CREATE VIEW v0 AS SELECT 1 AS a;
        \((1..<60).map { "CREATE VIEW v\($0) AS SELECT x.a FROM v\($0 - 1) x, v\($0 - 1) y;" }.joined())
        """)
    try addStore(
      "metadata-is-a-view",
      sql: """
        DROP TABLE Z_METADATA;
        CREATE VIEW Z_METADATA AS \(endless) SELECT x AS Z_VERSION, x AS Z_UUID, x AS Z_PLIST FROM n;
        """)
    files[files.count - 1].expected = .anything
    try addStore(
      "triggers",
      sql: """
        CREATE TRIGGER loop AFTER INSERT ON ZNOTE BEGIN
          INSERT INTO ZNOTE (ZTITLE) \(endless) SELECT x FROM n;
        END;
        CREATE TRIGGER load AFTER UPDATE ON ZNOTE BEGIN SELECT load_extension('/tmp/evil.so'); END;
        """)
    try addStore(
      "checks",
      sql: """
        CREATE TABLE ZCHECKED (Z_PK INTEGER PRIMARY KEY, a CHECK (load_extension('/tmp/evil.so')),
          b AS (replace(hex(zeroblob(100000000)), '0', '00')), c DEFAULT (randomblob(1000000000)));
        CREATE INDEX ZCHECKED_INDEX ON ZCHECKED (hex(zeroblob(400000000))) WHERE length(a) > 1;
        """)
    // The list of entities computes its names.
    for (name, expression) in [
      ("generated-huge", "hex(zeroblob(400000000))"),
      ("generated-slow", "length(replace(hex(zeroblob(3000000)), '0', 'aa'))"),
    ] {
      try addStore(
        name, .anything,
        sql: """
          WITH RECURSIVE n(x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n LIMIT 5000)
            INSERT INTO Z_PRIMARYKEY (Z_ENT) SELECT x FROM n;
          PRAGMA writable_schema = ON;
          UPDATE sqlite_schema SET sql = 'CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY,
            Z_NAME AS (\(expression.replacingOccurrences(of: "'", with: "''"))),
            Z_SUPER INTEGER, Z_MAX INTEGER)' WHERE name = 'Z_PRIMARYKEY';
          """)
    }
    try addStore(
      "metadata-generated", .anything,
      sql: """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = 'CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY,
          Z_UUID AS (hex(zeroblob(400000000))), Z_PLIST AS (zeroblob(900000000)))'
          WHERE name = 'Z_METADATA';
        """)
  }

  private mutating func addNames() throws {
    let names = [
      "\"", "'", "]", "`", "a\"b'c", "line\nbreak", "tab\ttab", "\u{1B}[31mred\u{1B}[0m", "\u{0}x",
      "😀👨‍👩‍👧", "é\u{301}", "\u{202E}txt", " ", "", "sqlite", "a;DROP TABLE ZNOTE;--", "%s%n",
      String(repeating: "x", count: 100_000),
    ]
    for (index, name) in names.enumerated() {
      let quoted = "\"" + name.replacingOccurrences(of: "\"", with: "\"\"") + "\""
      let isPossible = !name.contains("\u{0}")
      try addStore(
        "name-\(index)",
        change: { db in
          if isPossible {
            try db.execute(
              sql: "CREATE TABLE \(quoted) (\(quoted) TEXT); INSERT INTO \(quoted) VALUES (1)")
          }
          try db.execute(
            sql: "INSERT INTO Z_PRIMARYKEY VALUES (3, CAST(? AS TEXT), 0, 0)",
            arguments: [Data(name.utf8)])
        })
    }
    try addStore(
      "name-not-utf8",
      change: { db in
        try db.execute(sql: "INSERT INTO Z_PRIMARYKEY VALUES (3, CAST(x'FFFEC080' AS TEXT), 0, 0)")
        try db.execute(sql: "INSERT INTO Z_PRIMARYKEY VALUES (4, x'FFFEC080', 0, 0)")
      })
  }

  // MARK: - Metadata

  private mutating func addMetadata() throws {
    let bytes: [(String, [UInt8])] = [
      ("empty", []), ("magic", Array("bplist00".utf8)), ("deep", Self.deepList(30_000)),
      ("laughs", Self.laughs(30)), ("circle", Self.circle), ("set", Self.setOfReferences),
      ("xml", [UInt8](try Self.metadata(.xml))), ("old", Array("{ a = (((((".utf8)),
      ("old-deep", [UInt8](repeating: UInt8(ascii: "("), count: 200_000)),
      (
        "xml-deep",
        Array("<?xml version=\"1.0\"?><plist>".utf8)
          + Array(String(repeating: "<array>", count: 50_000).utf8)
      ),
      ("large", [UInt8](repeating: 0x61, count: 6 << 20)),
      (
        "array",
        [UInt8](
          try PropertyListSerialization.data(fromPropertyList: [1, 2], format: .binary, options: 0))
      ),
    ]
    for (name, plist) in bytes {
      // An empty list counts as missing, and one that is too long is not read.
      let isDamaged = !["empty", "large", "xml"].contains(name)
      try addStore(
        "plist-\(name)", isDamaged ? .state("corrupt") : .understood(firstEntity: "Note"),
        change: { db in
          try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [Data(plist)])
        })
    }
    try addStore("plist-null", sql: "UPDATE Z_METADATA SET Z_PLIST = NULL")
    try addStore("plist-text", .state("corrupt"), sql: "UPDATE Z_METADATA SET Z_PLIST = 'text'")
    try addStore("plist-number", .state("corrupt"), sql: "UPDATE Z_METADATA SET Z_PLIST = 1e308")
    try addStore("no-metadata", sql: "DELETE FROM Z_METADATA")
    try addStore("metadata-of-others", sql: "ALTER TABLE Z_METADATA RENAME Z_PLIST TO other")
    files[files.count - 1].expected = .anything
    try addStore(
      "entities-of-others", .anything, sql: "ALTER TABLE Z_PRIMARYKEY RENAME Z_NAME TO other")
    try addStore(
      "many-metadata",
      change: { db in
        try db.execute(
          sql: """
            WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n LIMIT 10000)
              INSERT INTO Z_METADATA SELECT x, x, x FROM n
            """)
      })
    let caches: [(String, [UInt8])] = [
      ("empty", []), ("noise", (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 167) }),
      ("bomb", Self.deflatedZeros(megabytes: 400)),
      ("stored-deep", Self.stored(Self.deepList(9_000))),
      ("stored-laughs", Self.stored(Self.laughs(30))), ("stored-circle", Self.stored(Self.circle)),
    ]
    for (name, cache) in caches {
      try addStore(
        "cache-\(name)",
        change: { db in
          try db.execute(sql: "INSERT INTO Z_MODELCACHE VALUES (?)", arguments: [Data(cache)])
        })
    }
    try addStore("cache-null", sql: "INSERT INTO Z_MODELCACHE VALUES (NULL)")
  }

  /// A binary property list whose object 0 is the first of these.
  private static func propertyList(_ objects: [[UInt8]]) -> [UInt8] {
    var bytes = Array("bplist00".utf8)
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      bytes += object
    }
    let table = bytes.count
    for offset in offsets { bytes += bigEndian(offset, 4) }
    bytes += [0, 0, 0, 0, 0, 0, 4, 4] + bigEndian(offsets.count, 8) + bigEndian(0, 8)
    return bytes + bigEndian(table, 8)
  }

  private static func bigEndian(_ value: Int, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * (size - 1 - $0))) }
  }

  /// An array in an array in an array.
  public static func deepList(_ depth: Int) -> [UInt8] {
    propertyList((1...depth).map { [0xA1] + bigEndian($0, 4) } + [[0x51, 0x61]])
  }

  /// Each array has the next one ten times.
  public static func laughs(_ depth: Int) -> [UInt8] {
    propertyList(
      (1...depth).map { next in [0xAA] + (0..<10).flatMap { _ in bigEndian(next, 4) } } + [
        [0x51, 0x61]
      ])
  }

  /// A dictionary whose value is itself.
  public static var circle: [UInt8] {
    propertyList([[0xD1] + bigEndian(1, 4) + bigEndian(0, 4), [0x51, 0x61]])
  }

  /// A dictionary whose value is a set of what only archives have.
  static var setOfReferences: [UInt8] {
    propertyList([
      [0xD1] + bigEndian(1, 4) + bigEndian(2, 4), [0x51, 0x61],
      [0xC2] + bigEndian(3, 4) + bigEndian(4, 4), [0x80, 0x01], [0x00],
    ])
  }

  /// A raw DEFLATE stream of zeros, a thousandth of their size.
  public static func deflatedZeros(megabytes: Int) -> [UInt8] {
    var bits: [Bool] = []
    func put(_ code: Int, _ count: Int) {
      for index in (0..<count).reversed() { bits.append(code >> index & 1 == 1) }
    }
    // Last block, fixed codes; the literal 0; then "258 bytes, one back" again and again.
    bits += [true, true, false]
    put(0b0011_0000, 8)
    // 8 times 13 bits are 13 whole bytes, whatever bit they begin at.
    var bytes: [UInt8] = []
    for _ in 0..<16 {
      put(0b1100_0101, 8)
      put(0, 5)
    }
    func flush() {
      while bits.count >= 8 {
        bytes.append((0..<8).reduce(0) { $0 | (bits[$1] ? 1 << UInt8($1) : 0) })
        bits.removeFirst(8)
      }
    }
    flush()
    let period = Array(bytes.suffix(13))
    for _ in 0..<(megabytes * 1_048_576 / (258 * 8)) { bytes += period }
    put(0, 7)
    put(0, 8)
    flush()
    return bytes
  }

  /// A raw DEFLATE stream that holds the bytes as they are.
  public static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var stream: [UInt8] = []
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(65535)
      rest = rest.dropFirst(block.count)
      let count = UInt16(block.count)
      stream += [rest.isEmpty ? 1 : 0, UInt8(count & 0xFF), UInt8(count >> 8)]
      stream += [UInt8(~count & 0xFF), UInt8(~count >> 8)] + block
    } while !rest.isEmpty
    return stream
  }

  // MARK: - Lists of tables that lie

  private mutating func addLyingSchemas() throws {
    let lies = [
      "sql = 'CREATE TABLE other (a, b)' WHERE name = 'ZNOTE'",
      "sql = 'CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY) WITHOUT ROWID' WHERE name = 'ZNOTE'",
      "sql = 'CREATE VIEW ZNOTE AS SELECT 1' WHERE name = 'ZNOTE'",
      "sql = 'CREATE TABLE ZNOTE AS SELECT load_extension(1)' WHERE name = 'ZNOTE'",
      "sql = 'DROP TABLE ZTAG' WHERE name = 'ZNOTE'", "sql = 'CREATE TABLE' WHERE name = 'ZNOTE'",
      "sql = NULL WHERE name = 'ZNOTE'", "sql = x'00FF' WHERE name = 'ZNOTE'",
      "sql = 'CREATE VIRTUAL TABLE ZNOTE USING fts5(a)' WHERE name = 'ZNOTE'",
      "sql = 'CREATE VIRTUAL TABLE ZNOTE USING dbstat', rootpage = 0 WHERE name = 'ZNOTE'",
      "sql = 'CREATE VIRTUAL TABLE ZNOTE USING none', rootpage = 0 WHERE name = 'ZNOTE'",
      "type = 'index' WHERE name = 'ZNOTE'", "type = 'nothing' WHERE name = 'ZNOTE'",
      "type = NULL WHERE name = 'ZNOTE'", "name = NULL WHERE name = 'ZNOTE'",
      "name = 'Z_METADATA' WHERE name = 'ZNOTE'", "name = 'sqlite_schema' WHERE name = 'ZNOTE'",
      "tbl_name = 'nobody' WHERE name = 'ZNOTE'", "rootpage = 1 WHERE name = 'ZNOTE'",
      "rootpage = 0 WHERE name = 'ZNOTE'", "rootpage = -1 WHERE name = 'ZNOTE'",
      "rootpage = 4000000000 WHERE name = 'ZNOTE'", "rootpage = 'x' WHERE name = 'ZNOTE'",
      "rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'ZTAG') WHERE name = 'ZNOTE'",
      "rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'ZTAG') WHERE type = 'index'",
      "rootpage = 1", "sql = 'CREATE TABLE same (a)'", "name = 'same', tbl_name = 'same'",
      "sql = 'CREATE TABLE ZNOTE (a ' || replace(hex(zeroblob(500000)), '0', '(') WHERE name = 'ZNOTE'",
      "sql = 'CREATE TABLE ZNOTE (a CHECK (' || replace(hex(zeroblob(1000)), '0', '(') || ')))' WHERE name = 'ZNOTE'",
      "sql = 'CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, a AS (load_extension(1)))' WHERE name = 'ZNOTE'",
      "sql = 'CREATE INDEX ZNOTE_ZTITLE_INDEX ON ZNOTE (nobody)' WHERE type = 'index'",
      "sql = 'CREATE INDEX ZNOTE_ZTITLE_INDEX ON ZNOTE (load_extension(1))' WHERE type = 'index'",
    ]
    for (index, lie) in lies.enumerated() {
      try addStore(
        "lie-\(index)", .anything,
        change: { db in
          try db.execute(sql: "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET \(lie)")
        })
    }
  }

  // MARK: - Trees that lead in circles

  /// A tree whose every page leads 70 times to the same page below it: it has 70 to the 17th rows.
  private mutating func addCircularTrees() throws {
    let pageSize = 512
    func interior(_ child: Int, headerOffset: Int = 0) -> [UInt8] {
      var page = [UInt8](repeating: 0, count: pageSize)
      let count = (pageSize - headerOffset - 12) / 7 - 1
      let start = pageSize - count * 5
      page.replaceSubrange(
        headerOffset..<(headerOffset + 12),
        with: [5, 0, 0] + Self.bigEndian(count, 2) + Self.bigEndian(start, 2) + [0]
          + Self.bigEndian(child, 4))
      for index in 0..<count {
        let cell = start + index * 5
        page.replaceSubrange(cell..<(cell + 5), with: Self.bigEndian(child, 4) + [UInt8(1 + index)])
        let pointer = headerOffset + 12 + index * 2
        page.replaceSubrange(pointer..<(pointer + 2), with: Self.bigEndian(cell, 2))
      }
      return page
    }
    var store = try storeBytes(pragmas: "PRAGMA page_size = \(pageSize)")
    let pageCount = store.count / pageSize
    let depth = 17
    // The last page is a leaf of the table of tags.
    let queue = try DatabaseQueue()
    try queue.close()
    let root = try Self.rootPage(of: "ZTAG", in: store, folder: folder)
    let leaf = Array(store[((root - 1) * pageSize)..<(root * pageSize)])
    for level in 1...depth { store += level < depth ? interior(pageCount + level + 1) : leaf }
    let total = pageCount + depth
    store.replaceSubrange(28..<32, with: Self.bigEndian(total, 4))
    var table = store
    table.replaceSubrange(
      ((root - 1) * pageSize)..<(root * pageSize), with: interior(pageCount + 1))
    try add("tree-of-a-table", table, .understood(firstEntity: "Note"))
    var itself = store
    itself.replaceSubrange(((root - 1) * pageSize)..<(root * pageSize), with: interior(root))
    try add("tree-to-itself", itself, .understood(firstEntity: "Note"))

    // The same for the list of tables: its leaf is a copy of what page 1 was.
    var schema = store
    var list = interior(pageCount + 1, headerOffset: 100)
    list.replaceSubrange(0..<100, with: store[0..<100])
    schema.replaceSubrange(0..<pageSize, with: list)
    try add("tree-of-the-schema", schema, .state("corrupt"))
  }

  private static func rootPage(of table: String, in store: [UInt8], folder: String) throws -> Int {
    let path = "\(folder)/seed"
    try Data(store).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read {
      try Int.fetchOne(
        $0, sql: "SELECT rootpage FROM sqlite_schema WHERE name = ?", arguments: [table])
    } ?? 0
  }

  // MARK: - Side files

  private mutating func addSideFiles() throws {
    let manager = FileManager.default
    for suffix in ["-wal", "-shm", "-journal"] {
      for mode in ["DELETE", "WAL"] {
        func name(_ kind: String) -> String { "side\(suffix)-\(mode)-\(kind)" }
        let pragmas = "PRAGMA page_size = 1024; PRAGMA journal_mode = \(mode)"
        try addStore(name("fifo"), .anything, pragmas: pragmas)
        mkfifo(try lastPath() + suffix, 0o600)
        try addStore(name("folder"), .anything, pragmas: pragmas)
        try manager.createDirectory(
          atPath: try lastPath() + suffix, withIntermediateDirectories: false)
        try addStore(name("link"), .anything, pragmas: pragmas)
        symlink("/etc/passwd", try lastPath() + suffix)
        try addStore(name("noise"), .anything, pragmas: pragmas)
        try Data((0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 89 &+ 1) })
          .write(to: URL(fileURLWithPath: try lastPath() + suffix))
        try addStore(name("huge"), .anything, pragmas: pragmas)
        try Data([1]).write(to: URL(fileURLWithPath: try lastPath() + suffix))
        truncate(try lastPath() + suffix, 1 << 40)
      }
    }
    try addLogs()
    try addJournals()
  }

  /// A log that a killed process left, then damaged.
  private mutating func addLogs() throws {
    let source = "\(folder)/log-source"
    try Self.makeStore(source, pragmas: "PRAGMA page_size = 1024; PRAGMA journal_mode = WAL")
    let queue = try DatabaseQueue(path: source)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          PRAGMA wal_autocheckpoint = 0;
          INSERT INTO ZTAG VALUES (100, 2, 1, 'new');
          INSERT INTO Z_PRIMARYKEY VALUES (3, 'Late', 0, 0);
          """)
    }
    let store = [UInt8](try Data(contentsOf: URL(fileURLWithPath: source)))
    let log = [UInt8](try Data(contentsOf: URL(fileURLWithPath: source + "-wal")))
    try queue.close()
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: source + suffix)
    }
    var damaged: [(String, [UInt8])] = [("whole", log), ("cut", Array(log.dropLast(500)))]
    for (name, place) in [
      ("magic", 0), ("page-size", 10), ("salt", 16), ("header-checksum", 24), ("page-number", 32),
      ("commit", 36), ("frame-salt", 40), ("frame-checksum", 48), ("content", 200),
    ] {
      var copy = log
      copy[place] ^= 0x41
      damaged.append((name, copy))
    }
    for (name, bytes) in damaged {
      try add("log-\(name)", store, .understood(firstEntity: "Note"))
      try Data(bytes).write(to: URL(fileURLWithPath: try lastPath() + "-wal"))
    }
  }

  /// Journals of transactions that were cut off: of the store itself, of several databases, and one
  /// that would be undone by a terabyte.
  private mutating func addJournals() throws {
    let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    func journal(records: Int, pages: Int, sector: Int, pageSize: Int) -> [UInt8] {
      let header =
        magic + Self.bigEndian(records, 4) + [0, 0, 0, 7] + Self.bigEndian(pages, 4)
        + Self.bigEndian(sector, 4) + Self.bigEndian(pageSize, 4)
      return header + [UInt8](repeating: 0, count: max(0, min(sector, 4096) - header.count))
    }
    let record: [UInt8] = [0, 0, 0, 2] + [UInt8](repeating: 0, count: 1024) + [0, 0, 0, 7]
    let journals: [(String, [UInt8])] = [
      ("no-records", journal(records: 0, pages: 1, sector: 512, pageSize: 1024)),
      ("one-record", journal(records: 1, pages: 40, sector: 512, pageSize: 1024) + record),
      (
        "many-records",
        journal(records: 0x7FFF_FFFF, pages: 0x7FFF_FFFF, sector: 512, pageSize: 1024) + record
      ),
      (
        "all-records", journal(records: 0xFFFF_FFFF, pages: 0, sector: 512, pageSize: 1024) + record
      ),
      ("other-page-size", journal(records: 1, pages: 40, sector: 512, pageSize: 65536) + record),
      ("senseless", journal(records: 1, pages: 40, sector: 3, pageSize: 7) + record),
    ]
    for (name, bytes) in journals {
      try addStore("journal-\(name)", .anything)
      try Data(bytes).write(to: URL(fileURLWithPath: try lastPath() + "-journal"))
    }
    // SQLite removes the file that such a journal names, once it has undone the transaction.
    let victim = "\(folder)/victim"
    try Data("keep me\n".utf8).write(to: URL(fileURLWithPath: victim))
    let name = Array(victim.utf8)
    let checksum = name.reduce(0) { $0 &+ Int(Int8(bitPattern: $1)) }
    try addStore("journal-of-several", .state("busy"))
    try Data(
      journal(records: 1, pages: 40, sector: 512, pageSize: 1024) + record
        + Self.bigEndian(0x4000_0000 / 1024 + 1, 4) + name + Self.bigEndian(name.count, 4)
        + Self.bigEndian(checksum, 4) + magic
    ).write(to: URL(fileURLWithPath: try lastPath() + "-journal"))
    try addStore("journal-of-sparse", .anything)
    truncate(try lastPath(), 1 << 40)
    try Data(journal(records: 1, pages: 40, sector: 512, pageSize: 1024) + record)
      .write(to: URL(fileURLWithPath: try lastPath() + "-journal"))
  }

  // MARK: - Damage

  private mutating func addTruncations() throws {
    let store = try storeBytes(pragmas: "PRAGMA page_size = 512")
    for end in stride(from: 512, to: store.count, by: 512) {
      try add("cut-\(end)", Array(store.prefix(end)), .state("corrupt"))
    }
    try add("cut-header", Array(store.prefix(99)), .state("corrupt"))
    try add("cut-within", Array(store.prefix(store.count - 1)), .state("corrupt"))
    // Without a count in the header that can be believed.
    var old = store
    old.replaceSubrange(92..<96, with: [0, 0, 0, 0])
    for end in stride(from: 512, to: store.count, by: 2048) {
      try add("cut-old-\(end)", Array(old.prefix(end)), .anything)
    }
  }

  private mutating func addFlips(_ count: Int, using generator: inout SeededGenerator) throws {
    let store = try storeBytes(
      pragmas: "PRAGMA page_size = 512", sql: "DELETE FROM ZNOTE WHERE Z_PK > 20; VACUUM")
    for index in 0..<count {
      var bytes = store
      for _ in 0..<Int.random(in: 1...8, using: &generator) {
        // Every other one near the beginning of a page, where its structure is.
        let place =
          Bool.random(using: &generator)
          ? Int.random(in: 0..<store.count, using: &generator)
          : Int.random(in: 0..<(store.count / 512), using: &generator) * 512
            + Int.random(in: 0..<24, using: &generator)
        bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      }
      try add("flip-\(index)", bytes, .anything)
    }
  }
}
