public import Foundation
package import GRDB
public import InstarSchema

/// A store's identity, read without changing the store.
public struct StoreProbe: Sendable {
  /// The store's file and its side files, as they were before the probe.
  public var file: StoreFile
  /// In the order in which the store lists them.
  public var entities: [CountedEntity]
  /// What is compared with the versions of plans.
  public var identity: StoreIdentity { contents.identity }
  let contents: any FormatProbe
  /// The program that copies the store's log to another place; `nil` without one.
  public let replicator: Replicator?

  /// The rows of `Z_PRIMARYKEY`, in the order of their numbers; `nil` for a store that lists no entities.
  public var entityList: [CoreDataProbe.ListedEntity]? { coreData?.entityList }
  /// The names of tables and triggers in which Apple's frameworks keep more than the model says.
  public var frameworkObjects: [String] { coreData?.frameworkObjects ?? [] }
  /// What the store decides about its layout; the conventions of a new store where the format has none.
  public var conventions: CoreDataConventions { coreData?.conventions ?? CoreDataConventions() }
  /// The store's identifier; `nil` where it has none.
  public var uuid: String? { coreData?.uuid }
  /// The declared hash of each entity, by name; empty where the store declares none.
  public var entityHashes: [String: Data] { coreData?.entityHashes ?? [:] }
  /// Why the metadata cannot be used, although SQLite can read it; `nil` where it can be used or where there is none.
  public var metadataProblem: String? { coreData?.metadataProblem }

  private var coreData: CoreDataProbe? { contents as? CoreDataProbe }

  private init(_ db: Database, file: StoreFile, versionSources: Set<VersionSource>) throws {
    let schema = try ProbedSchema.read(db)
    self.init(
      try schema.format.probe(db, schema: schema, versionSources: versionSources), schema, file)
  }

  /// Probes a store by its pages.
  ///
  /// - Returns: `nil` where only SQLite can read the store: its log or journal has content, another process writes, no
  ///   store with its schema was probed before, or anything about its pages is unusual.
  init?(pagesOf file: StoreFile, versionSources: Set<VersionSource>) {
    guard let pages = PageReader(file), let schema = ProbedSchema.known(pages.schemaKey),
      let contents = schema.format.probe(pages, schema: schema, versionSources: versionSources),
      pages.areCurrent()
    else { return nil }
    self.init(contents, schema, file)
  }

  private init(_ contents: any FormatProbe, _ schema: ProbedSchema, _ file: StoreFile) {
    self.file = file
    self.contents = contents
    replicator = Replicator(of: file.path, tables: schema.replicatorTables)
    entities = contents.identity.entityNames.map { CountedEntity(name: $0) }
  }

  /// Probes the store at a path.
  ///
  /// - Parameters:
  ///   - rows: Whether rows are counted. The rows of a damaged table are not.
  ///   - versionSources: Where plans look for the version of a plain store, besides `PRAGMA user_version`.
  ///   - busyTimeout: Seconds to wait for a process that is writing.
  ///   - readsPages: Whether a store that nobody writes may be read without SQLite, which has the same result.
  /// - Throws: The errors of `StoreReader.withReadOnlyStore`; `corruptStore` where reading the structure does not end;
  ///   `unsupported` where the store has too many tables. The store is unchanged in any case.
  public static func read(
    _ path: String, rows: RowCounting = .none, versionSources: Set<VersionSource> = [],
    busyTimeout: Double = 1, readsPages: Bool = true
  ) throws(InstarError) -> StoreProbe {
    let file = try StoreFile.probe(path)
    if rows == .none, readsPages,
      let probe = StoreProbe(pagesOf: file, versionSources: versionSources)
    {
      return probe
    }
    return try read(
      path, file, rows: rows, versionSources: versionSources, busyTimeout: busyTimeout
    ) { _, _ in }
  }

  /// Probes a store by SQLite. Also calls `more`, which reads more of the store and gets the same processor time again.
  static func read(
    _ path: String, _ file: StoreFile, rows: RowCounting,
    versionSources: Set<VersionSource> = [], busyTimeout: Double,
    more: (Database, StoreProbe) throws -> Void
  ) throws(InstarError) -> StoreProbe {
    return try StoreReader.withReadOnlyFile(path, busyTimeout: busyTimeout, known: file) {
      db, file in
      let seconds = WorkLimit.seconds(for: file)
      let tables = try WorkLimit.within(seconds, db) {
        try db.integer("SELECT count(*) FROM sqlite_master") ?? 0
      }
      guard tables <= tableLimit else {
        throw InstarError(
          .unsupported, "cannot read '\(path)'", store: path,
          cause: "the store has \(tables) tables, indexes, views and triggers; "
            + "Instar reads at most \(tableLimit)",
          next: "let the app itself migrate this store")
      }
      let limit = seconds + Double(tables) * secondsPerTable
      var probe = try WorkLimit.within(limit, db) {
        try StoreProbe(db, file: file, versionSources: versionSources)
      }
      try WorkLimit.within(limit, db) { try more(db, probe) }
      try probe.count(rows, db)
      return probe
    }
  }

  private static let tableLimit = 50_000
  /// Several times what SQLite needs to list the columns of a table.
  private static let secondsPerTable = 0.0001

  /// Probes a store that this process may have open, through a connection of its own and under SQLite's locks.
  ///
  /// SQLite creates and removes side files, as for any app that opens the store.
  ///
  /// - Throws: `missingStore`, `notAStore`, `corruptStore`, `busyStore` or `unreadableStore`.
  public static func readShared(
    _ path: String, versionSources: Set<VersionSource> = [], busyTimeout: Double
  ) throws(InstarError) -> StoreProbe {
    var file = try StoreFile.probeWithoutOpening(path)
    do {
      return try GuardedConnection.use(
        file.path, access: .readWrite, busyTimeout: busyTimeout, firesTriggers: false
      ) { db in
        try db.execute(sql: "BEGIN")
        // Closing the connection ends the transaction too.
        defer { try? db.execute(sql: "ROLLBACK") }
        file.usesWriteAheadLog = try db.text("PRAGMA journal_mode") == "wal"
        file.pageSizeBytes = try db.integer("PRAGMA page_size") ?? 0
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
    try StoreProbe(db, file: file, versionSources: versionSources)
  }

  /// Reads the statements that create an empty store like this one.
  ///
  /// - Parameter limitBytes: Statements of that length are left out.
  package func ddl(_ db: Database, limitBytes: Int) throws -> [String] {
    try contents.ddl(db, limitBytes: limitBytes)
  }

  // MARK: Rows

  /// The processor time of `RowCounting.quick`.
  private static let quickSeconds = 0.2
  /// The time limit for counting all rows assumes at least this speed, so that no real table reaches it.
  private static let slowestBytesPerSecond = 10.0 * 1024 * 1024
  private static let shortestSeconds = 5.0

  /// Counts rows. Damaged tables, and those that are left when the time is over, get no count.
  private mutating func count(_ rows: RowCounting, _ db: Database) throws {
    let seconds: Double
    switch rows {
    case .none: return
    case .quick: seconds = Self.quickSeconds
    case .all:
      let bytes = Double(file.state.size) + Double(file.log?.size ?? 0)
      seconds = Self.shortestSeconds + bytes / Self.slowestBytesPerSecond
    }
    do {
      try WorkLimit.within(seconds, db) {
        try contents.countRows(db) { entities[$0].rows = $1 }
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
      guard rows == .quick else { throw error }
    }
  }
}
