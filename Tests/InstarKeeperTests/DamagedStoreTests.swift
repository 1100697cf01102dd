import Foundation
import GRDB
@testable import InstarKeeper
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Damage, in a store and in a clone")
struct DamagedStoreTests {
  /// Statements that damage a store or a clone, and what the error names.
  static let damages: [(sql: String, found: String)] = [
    (
      unknown(
        "by_title",
        during: "INSERT INTO note (title, size) VALUES ('unseen', 1); DELETE FROM note WHERE id = 3"
      ),
      "index 'by_title' of table 'note' does not match the rows of its table"
    ),
    (
      unknown("by_title", during: "DELETE FROM note WHERE id = 3"),
      "index 'by_title' of table 'note' has 20 entries for 19 rows"
    ),
    (
      rewritten("by_code", "'CREATE INDEX by_code ON note (code)'")
        + "UPDATE note SET code = 'c1' WHERE id = 2;"
        + rewritten("by_code", "'CREATE UNIQUE INDEX by_code ON note (code)'"),
      "index 'by_code' of table 'note' must be unique, but has the same key twice"
    ),
    (
      "PRAGMA ignore_check_constraints = ON; UPDATE note SET size = -1 WHERE id < 4;",
      "3 rows of table 'note' violate CHECK (size >= 0)"
    ),
    (
      "CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'note';"
        + rewritten("note", "replace(sql, 'upper(', 'lower(')")
        + "UPDATE note SET title = 'a' || id;"
        + rewritten("note", "(SELECT sql FROM kept)"),
      "20 rows of table 'note' violate generated column 'shout'"
    ),
    (
      rewritten("note", "replace(sql, 'size INTEGER NOT NULL', 'size INTEGER')")
        + "UPDATE note SET size = NULL WHERE id = 5;"
        + rewritten("note", "replace(sql, 'size INTEGER', 'size INTEGER NOT NULL')"),
      "NULL value in note.size"
    ),
  ]

  @Test(
    "a damaged store is refused as corrupt, with what is damaged, and nothing is left",
    arguments: damages, PlainFixture.Kind.allCases)
  fileprivate func store(damage: (sql: String, found: String), kind: PlainFixture.Kind) throws {
    let (sql, found) = damage
    // The indexes of a large store are read in its clone.
    let fixture = try PlainFixture(kind)
    try fixture.write(sql)
    let before = try fixture.bytes()
    let report = try fixture.migrate()
    #expect(report.error?.code == .corruptStore, "\(String(describing: report.error))")
    #expect(report.error?.cause.contains(found) == true, "\(String(describing: report.error))")
    // The file of rows that violate a constraint of the app is whole.
    let isWhole = found.contains(" violate ")
    #expect(report.error?.provesDamage == (isWhole ? nil : true))
    #expect(report.error?.state == "unchanged")
    #expect(report.backup == nil)
    #expect(try fixture.bytes() == before)
    #expect(!fixture.hasInstarFolder)
  }

  @Test(
    "a damaged store is refused too where all is verified",
    arguments: damages, [PlainFixture.Kind.small, .large])
  fileprivate func fullVerification(
    damage: (sql: String, found: String), kind: PlainFixture.Kind
  ) throws {
    let fixture = try PlainFixture(kind)
    try fixture.write(damage.sql)
    let report = try fixture.migrate(verification: .full)
    #expect(report.error?.code == .corruptStore, "\(String(describing: report.error))")
    #expect(report.error?.cause.contains(damage.found) == true)
    let isWhole = damage.found.contains(" violate ")
    #expect(report.error?.provesDamage == (isWhole ? nil : true))
    #expect(!fixture.hasInstarFolder)
  }

  @Test(
    "a store is refused where the new column gives an index another meaning",
    arguments: [
      "CREATE INDEX of_tone ON note (title) WHERE \"tone\" = 'tone'",
      "CREATE INDEX by_tone ON note (title, ('x' || \"tone\"))",
      "CREATE INDEX by_tone ON note (\"tone\")",
      """
      ALTER TABLE note ADD COLUMN shade TEXT AS ("tone" || title);
      CREATE INDEX by_shade ON note (shade)
      """,
    ], PlainFixture.Kind.allCases)
  fileprivate func capturedName(index: String, kind: PlainFixture.Kind) throws {
    let fixture = try PlainFixture(kind)
    // Its value is computed: with it a transaction is never compared with the backup.
    try fixture.write("ALTER TABLE note DROP COLUMN shout; \(index)")
    let before = try fixture.bytes()
    let report = try fixture.migrate()
    #expect(report.result == .failed, "\(report)")
    #expect(report.error?.code == .verificationFailed, "\(String(describing: report.error))")
    #expect(try fixture.bytes() == before)
  }

  @Test(
    "a small store without computed values is migrated, and is sound",
    arguments: VerificationPolicy.allCases)
  func smallAndIntact(verification: VerificationPolicy) throws {
    let fixture = try PlainFixture(.small)
    try fixture.write("ALTER TABLE note DROP COLUMN shout")
    let report = try fixture.migrate(verification: verification)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try fixture.integrity() == "ok")
  }

  @Test(
    "a damaged page and a missing end of the file, which no probe reads, are proofs of damage",
    arguments: PlainFixture.Kind.allCases, [true, false])
  fileprivate func unreadPages(kind: PlainFixture.Kind, isTruncated: Bool) throws {
    let fixture = try PlainFixture(kind)
    var bytes = try fixture.bytes()
    let end = bytes.count - 512
    if isTruncated {
      // SQLite takes the length of the file for its number of pages if an old version of SQLite wrote last.
      bytes[95] ^= 1
      bytes.removeSubrange(end...)
    } else {
      bytes.replaceSubrange(end..., with: repeatElement(0xA5, count: 512))
    }
    try fixture.replace(with: bytes)
    let report = try fixture.migrate()
    #expect(report.error?.code == .corruptStore, "\(String(describing: report.error))")
    #expect(report.error?.provesDamage == true, "\(String(describing: report.error))")
    // SQLite corrects the number of pages in the header with its next write lock.
    #expect(try isTruncated || fixture.bytes() == bytes)
  }

  @Test(
    "a large store that is intact is migrated, and its backup is sound",
    arguments: VerificationPolicy.allCases)
  func largeAndIntact(verification: VerificationPolicy) throws {
    let fixture = try PlainFixture(.large)
    let report = try fixture.migrate(verification: verification)
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    let backup = try #require(report.backup)
    _ = try GuardedConnection.use(backup, access: .immutable) {
      try StoreCheck.requireSound($0, "the backup")
    }
  }

  @Test("a large store with one flipped bit is refused and unchanged, or migrated and sound")
  func flippedBits() throws {
    let fixture = try PlainFixture(.large)
    let whole = try fixture.bytes()
    /// - Returns: Whether the store was refused.
    func isRefused(flipping bit: UInt8, ofByte place: Int, _ comment: Comment) throws -> Bool {
      var bytes = whole
      bytes[place] ^= 1 << bit
      try fixture.replace(with: bytes)
      if try fixture.migrate().result == .migrated {
        #expect(try fixture.integrity() == "ok", comment)
        return false
      }
      #expect(try fixture.bytes() == bytes, comment)
      #expect(!fixture.hasInstarFolder, comment)
      return true
    }
    for flip in try fixture.fatalFlips() {
      #expect(try isRefused(flipping: flip.bit, ofByte: flip.byte, flip.why), flip.why)
    }
    // Many bits of a store mean nothing to SQLite, or are the app's own. So perhaps none of these is refused.
    let seed = UInt64.random(in: 0..<1_000_000)
    var chance = SeededGenerator(seed: seed)
    for number in 0..<40 {
      // Half of them where the rows and indexes of 'note' are, not in the large value behind them. Half of these in the
      // first page, where most bits count.
      let range =
        number.isMultiple(of: 4)
        ? 0..<512 : number.isMultiple(of: 2) ? 0..<12 * 512 : 0..<whole.count
      let place = Int.random(in: range, using: &chance)
      let bit = UInt8.random(in: 0..<8, using: &chance)
      let comment = Comment(rawValue: "seed \(seed), number \(number), byte \(place)")
      _ = try isRefused(flipping: bit, ofByte: place, comment)
    }
  }

  @Test(
    "a clone that a worker damaged never replaces the store, and the error names the damage",
    arguments: damages, [PlainFixture.Kind.custom, .largeCustom])
  fileprivate func clone(damage: (sql: String, found: String), kind: PlainFixture.Kind) throws {
    try refused(damage.sql, .verificationFailed, damage.found, kind)
  }

  /// Gives index 'by_title' the tree of another table, whose entries have a value behind the rowid. SQLite reads rowids
  /// from the end of an entry. No check of SQLite 3.40 finds that; a later `integrity_check` does.
  private static let longEntries = """
    CREATE TEMP TABLE kept AS SELECT name, rootpage FROM sqlite_schema WHERE name IN ('by_title', 'longer');
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM kept
      WHERE name = CASE type WHEN 'index' THEN 'longer' ELSE 'by_title' END)
      WHERE name IN ('by_title', 'longer');
    PRAGMA writable_schema = RESET;
    """

  @Test(
    "damage that only a query of the plan meets is reported as damage, not as an error of the plan",
    arguments: VerificationPolicy.allCases, [PlainFixture.Kind.custom, .largeCustom])
  fileprivate func damageOfQuery(verification: VerificationPolicy, kind: PlainFixture.Kind) throws {
    let fixture = try PlainFixture(kind)
    try fixture.write(
      """
      CREATE TABLE longer (title, id, more, PRIMARY KEY (title, id)) WITHOUT ROWID;
      INSERT INTO longer SELECT title, id, 'x' FROM note;
      """)
    // SQLite reads both columns from the index.
    let query = "SELECT title, id FROM note WHERE title > '' ORDER BY title"
    let sound = try fixture.migrate(
      rehearses: true, verification: verification, invariants: [.staysEqual(query)])
    #expect(sound.result == .rehearsed, "\(String(describing: sound.error))")
    let before = try fixture.bytes()
    let report = try fixture.migrate(
      tampering: Self.longEntries, verification: verification, invariants: [.staysEqual(query)])
    #expect(report.result == .failed)
    #expect(report.error?.code == .verificationFailed, "\(String(describing: report.error))")
    #expect(report.error?.state == "unchanged")
    #expect(try fixture.bytes() == before)
    #expect(!fixture.hasInstarFolder)
  }

  /// What a worker can write into the schema, and what the error names.
  static let schemas: [(sql: String, found: String)] = [
    (rewritten("note", "replace(sql, 'size >= 0', '0')"), "CHECK (0)"),
    (
      rewritten(
        "note",
        "replace(sql, 'size >= 0', 'instr(hex(zeroblob(30000000)), hex(zeroblob(15000000)) || 1)')"),
      "table 'note' has '"
    ),
    (
      rewritten(
        "note",
        "replace(sql, 'upper(title)', 'hex(zeroblob(400000000)) || hex(zeroblob(400000000))')"),
      "table 'note' has '"
    ),
    (rewritten("note", "replace(sql, 'DEFAULT 7', 'DEFAULT (zeroblob(900000000))')"), "zeroblob(9"),
    (
      rewritten("note", "replace(sql, 'title TEXT', 'title TEXT COLLATE nobody')"), "COLLATE nobody"
    ),
    (rewritten("by_title", "replace(sql, '(title)', '(title COLLATE nobody)')"), "COLLATE nobody"),
    (
      rewritten("note", "replace(sql, 'NOT NULL', 'NOT NULL ON CONFLICT REPLACE')"),
      "ON CONFLICT REPLACE"
    ),
    (
      rewritten("note", "replace(sql, 'folder (id)', 'folder (id) ON DELETE CASCADE')"),
      "ON DELETE CASCADE"
    ),
    ("DROP INDEX by_code; CREATE INDEX by_code ON note (code);", "CREATE INDEX by_code"),
    (
      "CREATE TRIGGER spy AFTER INSERT ON folder BEGIN DELETE FROM note; END;",
      "trigger 'spy' is new"
    ),
  ]

  @Test(
    "a schema that no stage writes never replaces the store's, whatever it would do",
    arguments: schemas)
  func schema(sql: String, found: String) throws {
    try refused(sql, .unexpectedStructure, found)
  }

  @Test("a default value of 70 MB in the schema is refused")
  func hugeDefault() throws {
    try refused(
      Self.rewritten(
        "note", "replace(sql, 'DEFAULT 7', 'DEFAULT ''' || hex(zeroblob(35000000)) || '''')"),
      .verificationFailed, "too big")
  }

  @Test(
    "an intact store and an intact clone are migrated, with a backup that is sound",
    arguments: PlainFixture.Kind.allCases, ["delete", "wal"])
  fileprivate func intact(kind: PlainFixture.Kind, journalMode: String) throws {
    let fixture = try PlainFixture(kind)
    try fixture.write("PRAGMA journal_mode = \(journalMode)")
    let before = try fixture.rows()
    let (report, files) = try fixture.migrateListingFiles()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    // Without a worker the run of a small store has no clone. The backup has its name before the store is written.
    #expect(files == ["Plain.store.r1.backup"] + (kind == .small ? [] : ["run-r1"]))
    #expect(try fixture.rows() == before)
    #expect(try fixture.integrity() == "ok")
    let backup = try #require(report.backup)
    let queue = try GuardedConnection.open(backup, access: .immutable)
    _ = try queue.inDatabase { try StoreCheck.requireSound($0, "the backup") }
    try queue.close()
  }

  @Test(
    "a small store that is removed or replaced during its run is not written, and the error says so",
    arguments: [RunEvent.Step.backedUp, .stageFinished, .verified], ["delete", "wal"])
  func lostPath(step: RunEvent.Step, journalMode: String) throws {
    for isReplaced in [false, true] {
      let fixture = try PlainFixture(.small)
      try fixture.write("PRAGMA journal_mode = \(journalMode)")
      let (report, _) = try fixture.migrateListingFiles(onStep: {
        guard $0 == step else { return }
        #expect(unlink(fixture.store) == 0)
        guard isReplaced else { return }
        #expect(FileManager.default.createFile(atPath: fixture.store, contents: Data("other".utf8)))
      })
      #expect(report.result == .failed)
      #expect(report.error?.code == (isReplaced ? .storeChanged : .missingStore))
      #expect(
        FileManager.default.contents(atPath: fixture.store)
          == (isReplaced ? Data("other".utf8) : nil))
      #expect(report.backup == nil && !fixture.hasInstarFolder)
    }
  }

  @Test("a store that grows before it is locked gets a clone on disk")
  func growth() throws {
    let fixture = try PlainFixture(.small)
    let (report, files) = try fixture.migrateListingFiles(
      growingBy: "INSERT INTO note (title, size) VALUES (hex(zeroblob(1000000)), 1)")
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(files == ["Plain.store.r1.backup", "run-r1"])
    #expect(try fixture.integrity() == "ok")
  }

  @Test(
    "a store that another process migrates before it is locked is left as that process made it",
    arguments: [
      ("ALTER TABLE note ADD COLUMN tone TEXT; PRAGMA user_version = 2", true),
      ("ALTER TABLE note ADD COLUMN other TEXT", false),
    ])
  func migratedMeanwhile(sql: String, isCurrent: Bool) throws {
    let fixture = try PlainFixture(.small)
    let (report, files) = try fixture.migrateListingFiles(growingBy: sql)
    #expect(report.result == (isCurrent ? .current : .failed))
    #expect(
      report.error?.code == (isCurrent ? nil : .storeChanged),
      "\(String(describing: report.error))")
    #expect(files == [])
    #expect(!fixture.hasInstarFolder)
  }

  private func refused(
    _ sql: String, _ code: InstarError.Code, _ found: String, _ kind: PlainFixture.Kind = .custom
  ) throws {
    let fixture = try PlainFixture(kind)
    let before = try fixture.bytes()
    let report = try fixture.migrate(tampering: sql)
    #expect(report.result == .failed)
    #expect(report.error?.code == code, "\(String(describing: report.error))")
    #expect(report.error?.cause.contains(found) == true, "\(String(describing: report.error))")
    #expect(report.error?.provesDamage == nil)
    #expect(report.error?.state == "unchanged")
    #expect(try fixture.bytes() == before)
    #expect(!fixture.hasInstarFolder)
  }

  /// Replaces the text of an object, and leaves the pages as they are.
  private static func rewritten(_ name: String, _ expression: String) -> String {
    """
    PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = \(expression) WHERE name = '\(name)';
    PRAGMA writable_schema = RESET;
    """
  }

  /// Changes rows while SQLite does not know an index.
  private static func unknown(_ index: String, during change: String) -> String {
    """
    CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = '\(index)';
    PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = '\(index)';
    PRAGMA writable_schema = RESET; \(change);
    PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM kept;
    PRAGMA writable_schema = RESET;
    """
  }
}

/// A store of ordinary tables, most of which no model describes.
private struct PlainFixture {
  private let folder: KeeperFixture
  let store: String

  enum Kind: CaseIterable {
    /// The stage has code, which a worker runs.
    case custom
    /// The stage has code, and the store has so many pages that two threads verify its clone.
    case largeCustom
    /// The stage runs no code, and the store is small: the run is in a transaction.
    case small
    /// The stage runs no code, and the store has so many pages that its clone is compared with it.
    case large
  }

  private let kind: Kind

  init(_ kind: Kind = .custom) throws {
    self.kind = kind
    folder = try KeeperFixture()
    store = folder.folder + "/Plain.store"
    try write(
      """
      PRAGMA page_size = 512;
      CREATE TABLE folder (id INTEGER PRIMARY KEY);
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, code TEXT,
        folder INTEGER REFERENCES folder (id), size INTEGER NOT NULL CHECK (size >= 0),
        stars INTEGER DEFAULT 7, shout TEXT AS (upper(title)) STORED);
      CREATE INDEX by_title ON note (title);
      CREATE UNIQUE INDEX by_code ON note (code);
      PRAGMA user_version = 1;
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20)
      INSERT INTO note (id, title, code, size) SELECT x, 'note ' || x, 'c' || x, x FROM n;
      """)
    guard kind == .large || kind == .largeCustom else { return }
    // More than a short run may have.
    let bytes = max(PageComparison.smallestPageCount * 512, 1 << 20) + 512
    try write("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(\(bytes)))")
  }

  func write(_ sql: String) throws { try Self.write(sql, to: store) }

  fileprivate static func write(_ sql: String, to path: String) throws {
    var configuration = Configuration()
    // As SQLite does by itself.
    configuration.acceptsDoubleQuotedStringLiterals = true
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func bytes() throws -> Data { try #require(FileManager.default.contents(atPath: store)) }

  /// Makes the store that file, without what a run left beside it.
  func replace(with bytes: Data) throws {
    try? FileManager.default.removeItem(atPath: folder.folder + "/.instar")
    try bytes.write(to: URL(fileURLWithPath: store))
  }

  /// Bits without which the store is damaged, and why (SQLite file format, sections 1.3 and 1.6).
  func fatalFlips() throws -> [(byte: Int, bit: UInt8, why: Comment)] {
    let bytes = try bytes()
    func page(_ name: String) throws -> Int {
      let root = try GuardedConnection.use(store, access: .readOnly) {
        try Int.fetchOne(
          $0, sql: "SELECT rootpage FROM sqlite_schema WHERE name = ?", arguments: [name])
      }
      return (try #require(root) - 1) * 512
    }
    let (table, index) = (try page("note"), try page("by_title"))
    // The index is one leaf. The place of its first entry follows 8 bytes of header. In the entry, the title follows 4
    // bytes of sizes and types.
    let title = index + Int(bytes[index + 8]) << 8 + Int(bytes[index + 9]) + 4
    #expect(bytes[title..<title + 6] == Data("note 1".utf8))
    return [
      (0, 0, "the file does not begin with 'SQLite format 3'"),
      (16, 0, "the page size is 768, not a power of two"),
      (21, 0, "the largest share of a page for one key is not 64"),
      (100, 1, "the root of the schema is not a page of a table or of an index"),
      (table, 1, "the root of the table is not a page of a table or of an index"),
      (index, 1, "the root of the index is not a page of a table or of an index"),
      (title, 0, "the first title in the index is that of no row"),
    ]
  }

  func integrity() throws -> String? {
    try GuardedConnection.use(store, access: .readOnly) {
      try String.fetchOne($0, sql: "PRAGMA integrity_check")
    }
  }

  var hasInstarFolder: Bool {
    FileManager.default.fileExists(atPath: folder.folder + "/.instar")
  }

  /// The values of the first version, as text.
  func rows() throws -> [String] {
    try GuardedConnection.use(store, access: .readOnly) {
      try String.fetchAll(
        $0,
        sql:
          "SELECT id || '|' || title || '|' || code || '|' || size || '|' || stars || '|' || shout FROM note ORDER BY id"
      )
    }
  }

  /// - Parameter sql: What the worker does besides its stage.
  func migrate(
    tampering sql: String = "", rehearses: Bool = false,
    verification: VerificationPolicy = .standard, invariants: [Invariant] = []
  ) throws -> RunReport {
    try migrateListingFiles(
      tampering: sql, rehearses: rehearses, verification: verification, invariants: invariants
    ).report
  }

  /// - Parameter growth: What an app does after the store was inspected, before it is locked.
  /// - Returns: The report, and what is in `.instar/` right before the cutover.
  func migrateListingFiles(
    tampering sql: String = "", rehearses: Bool = false,
    verification: VerificationPolicy = .standard, growingBy growth: String = "",
    invariants: [Invariant] = [],
    onStep: @escaping (RunEvent.Step) -> Void = { _ in }
  ) throws -> (report: RunReport, files: [String]) {
    var files: [String] = []
    var request = MigrationRequest(run: "r1", store: store, plans: [folder.plugin])
    request.verification = verification
    request.rehearses = rehearses
    request.reportsSteps = true
    let conversation = ScriptedConversation(
      [.migrate(request)],
      onAsk: { record in
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.folder + "/.instar")
        if record.phase == .cutover { files = names?.sorted() ?? [] }
        guard record.phase == .cloning, !growth.isEmpty else { return true }
        return (try? write(growth)) != nil
      }, onStep: onStep)
    let hasCode = kind == .custom || kind == .largeCustom
    let host = PlainHost(
      sql: sql, kind: hasCode ? .custom : .lightweight, invariants: invariants)
    try Keeper(
      conversation: conversation, host: hasCode ? host : LightweightHost(besides: host)
    ).serve()
    return (try #require(conversation.reports.first), files)
  }
}

/// Adds a column, and does more.
private struct PlainHost: PluginHost {
  let sql: String
  let kind: StageManifest.Kind
  let invariants: [Invariant]

  private static func schema(_ version: Int, _ names: [String]) -> Schema {
    var note = Schema.Entity(
      name: "Note",
      attributes: (["id"] + names).map {
        Schema.Attribute(name: $0, type: $0 == "id" ? .int64 : .string, isOptional: $0 != "id")
      })
    note.table = Schema.Table("note")
    return Schema(entities: [note], version: Schema.Version(version, 0, 0))
  }

  private static let schemas = [schema(1, ["title"]), schema(2, ["title", "tone"])]
  private var stage: StageManifest {
    StageManifest(from: Schema.Version(1, 0, 0), to: Schema.Version(2, 0, 0), kind: kind)
  }

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    var versions: [VersionManifest] = []
    for schema in Self.schemas {
      let structure = try schema.layout().structure
      versions.append(
        VersionManifest(schema: schema, structure: structure, fingerprint: structure.fingerprint))
    }
    var plan = PlanManifest(name: "P", versions: versions, stages: [stage])
    plan.invariants = invariants
    return PluginManifest(plans: [plan])
  }

  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    PlannedMigration(plan: plan, from: version, to: Schema.Version(2, 0, 0), stages: [])
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    try onEvent(.stageStarted(stage))
    do {
      try PlainFixture.write("ALTER TABLE note ADD COLUMN tone TEXT; \(sql)", to: work.clone)
    } catch {
      throw InstarError(error, what: "cannot work")
    }
    try onEvent(.stageFinished(stage))
  }
}
