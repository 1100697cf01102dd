import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@Suite("Adopting a store whose structure nearly matches a version")
struct AdoptionTests {
  private static let first = Schema.Version(1, 0, 0)

  /// A store that declares no version, changed by `sql`.
  private func store(_ sql: String) throws -> KeeperFixture {
    let fixture = try KeeperFixture(version: Schema.Version(0, 5, 0))
    try fixture.execute(sql)
    return fixture
  }

  private func request(
    _ fixture: KeeperFixture, adopt: Schema.Version?, confirmed: Bool
  ) -> MigrationRequest {
    var request = fixture.request(adopt: adopt)
    request.adoptsDifferences = confirmed
    return request
  }

  private static let additions = """
    ALTER TABLE ZNOTE ADD COLUMN ZRANK INTEGER;
    UPDATE ZNOTE SET ZRANK = Z_PK * 10;
    CREATE INDEX byRank ON ZNOTE (ZRANK);
    CREATE TABLE extra (id INTEGER PRIMARY KEY, text TEXT);
    INSERT INTO extra VALUES (1, 'kept');
    """

  @Test("what the version does not describe is kept, and the store is current afterwards")
  func additions() throws {
    let fixture = try store(Self.additions)
    let (report, _) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: true))
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(
      try fixture.query(Int.self, "SELECT sum(ZRANK) FROM ZNOTE")
        == fixture.query(Int.self, "SELECT sum(Z_PK) * 10 FROM ZNOTE"))
    #expect(try fixture.query(String.self, "SELECT text FROM extra") == "kept")
    #expect(
      try fixture.query(Int.self, "SELECT count(*) FROM sqlite_schema WHERE name = 'byRank'") == 1)
    let (again, _) = try fixture.migrate(request: fixture.request(run: "again"))
    #expect(again.result == .current, "\(String(describing: again.error))")
  }

  @Test("without confirmation the store is refused with the differences, and unchanged")
  func unconfirmed() throws {
    let fixture = try store(Self.additions)
    let before = fixture.state()
    let (report, _) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: false))
    let error = try #require(report.error)
    #expect(report.result == .refused)
    #expect(error.code == .unconfirmedAdoption)
    for text in [
      "column ZNOTE.ZRANK is not expected; Instar keeps it", "index ZNOTE(ZRANK)", "table extra",
    ] {
      #expect(error.cause.contains(text), "\(error)")
    }
    #expect(error.next?.contains("--adopt 1.0.0 --yes") == true)
    #expect(fixture.state().bytes == before.bytes)
  }

  @Test("the error names both next steps where no version to adopt was given")
  func waysOn() throws {
    let fixture = try store(Self.additions)
    let (report, _) = try fixture.migrate(request: request(fixture, adopt: nil, confirmed: false))
    let error = try #require(report.error)
    #expect(error.code == .unknownVersion)
    #expect(error.cause.contains("column ZNOTE.ZRANK is not expected"))
    #expect(error.next?.contains("--adopt 1.0.0") == true)
    #expect(error.next?.contains("MigrationStage.custom(") == true)
  }

  @Test(
    "a store that lacks something of the version is refused, also when it is confirmed",
    arguments: [
      ("ALTER TABLE ZNOTE DROP COLUMN ZTITLE", "column ZNOTE.ZTITLE is missing"),
      ("ALTER TABLE ZNOTE RENAME COLUMN ZTITLE TO ZOTHER", "column ZNOTE.ZTITLE is missing"),
      (
        """
        ALTER TABLE ZNOTE DROP COLUMN ZTITLE; ALTER TABLE ZNOTE ADD COLUMN ZTITLE BLOB
        """, "column ZNOTE.ZTITLE is declared BLOB, not VARCHAR"
      ),
    ])
  func missing(sql: String, cause: String) throws {
    let fixture = try store(sql)
    let before = fixture.state()
    let (report, conversation) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: true))
    #expect(report.error?.code == .unknownVersion)
    #expect(report.error?.cause.contains(cause) == true, "\(String(describing: report.error))")
    #expect(report.error?.next?.contains("--adopt") == false)
    #expect(fixture.state().bytes == before.bytes)
    #expect(conversation.asked.isEmpty)
  }

  @Test(
    "a report says where the version to adopt had no effect, because the store has another one",
    arguments: ["2.0.0", "9.9.9"])
  func unused(version: String) throws {
    let fixture = try KeeperFixture()
    let adopted = try #require(Schema.Version(version))
    let (report, _) = try fixture.migrate(
      request: request(fixture, adopt: adopted, confirmed: false))
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(report.notes.first == "the store is at 1.0.0, so --adopt \(version) had no effect")
    let (current, _) = try fixture.migrate(
      request: fixture.request(run: "again", adopt: Self.first))
    #expect(current.result == .current)
    #expect(current.notes == ["the store is at 2.0.0, so --adopt 1.0.0 had no effect"])
    let (named, _) = try fixture.migrate(
      request: fixture.request(run: "named", adopt: Schema.Version(2, 0, 0)))
    #expect(named.result == .current && named.notes == [])
  }

  @Test("a missing index is created")
  func missingIndex() throws {
    // The index of the relationship, which the format makes for each.
    let name = "ZNOTE_ZFOLDER_INDEX"
    let fixture = try store("DROP INDEX \(name)")
    let (refused, _) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: false))
    #expect(
      refused.error?.cause.contains("index ZNOTE(ZFOLDER) is missing; Instar creates it") == true)
    let (report, _) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: true))
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      try fixture.query(Int.self, "SELECT count(*) FROM sqlite_schema WHERE name = '\(name)'") == 1)
  }

  @Test("damage that is met while a missing index is created is reported as that of the store")
  func missingIndexOfDamaged() throws {
    let fixture = try store("DROP INDEX ZNOTE_ZFOLDER_INDEX")
    let page = try #require(
      try fixture.query(Int.self, "SELECT rootpage FROM sqlite_schema WHERE name = 'ZNOTE'"))
    let size = try #require(try fixture.query(Int.self, "PRAGMA page_size"))
    let file = try FileHandle(forUpdating: URL(filePath: fixture.store))
    try file.seek(toOffset: UInt64((page - 1) * size))
    try file.write(contentsOf: Data(count: 8))
    try file.close()
    let before = fixture.state()
    let (report, _) = try fixture.migrate(
      request: request(fixture, adopt: Self.first, confirmed: true))
    #expect(report.error?.code == .corruptStore, "\(String(describing: report.error))")
    #expect(report.error?.provesDamage == true)
    #expect(fixture.state().bytes == before.bytes)
  }

  @Test("a stage that removes an addition ends the run, with the store unchanged")
  func lostAddition() throws {
    let fixture = try store(Self.additions)
    let before = fixture.state()
    let (report, _) = try fixture.migrate(
      SQLHost(sql: KeeperFixture.addPinned + "; DROP TABLE extra"),
      request: request(fixture, adopt: Self.first, confirmed: true))
    #expect(report.result == .failed)
    #expect(report.error?.code == .unexpectedStructure)
    #expect(report.error?.cause.contains("table 'extra' is missing") == true)
    #expect(fixture.state().bytes == before.bytes)
  }

  @Test("a fit names additions, missing indexes and obstacles")
  func fit() {
    func structure(_ columns: [String], _ indexes: [(String, Bool)]) -> StoreStructure {
      StoreStructure(
        tables: [
          .init(name: "T", columns: columns.map { .init(name: $0, type: "INTEGER") })
        ],
        indexes: indexes.map {
          .init(name: $0.0, table: "T", isUnique: $0.1, columns: ["a"])
        })
    }
    let expected = structure(["a", "b"], [("one", false), ("two", true)])
    #expect(StructureFit(of: expected, to: expected).isExact)
    let more = StructureFit(
      of: structure(["a", "b", "c"], [("one", false), ("two", true), ("three", false)]),
      to: expected)
    #expect(more.obstacles.isEmpty && !more.isExact)
    #expect(
      expected.adding(more.additions)
        == structure(["a", "b", "c"], [("one", false), ("two", true), ("three", false)]))
    let less = StructureFit(of: structure(["a", "b"], []), to: expected)
    #expect(less.missingIndexes.map(\.name) == ["one"])
    #expect(less.obstacles == ["unique index two is missing, so values may repeat"])
  }
}
