import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("instarctl verify")
struct VerifyTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("sound stores of both formats are reported as sound, on one line each")
  func sound() async throws {
    let stores = [try notes(), try plain()]
    let before = try folder.contents()
    let answer = try await CommandLineTool.run(["verify"] + stores)
    #expect(answer.status == 0 && answer.messages.isEmpty, "\(answer.messages)")
    let lines = answer.output.split(separator: "\n")
    try #require(lines.count == 2)
    #expect(lines[0].contains("/Notes.store: sound (28 rows, 6 indexes, "))
    #expect(lines[1].contains("/Plain.store: sound (41 rows, 2 indexes, "))
    #expect(try folder.contents() == before)
  }

  @Test("a store that a plan knows is also compared with its version")
  func fits() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let (store, other) = (try notes(), try plain())
    let answer = try await CommandLineTool.run("verify", "--plugin", plugin, store, other)
    #expect(answer.status == 0, "\(answer.messages)")
    let fit = "/Notes.store: sound, fits 1.0.0 of NotesMigrationPlan (28 rows"
    #expect(answer.output.contains(fit), "\(answer.output)")
    #expect(answer.output.contains("/Plain.store: sound (41 rows"))
  }

  @Test(
    "a store that does not fit the version that it declares is damaged",
    arguments: [
      (
        "UPDATE ZNOTE SET ZFOLDER = 99 WHERE Z_PK = 1",
        "links of Folder.notes reference missing rows"
      ),
      (
        "UPDATE ZNOTE SET ZTITLE = NULL WHERE Z_PK = 2",
        "no value for the required property 'title'"
      ),
      ("ALTER TABLE ZNOTE ADD COLUMN ZODD VARCHAR", "its structure does not match that version"),
    ])
  func misfit(sql: String, found: String) async throws {
    let store = try notes()
    try write(sql, to: store)
    let report = try await damaged(store, plugin: try await BuiltPlugins.notes.value)
    #expect(report.errors.count == 1)
    #expect(report.errors.first?.cause.contains(found) == true, "\(report.errors)")
    // Without a plan, nobody knows what the store's models are.
    #expect(try await CommandLineTool.run("verify", store).status == 0)
  }

  @Test(
    "each kind of damage is found, and the store stays as it is",
    arguments: [
      (
        """
        CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'by_title';
        PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'by_title';
        PRAGMA writable_schema = RESET; INSERT INTO note (id, title, size) VALUES (99, 'unseen', 1);
        PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM kept;
        PRAGMA writable_schema = RESET
        """, "index 'by_title' of table 'note' has 20 entries for 21 rows"
      ),
      (
        "PRAGMA ignore_check_constraints = ON; UPDATE note SET size = -1 WHERE id < 4",
        "3 rows of table 'note' violate CHECK (size >= 0)"
      ),
      (
        "PRAGMA foreign_keys = OFF; UPDATE note SET folder = 77 WHERE id = 3",
        "1 row violates a foreign key: row note 3"
      ),
    ])
  func damage(sql: String, found: String) async throws {
    let store = try plain()
    try write(sql, to: store)
    let report = try await damaged(store)
    #expect(report.errors.count == 1)
    #expect(report.errors.first?.cause.contains(found) == true, "\(report.errors)")
  }

  @Test("several kinds of damage are several errors")
  func severalDamages() async throws {
    let store = try plain()
    try write(
      """
      PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;
      UPDATE note SET size = -1, folder = 77
      """, to: store)
    let report = try await damaged(store)
    #expect(report.errors.map(\.code) == [.corruptStore, .brokenReferences])
    let answer = try await CommandLineTool.run("verify", store)
    #expect(answer.messages.components(separatedBy: "error: cannot verify '\(store)'").count == 3)
  }

  @Test("a foreign key that cannot be checked does not hide the violations of others")
  func mismatchedKey() async throws {
    let store = try plain()
    try write(
      """
      PRAGMA foreign_keys = OFF; UPDATE note SET folder = 77 WHERE id = 3;
      CREATE TABLE other (code TEXT REFERENCES note (title)); INSERT INTO other VALUES ('x')
      """, to: store)
    let causes = try await damaged(store).errors.map(\.cause)
    try #require(causes.count == 2, "\(causes)")
    #expect(
      causes[0].hasPrefix(
        "the foreign keys of table 'other' cannot be checked: foreign key mismatch"))
    #expect(causes[1] == "1 row violates a foreign key: row note 3")
  }

  @Test("a damaged page and a truncated file are damage")
  func pages() async throws {
    let store = try plain()
    let sound = try Data(contentsOf: URL(fileURLWithPath: store))
    var bytes = sound
    bytes.replaceSubrange(512 * 3..<512 * 4, with: Data(repeating: 0xA5, count: 512))
    try bytes.write(to: URL(fileURLWithPath: store))
    #expect(try await damaged(store).errors.first?.code == .corruptStore)
    try sound.prefix(sound.count / 2).write(to: URL(fileURLWithPath: store))
    let truncated = try await damaged(store)
    #expect(truncated.errors.first?.cause.contains("the file is truncated") == true)
  }

  @Test("a store that another process has locked is busy, and one that is missing is not found")
  func busyAndMissing() async throws {
    let store = try plain()
    let other = try OtherProcess.holding(store, "EXCLUSIVE")
    defer { other.kill() }
    let busy = try await CommandLineTool.run("verify", "--busy-timeout", "100ms", store, "--json")
    #expect(busy.status == 4)
    let report = try #require(try busy.objects(VerificationReport.self).first)
    #expect(report.state == .unverified && report.errors.first?.code == .busyStore)
    let missing = try await CommandLineTool.run("verify", folder.path("none.store"))
    #expect(missing.status == 5 && missing.messages.contains("[I106]"), "\(missing.messages)")
    let text = folder.path("text.store")
    try Data("no database".utf8).write(to: URL(fileURLWithPath: text))
    #expect(try await CommandLineTool.run("verify", text).status == 3)
  }

  @Test(
    "a log or a journal that a killed process left stays as it is",
    arguments: ["PRAGMA journal_mode = WAL", "PRAGMA cache_size = 1"])
  func sideFiles(setting: String) async throws {
    let store = try plain()
    let writer = try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("\(setting)")
      c.execute("INSERT INTO note (title, size) VALUES ('committed', 1)")
      c.execute("BEGIN IMMEDIATE")
      for n in range(2000):
        c.execute("INSERT INTO note (title, size) VALUES (?, 1)", ("x" * 500,))
      print("ready", flush=True)
      sys.stdin.read()
      """, path: store)
    writer.kill()
    let before = try folder.contents()
    #expect(before.count > 1)
    let answer = try await CommandLineTool.run("verify", store)
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(answer.output.contains("sound (42 rows, 2 indexes"), "\(answer.output)")
    #expect(try folder.contents() == before)
  }

  @Test("many stores are verified in one call, in their order")
  func many() async throws {
    let first = try plain()
    let stores = try (0..<150).map { number in
      let path = folder.path("\(number).store")
      try FileManager.default.copyItem(atPath: first, toPath: path)
      return path
    }
    try write("PRAGMA foreign_keys = OFF; UPDATE note SET folder = 77", to: stores[70])
    let answer = try await CommandLineTool.run(["verify", "--json"] + stores)
    #expect(answer.status == 3)
    let reports = try answer.objects(VerificationReport.self)
    #expect(reports.map(\.store) == stores)
    #expect(reports.filter { $0.state != .sound }.map(\.store) == [stores[70]])
  }

  /// Verifies a store that is damaged, which must not change.
  private func damaged(_ store: String, plugin: String? = nil) async throws -> VerificationReport {
    let before = try folder.contents()
    let options = plugin.map { ["--plugin", $0] } ?? []
    let answer = try await CommandLineTool.run(["verify", "--json", store] + options)
    #expect(answer.status == 3, "\(answer.output)")
    #expect(try folder.contents() == before)
    let report = try #require(try answer.objects(VerificationReport.self).first)
    #expect(report.state == .damaged)
    #expect(report.errors.allSatisfy { $0.state == "unchanged" && $0.next != nil })
    return report
  }

  /// A copy of a sample store in the layout of Core Data.
  private func notes() throws -> String {
    let store = folder.path("Notes.store")
    try FileManager.default.copyItem(
      atPath: CommandLineTool.repository
        .appendingPathComponent("Plugins/notes/stores/notes-1.store").path, toPath: store)
    return store
  }

  /// A store of ordinary tables.
  private func plain() throws -> String {
    let store = folder.path("Plain.store")
    try write(
      """
      PRAGMA page_size = 512;
      CREATE TABLE folder (id INTEGER PRIMARY KEY);
      CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, code TEXT,
        folder INTEGER REFERENCES folder (id), size INTEGER NOT NULL CHECK (size >= 0));
      CREATE INDEX by_title ON note (title);
      CREATE UNIQUE INDEX by_code ON note (code);
      WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 21)
      INSERT INTO folder SELECT x FROM n;
      INSERT INTO note (id, title, code, size, folder)
      SELECT id, 'note ' || id, 'c' || id, id, id FROM folder WHERE id < 21;
      """, to: store)
    return store
  }

  private func write(_ sql: String, to store: String) throws {
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }
}
