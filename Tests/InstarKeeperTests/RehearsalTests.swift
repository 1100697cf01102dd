import Foundation
import GRDB
import InstarSchema
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("A rehearsal")
struct RehearsalTests {
  private func request(_ fixture: KeeperFixture) -> MigrationRequest {
    var request = fixture.request()
    request.rehearses = true
    return request
  }

  @Test(
    "a rehearsal runs the stages on a clone, and leaves the store as it is",
    arguments: ["delete", "wal"])
  func leavesStore(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let before = fixture.state()
    let (report, conversation) = try fixture.migrate(request: request(fixture))
    #expect(report.error == nil)
    #expect(report.result == .rehearsed)
    #expect(report.to == Schema.Version(2, 0, 0))
    #expect(report.stages.count == 1)
    #expect(report.entities.first { $0.name == "Note" }?.rowsAfter == 10)
    #expect(report.backup == nil)
    let bytes = try #require(report.bytes)
    let rehearsal = try #require(report.rehearsal)
    #expect(try #require(rehearsal.cloneBytes) >= bytes)
    #expect(try #require(rehearsal.neededBytes) > 2 * bytes)
    #expect(conversation.asked.map(\.phase) == [.cloning])
    #expect(conversation.asked.first?.rehearses == true)
    #expect(
      conversation.steps == [.started, .backedUp, .stageStarted, .stageFinished, .verified])
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == before.instar)
    #expect(try fixture.version() == Schema.Version(1, 0, 0))
  }

  @Test("a rehearsal does not roll back a transaction that an app left interrupted")
  func hotJournal() throws {
    let fixture = try KeeperFixture(journalMode: "delete")
    let journal = fixture.store + "-journal"
    var copy = Data()
    let queue = try DatabaseQueue(path: fixture.store)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN;
          UPDATE ZNOTE SET ZTITLE = hex(zeroblob(3000))
          """)
      copy = try Data(contentsOf: URL(filePath: journal))
      try db.execute(sql: "ROLLBACK")
    }
    try queue.close()
    try copy.write(to: URL(filePath: journal))
    let before = fixture.state()
    let (report, _) = try fixture.migrate(request: request(fixture))
    #expect(report.result == .busy)
    #expect(report.error?.cause.contains("a transaction was interrupted") == true)
    #expect(fixture.state().bytes == before.bytes)
    #expect(try Data(contentsOf: URL(filePath: journal)) == copy)
  }

  @Test("a rehearsal lets an app write meanwhile", arguments: ["delete", "wal"])
  func appWrites(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let (report, _) = try fixture.migrate(
      request: request(fixture),
      onStep: { step in
        guard step == .stageStarted else { return }
        #expect(throws: Never.self) { try fixture.execute("UPDATE ZNOTE SET ZTITLE = 'new'") }
      })
    #expect(report.result == .rehearsed)
    #expect(
      try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE WHERE ZTITLE = 'new'") == 10)
  }

  @Test(
    "a rehearsal ends with the error that would end the migration, and its report is still a rehearsal's"
  )
  func fails() throws {
    let fixture = try KeeperFixture()
    let before = fixture.state()
    let failure = InstarError(.stageFailed, "cannot run the stage", cause: "didMigrate threw")
    let (report, _) = try fixture.migrate(SQLHost(failure: failure), request: request(fixture))
    #expect(report.result == .failed)
    #expect(report.error?.code == .stageFailed)
    #expect(report.rehearsal != nil)
    #expect(report.error?.what.hasPrefix("cannot rehearse the migration of") == true)
    #expect(fixture.state().bytes == before.bytes)
    #expect(fixture.state().instar == before.instar)
  }

  @Test("the advice of a rehearsal is another rehearsal")
  func advice() throws {
    let fixture = try KeeperFixture(version: Schema.Version(1, 5, 0))
    let (report, _) = try fixture.migrate(request: request(fixture))
    #expect(report.result == .refused)
    let next = try #require(report.error?.next)
    #expect(next.contains("instarctl rehearse --plugin"))
    #expect(!next.contains("instarctl migrate"))
  }

  @Test("a rehearsal of a store at the last version has nothing to do")
  func current() throws {
    let fixture = try KeeperFixture()
    #expect(try fixture.migrate().report.result == .migrated)
    var request = request(fixture)
    request.run = "20260101T000000Z-000002"
    #expect(try fixture.migrate(request: request).report.result == .current)
  }
}
