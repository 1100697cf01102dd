import InstarSchema
import InstarWire

/// A value of each message and report with every field set.
enum Sample {
  static let from = Schema.Version(1, 0, 0)
  static let to = Schema.Version(2, 0, 0)
  static let error = InstarError(
    .stageFailed, "cannot migrate '/srv/a.store'", store: "/srv/a.store", stage: "1.0.0 → 2.0.0",
    cause: "willMigrate threw", state: "unchanged", next: "correct the plan",
    rows: AffectedRows(count: 14, keys: ["3", "8"])
  ).provingDamage()
  static let structure = StoreStructure(
    tables: [.init(name: "ZNOTE", columns: [.init(name: "Z_PK", type: "INTEGER")])],
    indexes: [.init(name: "i", table: "ZNOTE", isUnique: true, columns: ["Z_PK"])])
  static let schema = Schema(
    entities: [
      Schema.Entity(
        name: "Note",
        attributes: [
          Schema.Attribute(
            name: "uid", type: .uuid, defaultValue: .blob(Array(repeating: 7, count: 16)))
        ])
    ], version: to)
  static let version = VersionManifest(
    schema: schema, structure: structure, fingerprint: "f2", name: "NotesV2")

  static var plan: PlanManifest {
    var plan = PlanManifest(
      name: "Notes", versions: [version],
      stages: [StageManifest(from: from, to: to, kind: .custom, label: "AddTags")])
    plan.versionSource = .table("meta", column: "version")
    plan.importedVersions = [.alembic("ae10"): to]
    plan.invariants = [.staysEqual("SELECT 1", upTo: [from: "SELECT 2"]), .rowsKept]
    return plan
  }

  static var request: MigrationRequest {
    var request = MigrationRequest(
      run: "R1", store: "/srv/a.store", plans: ["/p/Notes.so"], adopt: from,
      stageTimeLimitSeconds: 60, busyTimeoutSeconds: 2.5, sqlDebugLevel: 3)
    request.adoptsDifferences = true
    request.backupFolder = "/srv/backups"
    request.whenBusy = .migrate
    return request
  }

  static var manifest: BackupManifest {
    var manifest = BackupManifest(
      run: "R1", store: "/srv/a.store", madeAt: 1000, bytes: 4096, contentHash: "xxh3-128:00",
      externalFiles: 2, externalBytes: 300_000, format: .plain)
    manifest.version = from
    manifest.versionSource = .userVersion
    manifest.plan = "Notes"
    manifest.plugin = "/p/Notes.so"
    return manifest
  }

  static var backup: BackupReference {
    BackupReference(
      run: "R1", store: "/srv/a.store", path: "/srv/.instar/a.store.R1.backup", manifest: manifest,
      copy: "/mnt/a.store.R1.backup")
  }

  static var hold: Hold {
    var hold = Hold(
      id: "H1", store: "/srv/a.store", device: 1, inode: 2, createdNanoseconds: 3,
      by: "anna (1000)",
      since: 1000, why: "auditing")
    hold.run = "R1"
    return hold
  }

  static var phase: PhaseRecord {
    var phase = PhaseRecord(run: "R1", store: "/srv/a.store", phase: .cutover, startedAt: 1000)
    phase.keptStore = "/srv/a.store"
    phase.plugin = "/p/Notes.so"
    phase.plan = "Notes"
    phase.from = from
    phase.to = to
    phase.backup = "/srv/.instar/a.store.R1.backup"
    phase.versionSource = .userVersion
    phase.fingerprint = "f2"
    phase.declaredVersion = from
    phase.earlierFingerprint = "f1"
    phase.restoredRun = "R0"
    phase.contentDigest = "1-2"
    phase.earlierContentDigest = "3-4"
    phase.copyTo = BackupFolder(path: "/mnt", compression: .zstd)
    phase.cutover = .exchange
    phase.cloneInode = 7
    phase.storeInode = 8
    phase.usesLog = true
    phase.manifest = manifest
    return phase
  }

  static var recovery: RecoveryReport {
    var report = RecoveryReport(run: "R1", store: "/srv/a.store", outcome: .finished)
    report.version = to
    report.backup = "/srv/.instar/a.store.R1.backup"
    report.cutover = .exchange
    report.manifest = manifest
    report.notes = ["a note"]
    return report
  }

  static var probe: ProbeReport {
    var probe = ProbeReport(
      store: "/srv/a.store", format: .coredata, state: .behind, reason: "a reason", version: from,
      entities: [.init(name: "Note", rows: 3)], differences: ["column ZNOTE.ZX is missing"])
    probe.error = error
    probe.plan = "Notes"
    probe.plugin = "/p/Notes.so"
    probe.planVersion = to
    probe.nearestVersion = from
    probe.uuid = "U"
    probe.fingerprint = "f1"
    probe.toolVersions = [.django(app: "notes", "0001")]
    probe.entityHashes = ["Note": "AA=="]
    probe.sizeBytes = 4096
    probe.pageSizeBytes = 4096
    probe.journalMode = "wal"
    probe.walBytes = 0
    probe.journalBytes = 512
    probe.externalFiles = 2
    probe.externalBytes = 100
    probe.hold = hold
    probe.replicator = Replicator(name: .litestream, folder: "/srv/.a.store-litestream", tables: [])
    probe.holders = [.init(pid: 17, command: "notes", unit: "notes.service")]
    return probe
  }

  static var run: RunReport {
    var report = RunReport(
      run: "R1", store: "/srv/a.store", result: .failed, startedAt: 1000)
    report.plan = "Notes"
    report.plugin = "/p/Notes.so"
    report.from = from
    report.to = to
    report.durationMicroseconds = 67_000
    report.stages = [
      .init(
        from: from, to: to, kind: .lightweight, label: "AddTags", durationMicroseconds: 5)
    ]
    report.entities = [.init(name: "Note", rowsBefore: 3, rowsAfter: 2)]
    report.relationships = [.init(name: "Note.folder", linksBefore: 3, linksAfter: nil)]
    report.bytes = 4096
    report.backup = "/srv/.instar/a.store.R1.backup"
    report.cutover = .exchange
    report.copyTo = phase.copyTo
    report.backupCopy = "/mnt/a.store.R1.backup"
    report.leftovers = ["/srv/.instar/run-R1"]
    report.manifest = manifest
    report.restoredRun = "R0"
    report.holders = probe.holders
    report.hold = hold
    report.invariants = ["the rows of Note are kept"]
    report.notes = ["a note"]
    report.error = error
    return report
  }

  static var event: RunEvent {
    var event = RunEvent(run: "R1", store: "/srv/a.store", step: .stageFinished)
    event.plan = "Notes"
    event.plugin = "/p/Notes.so"
    event.from = from
    event.to = to
    event.stage = "1.0.0 → 2.0.0 (1 of 1)"
    event.rows = 3
    event.bytes = 4096
    event.durationMicroseconds = 5
    event.backup = "/b"
    event.cutover = .writeBack
    event.text = "printed"
    event.progress = WorkProgress(what: "rows of Note", done: 1, total: 3, seconds: 0.5)
    return event
  }

  static var schemaReport: SchemaReport {
    var report = SchemaReport(
      store: "/srv/a.store", format: .plain, origin: .tables, version: from, schema: schema,
      structure: structure, fingerprint: "f1", notes: ["a note"])
    report.archivedTypes = ["Note.tags": "[String]"]
    return report
  }

  static let migration = PlannedMigration(
    plan: "Notes", from: from, to: to,
    stages: [
      .init(
        from: from, to: to, kind: .lightweight, label: "AddTags",
        planned: [
          PlannedChange(
            kind: .additive, reason: "adds Note.x (String?)", entity: "Note",
            property: "x", table: "ZNOTE", column: "ZX",
            statements: [
              PlannedStatement(
                position: 1, sql: "ALTER TABLE ZNOTE ADD COLUMN ZX VARCHAR",
                comment: "adds column ZX")
            ])
        ])
    ], notes: ["a note"])

  static var planReport: PlanReport {
    var report = PlanReport(
      store: "/srv/a.store", probe: probe, migration: migration,
      findings: [
        Finding(
          severity: .warning, code: .noSpace, message: "little room", fix: "add some",
          rows: error.rows)
      ],
      error: error)
    report.invariants = plan.invariants
    return report
  }

  static var verification: VerificationReport {
    var report = VerificationReport(
      store: "/srv/a.store", state: .damaged, durationMicroseconds: 17, errors: [error])
    report.format = .coredata
    report.version = from
    report.plan = plan.name
    report.rows = 3
    report.indexes = 1
    return report
  }

  static let ddl = StoreDDL(statements: ["CREATE TABLE ZNOTE (Z_PK INTEGER)"])
}
