internal import GRDB
internal import InstarEngine
internal import InstarKeeper
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Brings a store in memory to the last version of a plan.
///
/// The stages run on a second database in memory, which is verified and then copied over the first, as with a file. A
/// failure leaves the store as it was. There is no backup: what is in memory is nobody's only copy.
struct MemoryMigration {
  let connection: StoreConnection
  let plan: PlanDefinition

  private struct Source {
    var path: MigrationPath
    var store: SchemaBaseline
    var census: StoreCensus
    /// Rows that were ever changed through the connection: tells whether somebody wrote meanwhile.
    var changes: Int
  }

  /// - Parameter stages: Runs the stages on the clone.
  /// - Returns: Whether the store was migrated; `false` where it was at the last version.
  func run(_ stages: StoreMigration.Stages) throws -> Bool {
    let clone = try StoreConnection(inMemory: SQLLog.ofThisProcess())
    guard let source = try copy(to: clone) else { return false }
    let path = try plan.path(from: source.path.from)
    if !path.isEmpty {
      try stages(StageExecutor.Clone(connection: clone, store: nil, path: path) { _ in })
    }
    try clone.perform { clone in
      let layout = try source.path.last.layout()
      let verification = try CloneVerification(
        path: source.path, layout: layout, before: source.store)
      let store = EarlierStore(layout: try source.path.first.layout()) { read in
        try connection.perform { try read($0.database) }
      }
      let structure = try verification.verify(
        clone.database, before: { source.census }, of: store
      ).structure
      try StoreStamp(
        earlier: source.store.metadata, uuid: nil, path: source.path, layout: layout,
        fingerprint: structure.fingerprint, reference: nil
      ).write(clone.database)
    }
    try connection.perform { store in
      guard store.database.totalChangesCount == source.changes else {
        throw InstarError(
          .storeChanged, "cannot migrate the store",
          cause: "another container wrote to the store during the migration",
          next: "open the container again")
      }
      try clone.perform { clone in
        try PageCopy(from: clone.database, to: store.database).finish()
      }
    }
    return true
  }

  /// The names of the store's tables, as they stand in SQL.
  func tables() throws -> Set<String> {
    try connection.perform { session in
      let probe = try StoreProbe.read(session.database, file: .inMemory)
      return Set(probe.identity.structure.tables.map { SQLIdentifier.sql($0.name) })
    }
  }

  /// - Throws: why the store cannot be migrated, as far as that can be told without a clone.
  func state() throws -> StoreMigration.State {
    try connection.perform { try state($0.database) }
  }

  private func state(_ db: Database) throws -> StoreMigration.State {
    let manifest = plan.manifest
    let identity = try StoreProbe.read(
      db, file: .inMemory, versionSources: [manifest.versionSource]
    ).identity.seen(from: manifest.versionSource, importing: manifest.importedVersions)
    if identity.isEmpty { return .missing }
    let match = SchemaMatch(of: identity, among: manifest.versions)
    let version = try plan.startingVersion(of: match, store: nil)
    if match.state == .current { return .current }
    return .behind(from: version, adopting: nil)
  }

  /// - Returns: `nil` where there is nothing to migrate.
  private func copy(to clone: StoreConnection) throws -> Source? {
    try connection.perform { session in
      let db = session.database
      guard case .behind(let version, _) = try state(db) else { return nil }
      let path = try MigrationPath(from: version, in: plan.manifest)
      try clone.perform { try PageCopy(from: db, to: $0.database).finish() }
      return Source(
        path: path, store: try SchemaBaseline(db, format: path.first.format),
        census: try StoreCensus(
          db, layout: path.first.layout(), removing: path.removedEntities,
          losing: path.relationshipLosers, queries: path.queriesBefore),
        changes: db.totalChangesCount)
    }
  }
}
