internal import GRDB
internal import InstarEngine
internal import InstarKeeper
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Brings a store in memory to the last version of a plan.
///
/// The stages work on a second database in memory, which is verified and then copied over the first, as with a file. A
/// failure leaves the store as it was. There is no backup: what is in memory is nobody's only copy.
struct MemoryMigration {
  let connection: StoreConnection
  let plan: PlanDefinition

  private struct Source {
    var path: MigrationPath
    var store: EarlierStore
    /// Rows that were ever changed through the connection: tells whether somebody wrote meanwhile.
    var changes: Int
  }

  func run() throws {
    let clone = try StoreConnection(inMemory: SQLLog.ofThisProcess())
    guard let source = try copy(to: clone) else { return }
    try StageExecutor(connection: clone) { _ in }
      .run(plan.path(from: source.path.from), plan: plan.name)
    try clone.perform { clone in
      let layout = try StoreLayout(schema: source.path.last)
      let verification = CloneVerification(
        path: source.path, layout: layout, additions: StoreStructure(tables: [], indexes: []),
        before: source.store)
      let structure = try verification.verify(clone.database).structure
      try StoreStamp(
        earlier: source.store.metadata, uuid: nil, path: source.path, layout: layout,
        fingerprint: structure.fingerprint, reference: nil
      ).write(clone.database)
    }
    try connection.perform { store in
      guard store.database.totalChangesCount == source.changes else {
        throw InstarError(
          .storeChanged, "cannot migrate the store",
          cause: "it was written through another container meanwhile", next: "try again")
      }
      try clone.perform { clone in
        try PageCopy(from: clone.database, to: store.database).finish()
      }
    }
  }

  /// - Returns: `nil` where there is nothing to migrate.
  private func copy(to clone: StoreConnection) throws -> Source? {
    try connection.perform { session in
      let db = session.database
      let manifest = plan.manifest
      let identity = try StoreProbe.read(
        db, file: .inMemory, versionSources: [manifest.versionSource]
      ).identity.seen(from: manifest.versionSource, importing: manifest.importedVersions)
      if identity.format == .plain, identity.structure.tables.isEmpty { return nil }
      let match = SchemaMatch(of: identity, among: manifest.candidates)
      let version = try plan.startingVersion(of: match)
      if match.state == .current { return nil }
      let path = try MigrationPath(from: version, in: manifest)
      try clone.perform { try PageCopy(from: db, to: $0.database).finish() }
      return Source(
        path: path, store: try EarlierStore(db, layout: StoreLayout(schema: path.first)),
        changes: db.totalChangesCount)
    }
  }
}
