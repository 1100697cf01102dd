import Foundation
import GRDB
import InstarChange
import InstarKeeper
import InstarLinux
import InstarSchema
import InstarStore
import InstarWire
import Testing

/// A folder with one small Core Data store in it, and a plan whose stages are SQL.
final class KeeperFixture {
  let folder: String
  var store: String { folder + "/Notes.store" }
  let plugin: String

  static let first = notes(
    Schema.Version(1, 0, 0), [Schema.Attribute(name: "title", type: .string), photo])
  static let second = notes(
    Schema.Version(2, 0, 0),
    [
      Schema.Attribute(name: "pinned", type: .bool, isOptional: true),
      Schema.Attribute(name: "title", type: .string), photo,
    ])

  private static let photo = Schema.Attribute(
    name: "photo", type: .data, isOptional: true, options: [.externalStorage])

  /// What the lightweight stage from `first` to `second` comes to.
  static let addPinned = "ALTER TABLE ZNOTE ADD COLUMN ZPINNED INTEGER"

  private static func notes(_ version: Schema.Version, _ attributes: [Schema.Attribute]) -> Schema {
    Schema(
      entities: [
        Schema.Entity(
          name: "Note", attributes: attributes,
          relationships: [
            Schema.Relationship(
              name: "folder", destination: "Folder", inverseName: "notes", isToOneRelationship: true
            )
          ]),
        Schema.Entity(
          name: "Folder", attributes: [Schema.Attribute(name: "name", type: .string)],
          relationships: [
            Schema.Relationship(
              name: "notes", destination: "Note", inverseName: "folder", isToOneRelationship: false)
          ]),
      ], version: version)
  }

  init(journalMode: String = "delete", rows: Int = 10, version: Schema.Version? = nil) throws {
    folder = FileManager.default.temporaryDirectory.path + "/instar-keeper-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    plugin = folder + "/Notes.so"
    try Self.pluginFile.write(to: URL(fileURLWithPath: plugin))
    let layout = try CoreDataLayout(schema: Self.first)
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          PRAGMA synchronous = OFF; PRAGMA auto_vacuum = INCREMENTAL;
          PRAGMA journal_mode = \(journalMode)
          """)
      for statement in layout.createStatements { try db.execute(sql: statement) }
      var metadata = CoreDataMetadata(newStoreFor: Self.first)
      if let version {
        var schema = Self.first
        schema.version = version
        metadata.stamp(schema: schema, unchangedEntities: ["Note", "Folder"], fingerprint: nil)
      }
      try metadata.write(db)
      try db.execute(
        sql: """
          INSERT INTO ZFOLDER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'all');
          WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < \(rows))
          INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZFOLDER, ZTITLE) SELECT x, 2, 1, 1, 'note ' || x FROM n;
          UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_ENT = 1;
          UPDATE Z_PRIMARYKEY SET Z_MAX = \(rows) WHERE Z_ENT = 2;
          """)
    }
    try queue.close()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  static func manifest(kind: StageManifest.Kind = .lightweight) throws -> PluginManifest {
    let versions = try [first, second].map { schema in
      let structure = try CoreDataLayout(schema: schema).structure
      return VersionManifest(
        schema: schema, structure: structure, fingerprint: structure.fingerprint)
    }
    return PluginManifest(plans: [
      PlanManifest(
        name: "NotesPlan", versions: versions,
        stages: [StageManifest(from: first.version, to: second.version, kind: kind)])
    ])
  }

  func request(
    run: String = "20260101T000000Z-000001", adopt: Schema.Version? = nil, busyTimeout: Double = 5,
    cutover: CutoverPolicy = .automatic
  ) -> MigrationRequest {
    var request = MigrationRequest(
      run: run, store: store, plans: [plugin], adopt: adopt, busyTimeoutSeconds: busyTimeout)
    request.cutover = cutover
    return request
  }

  /// Runs the store's migration in this process, and answers every question with yes.
  func migrate(
    _ host: SQLHost = SQLHost(), request: MigrationRequest? = nil,
    onAsk: @escaping (PhaseRecord) -> Bool = { _ in true },
    onStep: @escaping (RunEvent.Step) -> Void = { _ in }
  ) throws -> (report: RunReport, conversation: ScriptedConversation) {
    let conversation = ScriptedConversation(
      [.migrate(request ?? self.request())], onAsk: onAsk, onStep: onStep)
    try Keeper(conversation: conversation, host: host).serve()
    guard let report = conversation.reports.first else { throw CocoaError(.featureUnsupported) }
    return (report, conversation)
  }

  /// The bytes of the store and the names in `.instar/`, or `nil` where there is no such folder.
  func state() -> (bytes: Data?, instar: [String]?) {
    (
      FileManager.default.contents(atPath: store),
      try? FileManager.default.contentsOfDirectory(atPath: folder + "/.instar").sorted()
    )
  }

  func query<T: DatabaseValueConvertible>(_ type: T.Type, _ sql: String, in path: String? = nil)
    throws -> T?
  {
    try StoreReader.withReadOnlyStore(path ?? store) { try T.fetchOne($0, sql: sql) }
  }

  /// Changes the store, as an app would.
  func execute(_ sql: String) throws {
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func version(of path: String? = nil) throws -> Schema.Version? {
    try StoreProbe.read(path ?? store).identity.version
  }

  /// The least of an ELF file that carries the note of a plugin: header, one program header, the
  /// note.
  private static var pluginFile: Data {
    var file = Data()
    func add(_ value: some FixedWidthInteger) {
      withUnsafeBytes(of: value.littleEndian) { file.append(contentsOf: $0) }
    }
    var description = withUnsafeBytes(of: PluginNote.supportedABI.littleEndian) { Data($0) }
    description.append(contentsOf: "6.3.1\nNotesPlan".utf8)
    while description.count % 4 != 0 { description.append(0) }
    let noteSize = 12 + 8 + description.count
    #if arch(arm64)
      let machine: UInt16 = 183
    #else
      let machine: UInt16 = 62
    #endif
    file.append(contentsOf: [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    add(UInt16(3))
    add(machine)
    add(UInt32(1))
    add(UInt64(0))
    add(UInt64(64))
    add(UInt64(0))
    add(UInt32(0))
    for value in [64, 56, 1, 64, 0, 0] { add(UInt16(value)) }
    add(UInt32(4))
    add(UInt32(4))
    for value in [120, 120, 120, noteSize, noteSize, 4] { add(UInt64(value)) }
    add(UInt32(7))
    add(UInt32(description.count))
    add(UInt32(1))
    file.append(contentsOf: "Instar\0\0".utf8)
    file.append(description)
    return file
  }
}

/// Works on clones with SQL in this process, in the place of a worker and a plugin.
struct SQLHost: PluginHost {
  var kind = StageManifest.Kind.lightweight
  var sql = KeeperFixture.addPinned
  /// Done after the SQL, to the clone's file.
  var tamper: @Sendable (CloneWork) throws -> Void = { _ in }
  var failure: InstarError?
  var invariants: [Invariant] = []

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    do {
      var manifest = try KeeperFixture.manifest(kind: kind)
      manifest.plans[0].invariants = invariants
      return manifest
    } catch {
      throw InstarError(error, what: "cannot describe")
    }
  }

  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    PlannedMigration(plan: plan, from: version, to: KeeperFixture.second.version, stages: [])
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    let stage = StageManifest(
      from: KeeperFixture.first.version, to: KeeperFixture.second.version, kind: kind)
    try onEvent(.stageStarted(stage))
    if let failure { throw failure }
    do {
      let queue = try DatabaseQueue(path: work.clone)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
      try tamper(work)
    } catch {
      throw InstarError(error, what: "cannot work")
    }
    try onEvent(.stageFinished(stage))
  }
}

/// Makes lightweight stages, and then something that no statement of theirs does.
struct TamperingHost: PluginHost {
  private let host = LightweightHost(besides: SQLHost())
  let sql: String

  init(sql: String) { self.sql = sql }

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    try host.describe(plugin: plugin)
  }

  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    try host.plan(plan, from: version, plugin: plugin, store: store)
  }

  func loadsPlugin(for stages: [SchemaStage], on schema: SchemaText) -> Bool { false }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    try host.migrate(work, onEvent: onEvent)
    do {
      let queue = try DatabaseQueue(path: work.clone)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
    } catch {
      throw InstarError(error, what: "cannot change the clone")
    }
  }
}

/// A supervisor that has its requests ready and keeps what it hears.
final class ScriptedConversation: KeeperConversation {
  private var requests: [KeeperRequest]
  private var answer: KeeperRequest?
  private let onAsk: (PhaseRecord) -> Bool
  private let onStep: (RunEvent.Step) -> Void
  private(set) var events: [KeeperEvent] = []

  init(
    _ requests: [KeeperRequest], onAsk: @escaping (PhaseRecord) -> Bool = { _ in true },
    onStep: @escaping (RunEvent.Step) -> Void = { _ in }
  ) {
    self.requests = requests
    self.onAsk = onAsk
    self.onStep = onStep
  }

  func next() throws(InstarError) -> KeeperRequest? {
    if let answer {
      self.answer = nil
      return answer
    }
    return requests.isEmpty ? nil : requests.removeFirst()
  }

  func send(_ event: KeeperEvent) throws(InstarError) {
    events.append(event)
    if case .run(let event) = event { onStep(event.step) }
    if case .ask(let record) = event { answer = onAsk(record) ? .proceed : .refrain }
  }

  var reports: [RunReport] {
    events.compactMap { if case .finished(let report) = $0 { report } else { nil } }
  }

  var plans: [PlanReport] {
    events.compactMap { if case .planned(let report) = $0 { report } else { nil } }
  }

  var steps: [RunEvent.Step] {
    events.compactMap { if case .run(let event) = $0 { event.step } else { nil } }
  }

  var asked: [PhaseRecord] {
    events.compactMap { if case .ask(let record) = $0 { record } else { nil } }
  }
}

extension PhaseRecord {
  /// The last event of a keeper that recovers the run.
  func recover() throws -> KeeperEvent? {
    let conversation = ScriptedConversation([.recover(self)])
    try Keeper(conversation: conversation, host: SQLHost()).serve()
    return conversation.events.last
  }

  /// The report of a keeper that recovers the run, which must succeed.
  func recovered() throws -> RecoveryReport {
    let event = try recover()
    var report: RecoveryReport?
    if case .recovered(let found) = event { report = found }
    return try #require(report, "\(String(describing: event))")
  }

  /// The error of a keeper that tries to recover the run, which must fail.
  func recoveryError() throws -> InstarError {
    let event = try recover()
    var error: InstarError?
    if case .failed(let found) = event { error = found }
    return try #require(error, "\(String(describing: event))")
  }
}
