public import Foundation
package import GRDB
public import InstarSchema

/// What a store is, read without changing it.
public struct StoreProbe: Sendable {
  public var file: StoreFile
  public var identity: StoreIdentity
  /// In the order in which the store lists them.
  public var entities: [Entity]
  /// The entities as `Z_PRIMARYKEY` numbers them, in the order of their numbers.
  public var entityList: [ListedEntity] = []
  /// Tables and triggers by which Apple's frameworks keep more than the model says: of CloudKit
  /// mirroring (`ANSCK…`) and of derived attributes (`Z_DA_…`). By name.
  public var frameworkObjects: [String] = []
  /// What of the layout of a store of the format `coredata` no schema decides.
  public var conventions = CoreDataConventions()
  /// The store's `Z_UUID`.
  public var uuid: String?
  /// The hash of each entity, as the store declares them.
  public var entityHashes: [String: Data]
  /// Why the metadata could not be read, for a store that has some.
  public var metadataProblem: String?

  public struct Entity: Sendable, Hashable {
    public var name: String
    /// `nil` where rows were not counted.
    public var rows: Int?

    public init(name: String, rows: Int? = nil) {
      self.name = name
      self.rows = rows
    }
  }

  /// Probes the store at a path.
  ///
  /// - Parameters:
  ///   - rows: Whether rows are counted. A table whose rows cannot be counted has none in the
  ///     result.
  ///   - versionSources: Where plans want a plain store to say its version, besides
  ///     `PRAGMA user_version`.
  ///   - busyTimeout: Seconds to wait for a process that is in the middle of writing.
  /// - Throws: what `StoreReader.withReadOnlyStore` throws; `corruptStore` where what the store is
  ///   made of leads in circles; `unsupported` where it is larger than is read. The store is as it
  ///   was in any case.
  public static func read(
    _ path: String, rows: RowCounting = .none, versionSources: Set<VersionSource> = [],
    busyTimeout: Double = 1
  ) throws(InstarError) -> StoreProbe {
    try read(
      path, rows: rows, versionSources: versionSources, busyTimeout: busyTimeout
    ) { _, _ in }
  }

  /// The same, and has `more` read more of the store, within as much processor time again.
  static func read(
    _ path: String, rows: RowCounting, versionSources: Set<VersionSource> = [],
    busyTimeout: Double,
    more: (Database, StoreProbe) throws -> Void
  ) throws(InstarError) -> StoreProbe {
    let file = try StoreFile.look(at: path)
    return try StoreReader.withReadOnlyStore(path, busyTimeout: busyTimeout) { db in
      let seconds = WorkLimit.seconds(for: file)
      let tables = try WorkLimit.within(seconds, db) {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
      }
      guard tables <= tableLimit else {
        throw InstarError(
          .unsupported, "cannot read '\(path)'", store: path,
          cause: "it has \(tables) tables, indexes, views and triggers; Instar reads \(tableLimit)")
      }
      let limit = seconds + Double(tables) * secondsPerTable
      var probe = try WorkLimit.within(limit, db) {
        try read(db, file: file, versionSources: versionSources)
      }
      try WorkLimit.within(limit, db) { try more(db, probe) }
      try probe.count(rows, db)
      return probe
    }
  }

  private static let tableLimit = 50_000
  /// Several times what SQLite takes to say what a table is made of.
  private static let secondsPerTable = 0.0001

  /// Probes a store that this process may have open: through a connection of its own, under
  /// SQLite's locks. Side files are made and removed as for any app that opens the store.
  ///
  /// - Throws: `missingStore`, `notAStore`, `corruptStore`, `busyStore` or `unreadableStore`.
  public static func readShared(
    _ path: String, versionSources: Set<VersionSource> = [], busyTimeout: Double
  ) throws(InstarError) -> StoreProbe {
    var file = try StoreFile.lookWithoutOpening(path)
    do {
      let queue = try GuardedConnection.open(
        file.path, access: .readWrite, busyTimeout: busyTimeout, firesTriggers: false)
      defer { try? queue.close() }
      return try queue.inDatabase { db in
        try db.execute(sql: "BEGIN")
        defer { try? db.execute(sql: "ROLLBACK") }
        file.usesWriteAheadLog = try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal"
        file.pageSizeBytes = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
        return try read(db, file: file, versionSources: versionSources)
      }
    } catch {
      throw InstarError(error, what: "cannot read '\(path)'", store: path)
    }
  }

  /// Probes a store that is open already.
  package static func read(
    _ db: Database, file: StoreFile, versionSources: Set<VersionSource> = []
  ) throws -> StoreProbe {
    let format = try format(of: db)
    let structure = try StoreStructure.read(db, format: format)
    var identity = StoreIdentity(
      format: format, version: nil, entityNames: [], structure: structure,
      fingerprint: structure.fingerprint)
    switch format {
    case .plain:
      identity.entityNames = structure.tables.map(\.name)
      identity.declaredVersions = try PlainVersion.read(db, at: versionSources, in: structure)
      identity.version = identity.declaredVersions[.userVersion]
      identity.toolVersions = try PlainVersion.toolVersions(db, in: structure)
      return StoreProbe(
        file: file, identity: identity, entities: structure.tables.map { Entity(name: $0.name) },
        entityHashes: [:])
    case .coredata:
      let listed = try listedEntities(db)
      identity.entityNames = listed.map(\.name)
      var probe = StoreProbe(
        file: file, identity: identity,
        entities: listed.map { Entity(name: $0.name) }, entityHashes: [:])
      probe.entityList = listed
      probe.frameworkObjects = try frameworkObjects(db)
      var known: CoreDataMetadata?
      do {
        let metadata = try CoreDataMetadata.read(db)
        known = metadata
        probe.identity.version = metadata.version
        probe.identity.stampedFingerprint = metadata.fingerprint
        probe.entityHashes = metadata.entityHashes
        probe.uuid = metadata.uuid
      } catch {
        // A store is recognised by its tables too.
        guard [.corruptStore, .sqlFailed].contains(error.code) else { throw error }
        probe.metadataProblem = error.cause
        probe.uuid = try? String.fetchOne(
          db, sql: "SELECT Z_UUID FROM Z_METADATA WHERE length(Z_UUID) < 1000 LIMIT 1")
      }
      probe.conventions = try CoreDataConventions(of: db, metadata: known)
      return probe
    }
  }

  /// `coredata` where the two tables that no store of that format lacks are there.
  private static func format(of db: Database) throws -> StoreFormat {
    let count = try Int.fetchOne(
      db,
      sql: """
        SELECT count(*) FROM sqlite_master
        WHERE type = 'table' AND rootpage > 0 AND name IN ('Z_PRIMARYKEY', 'Z_METADATA')
        """)
    return count == 2 ? .coredata : .plain
  }

  /// A row of `Z_PRIMARYKEY`.
  public struct ListedEntity: Sendable, Hashable {
    public var number: Int
    /// What the entity was called when it was listed: Core Data leaves a name that is not true any
    /// more after some renames.
    public var name: String
    /// The number of the entity above; 0 for a root.
    public var superNumber: Int
  }

  private static func frameworkObjects(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_master
        WHERE type = 'table' AND name GLOB 'ANSCK*' OR type = 'trigger' AND name GLOB 'Z_DA_*'
        ORDER BY name LIMIT 100
        """)
  }

  /// Numbers from 16000 on are persistent history, which is no entity of the model.
  private static func listedEntities(_ db: Database) throws -> [ListedEntity] {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT Z_ENT, CASE WHEN length(Z_NAME) <= \(nameLimit) THEN Z_NAME END, Z_SUPER
        FROM Z_PRIMARYKEY
        WHERE Z_ENT > 0 AND Z_ENT < 16000 ORDER BY Z_ENT LIMIT 16000
        """)
    var size = NameSize()
    var entities: [ListedEntity] = []
    while let row = try rows.next() {
      let columns = Array(row.databaseValues)
      guard let number = Int.fromDatabaseValue(columns[0]),
        let name = String.fromDatabaseValue(columns[1])
      else { continue }
      try size.add(name)
      entities.append(
        ListedEntity(
          number: number, name: name, superNumber: Int.fromDatabaseValue(columns[2]) ?? 0))
    }
    return entities
  }

  /// The longest name of an entity that is read.
  private static let nameLimit = 1 << 20
}
