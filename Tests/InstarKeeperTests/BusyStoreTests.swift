import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarKeeper

@Suite("A store that is busy, and what the run is to do then")
struct BusyStoreTests {
  /// An app in another process that has the store open. It commits a note when it is told to, and does not wait for a
  /// lock.
  private static func app(_ store: String) throws -> OtherProcess {
    try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
      c.execute("SELECT count(*) FROM ZNOTE").fetchall()
      print("open", flush=True)
      for line in sys.stdin:
          try:
              c.execute(line).fetchall()
              print("committed", flush=True)
          except sqlite3.OperationalError as error:
              print(error, flush=True)
      """, path: store)
  }

  private static let note =
    "INSERT INTO ZNOTE (Z_ENT, Z_OPT, ZFOLDER, ZTITLE) VALUES (2, 1, 1, 'app')"

  /// What an app was told at each moment of a run.
  private final class Answers: Sendable {
    private let all = Mutex<[String]>([])

    var list: [String] { all.withLock { $0 } }
    func note(_ moment: String, _ answer: String) {
      all.withLock { $0.append("\(moment): \(answer)") }
    }
  }

  private func migrating(_ fixture: KeeperFixture, timeout: Double = 5) -> MigrationRequest {
    var request = fixture.request(busyTimeout: timeout)
    request.whenBusy = .migrate
    return request
  }

  @Test(
    "an app can commit until the cutover begins, and each of its commits is in the migrated store",
    arguments: ["delete", "wal"])
  func everyMoment(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let app = try Self.app(fixture.store)
    let process = SendableProcess(app)
    let answers = Answers()
    let copies = Atomic(0)
    func commit(_ moment: String) { answers.note(moment, process.tell(Self.note)) }
    let host = SQLHost(tamper: { _ in
      if copies.load(ordering: .relaxed) == 1 {
        answers.note("stage", process.tell(Self.note))
      }
    })
    let (report, conversation) = try fixture.migrate(
      host, request: migrating(fixture),
      onAsk: { record in
        if record.phase == .cutover {
          commit("cutover")
        } else if copies.add(1, ordering: .relaxed).newValue == 1 {
          commit("before the copy")
        }
        return true
      },
      onStep: { step in
        if step == .verified, copies.load(ordering: .relaxed) == 2 { commit("verified") }
        if step == .locked { commit("locked") }
      })
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      answers.list == [
        "before the copy: committed", "stage: committed", "verified: committed",
        "locked: database is locked", "cutover: database is locked",
      ])
    #expect(conversation.asked.map(\.phase) == [.cloning, .cloning, .cloning, .cutover])
    #expect(report.notes.contains { $0.contains("3 copies of the store") })
    #expect(process.tell(Self.note) == "committed")
    app.finish()
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 14)
    #expect(try fixture.version() == Schema.Version(2, 0, 0))
    #expect(try fixture.query(String.self, "PRAGMA integrity_check") == "ok")
  }

  @Test(
    "an app that commits during each copy's stages is locked out after three copies",
    arguments: ["delete", "wal"])
  func everyAttempt(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let app = try Self.app(fixture.store)
    let process = SendableProcess(app)
    let answers = Answers()
    let host = SQLHost(tamper: { _ in answers.note("stage", process.tell(Self.note)) })
    let (report, _) = try fixture.migrate(host, request: migrating(fixture))
    app.finish()
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(
      answers.list == Array(repeating: "stage: committed", count: 3)
        + ["stage: database is locked"])
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 13)
    #expect(try fixture.query(Int.self, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 2") == 13)
  }

  @Test("an app that turns the log on during the stages keeps it, and the store is migrated")
  func changedJournalMode() throws {
    let fixture = try KeeperFixture(journalMode: "delete")
    let app = try Self.app(fixture.store)
    let process = SendableProcess(app)
    let host = SQLHost(tamper: { _ in process.tell("PRAGMA journal_mode = WAL") })
    let (report, _) = try fixture.migrate(host, request: migrating(fixture))
    #expect(report.result == .migrated, "\(String(describing: report.error))")
    #expect(process.tell(Self.note) == "committed")
    app.finish()
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 11)
    #expect(try StoreFile.probe(fixture.store).usesWriteAheadLog)
  }

  @Test(
    "an app that does not end its transaction makes the run busy, and loses nothing",
    arguments: ["delete", "wal"])
  func neverReleased(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let app = try Self.app(fixture.store)
    app.tell("BEGIN IMMEDIATE")
    #expect(app.tell(Self.note) == "committed")
    let (report, _) = try fixture.migrate(request: migrating(fixture, timeout: 0.05))
    #expect(report.result == .busy)
    #expect(report.error?.code == .busyStore && report.error?.state == "unchanged")
    #expect(report.holders?.map(\.pid) == [app.pid])
    #expect(report.backup == nil && fixture.state().instar == nil)
    #expect(app.tell("COMMIT") == "committed")
    app.finish()
    #expect(try fixture.query(Int.self, "SELECT count(*) FROM ZNOTE") == 11)
  }

  @Test("without the policy an app cannot commit during the stages", arguments: ["delete", "wal"])
  func waits(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    let app = try Self.app(fixture.store)
    let process = SendableProcess(app)
    let answers = Answers()
    let host = SQLHost(tamper: { _ in answers.note("stage", process.tell(Self.note)) })
    let (report, conversation) = try fixture.migrate(host)
    #expect(report.result == .migrated)
    #expect(answers.list == ["stage: database is locked"])
    #expect(conversation.asked.count == 2)
    app.finish()
  }

  @Test(
    "a store that an app has open is skipped, although the app has no lock; when it has closed the store, it is migrated",
    arguments: ["delete", "wal"])
  func skips(journalMode: String) throws {
    let fixture = try KeeperFixture(journalMode: journalMode)
    var request = fixture.request()
    request.whenBusy = .skip
    let app = try Self.app(fixture.store)
    let before = fixture.state().bytes
    let (report, conversation) = try fixture.migrate(request: request)
    #expect(report.result == .busy)
    #expect(report.error?.code == .busyStore && report.error?.state == "unchanged")
    #expect(report.error?.cause.contains("the store is open in \(app.pid) (python3") == true)
    #expect(report.holders?.map(\.pid) == [app.pid])
    #expect(conversation.asked.isEmpty)
    #expect(fixture.state().bytes == before && fixture.state().instar == nil)
    app.finish()
    #expect(try fixture.migrate(request: request).report.result == .migrated)
    // A store at its last version is not reported as busy.
    let other = try Self.app(fixture.store)
    #expect(try fixture.migrate(request: request).report.result == .current)
    other.finish()
  }

  @Test("the lock for a cutover is refused where another process wrote since the copy")
  func staleSnapshot() throws {
    for journalMode in ["delete", "wal"] {
      let fixture = try KeeperFixture(journalMode: journalMode)
      let lock = try StoreLock(
        try StoreFile.probe(fixture.store), busyTimeout: 0, scope: .cutover)
      defer { lock.release() }
      let app = try Self.app(fixture.store)
      let copy = fixture.folder + "/copy"
      #expect(FileManager.default.createFile(atPath: copy, contents: nil))
      _ = try lock.inSnapshot { try lock.copy(to: copy) }
      #expect(app.tell(Self.note) == "committed")
      #expect(try !lock.take())
      #expect(app.tell(Self.note) == "committed")
      try lock.inSnapshot {
        // A reader of a rollback journal keeps writers from committing, one of a log does not.
        #expect(app.tell(Self.note) == (journalMode == "wal" ? "committed" : "database is locked"))
      }
      #expect(try lock.take() == (journalMode == "delete"))
      if journalMode == "delete" { #expect(app.tell(Self.note) == "database is locked") }
      app.finish()
    }
  }

  @Test("a busy store whose holder nobody sees has the command that shows it")
  func unseenHolder() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a b.store")
    try folder.write("", to: "a b.store")
    let busy = DatabaseError(resultCode: .SQLITE_BUSY, message: "database is locked")
    var error = InstarError(busy, what: "cannot lock the store")
    let cause = error.cause
    #expect(error.nameHolders(of: path).isEmpty)
    #expect(
      error.next
        == "to see which process it is, run as root: instarctl probe '\(path)'; "
        + "stop that process or wait until it closes the store")
    #expect(error.cause == cause)
    var interrupted = InstarError(
      .busyStore, "cannot copy the store", cause: "a transaction was interrupted", next: "open it")
    interrupted.nameHolders(of: path)
    #expect(interrupted.next == "open it")
  }

  @Test("a plan, a verification and an import name the process that has the store locked")
  func namedHolder() throws {
    let fixture = try KeeperFixture(journalMode: "delete")
    let app = try OtherProcess.holding(fixture.store, "EXCLUSIVE")
    defer { app.finish() }
    let conversation = ScriptedConversation([
      .plan(stores: [fixture.store], plans: [fixture.plugin], adopt: nil),
      .verify(stores: [fixture.store], plans: [fixture.plugin], busyTimeoutSeconds: 0),
      .readSchema(stores: [fixture.store]),
    ])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    let errors = conversation.events.compactMap { event -> InstarError? in
      switch event {
      case .planned(let report): report.error
      case .verified(let report): report.errors.first
      case .failed(let error): error
      default: nil
      }
    }
    #expect(errors.count == 3)
    for error in errors {
      #expect(error.code == .busyStore, "\(error)")
      #expect(error.cause.contains("the store is open in \(app.pid) (python3"), "\(error)")
      #expect(error.next?.hasPrefix("stop process \(app.pid) (python3") == true, "\(error)")
    }
  }

  @Test(
    "the unit of a process is the innermost one of its control group",
    arguments: [
      ("0::/system.slice/notes.service\n", "notes.service"),
      ("0::/system.slice/notes.service/payload\n", "notes.service"),
      ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-7.scope\n", "app-7.scope"),
      (
        "12:pids:/system.slice/no.service\n1:name=systemd:/system.slice/old.service\n0::/\n",
        "old.service"
      ),
      ("0::/\n", nil), ("0::/user.slice\n", nil), ("", nil), ("nonsense", nil),
    ])
  func units(text: String, unit: String?) {
    #expect(StoreHolders.unit(inControlGroups: text) == unit)
  }
}

/// The other process, told from the thread that runs the test's migration: one call at a time.
private struct SendableProcess: @unchecked Sendable {
  private let process: OtherProcess

  init(_ process: OtherProcess) { self.process = process }

  @discardableResult
  func tell(_ line: String) -> String { process.tell(line) }
}
