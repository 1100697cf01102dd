public import GRDB
public import InstarSchema

// The only switch over the formats: everything else asks the layout or the probe of a store, or a property of
// `StoreFormat`. `SchemaChange` of InstarChange chooses an executor by the type of a layout.

extension StoreFormat {
  /// The format of an open store: `coredata` where it has the two tables that every store of that format has.
  package init(of db: Database) throws {
    let count = try Int.fetchOne(
      db,
      sql: """
        SELECT count(*) FROM sqlite_master
        WHERE type = 'table' AND rootpage > 0 AND name IN ('Z_PRIMARYKEY', 'Z_METADATA')
        """)
    self = count == 2 ? .coredata : .plain
  }

  func probe(
    _ db: Database, schema: ProbedSchema, versionSources: Set<VersionSource>
  ) throws -> any FormatProbe {
    switch self {
    case .coredata:
      try CoreDataProbe(
        db, tables: schema.tables, objects: schema.frameworkObjects,
        conventions: schema.conventions)
    case .plain: try PlainProbe(db, tables: schema.tables, versionSources: versionSources)
    }
  }

  /// Probes a store by its pages; `nil` where only SQLite can read its rows.
  func probe(
    _ pages: PageReader, schema: ProbedSchema, versionSources: Set<VersionSource>
  ) -> (any FormatProbe)? {
    switch self {
    case .coredata:
      CoreDataProbe(
        pages, tables: schema.tables, objects: schema.frameworkObjects,
        conventions: schema.conventions)
    case .plain:
      schema.hasToolTable
        ? nil : PlainProbe(pages, tables: schema.tables, versionSources: versionSources)
    }
  }

  /// The statements of the only tables that a probe reads by their pages; `nil` where it may read any table.
  var statementsOfReadTables: [String]? {
    switch self {
    case .coredata: CoreDataLayout.systemTableStatements
    case .plain: nil
    }
  }

  /// Returns what a probe takes from the schema of an open store and only this format has.
  func names(_ db: Database) throws -> (objects: [String], conventions: CoreDataConventions) {
    switch self {
    case .coredata:
      (try CoreDataProbe.frameworkObjects(db), try CoreDataConventions(schemaOf: db))
    case .plain: ([], CoreDataConventions())
    }
  }

  /// Lays out a schema in this format, also one without entities.
  package func layout(
    of schema: Schema, conventions: CoreDataConventions = CoreDataConventions()
  ) throws(InstarError) -> any StoreLayout {
    switch self {
    case .coredata: try CoreDataLayout(schema: schema, conventions: conventions)
    case .plain: try PlainLayout(schema: schema)
    }
  }

  /// The conventions of an open store; those of a new store where the format has none.
  package func conventions(of db: Database) throws -> CoreDataConventions {
    switch self {
    case .coredata: try CoreDataConventions(of: db)
    case .plain: CoreDataConventions()
    }
  }

  /// The metadata of an open store; `nil` where the format has none, or where they are missing or unreadable.
  ///
  /// - Throws: `corruptStore` where the metadata is damaged; the database's error.
  package func metadata(_ db: Database) throws -> CoreDataMetadata? {
    switch self {
    case .coredata: try CoreDataMetadata.readIfSound(db)
    case .plain: nil
    }
  }

  /// Returns the statements that write the rows that a change of schema reads, into an empty store with the same
  /// tables.
  ///
  /// - Throws: `corruptStore` where the metadata is damaged; the database's error.
  package func bookkeepingStatements(_ db: Database) throws -> [String] {
    switch self {
    case .coredata:
      try CoreDataProbe.bookkeepingStatements(db, CoreDataProbe.readEntityList(db))
    case .plain: []
    }
  }

  /// The tables that the format maintains beside those of the models, if it has any. They are small, and a change of
  /// schema may write them.
  package var bookkeepingTables: [String] {
    switch self {
    case .coredata: ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]
    case .plain: []
    }
  }

  /// The tables in which the format keeps a history of changes, where a store has one; empty where it keeps none.
  package var historyTables: [String] {
    switch self {
    case .coredata: stageHistoryTables + ["ATRANSACTION", "ATRANSACTIONSTRING"]
    case .plain: []
    }
  }

  /// Those of them that a change of schema may write, beside the books: their rows name entities by number.
  package var stageHistoryTables: [String] {
    switch self {
    case .coredata: ["ACHANGE"]
    case .plain: []
    }
  }

  /// What the format keeps in a column that no statement of a plan changes; `nil` for a column of the app.
  ///
  /// - Parameter column: As SQLite names it to an authorizer: "ROWID" for each name of a hidden rowid.
  func purpose(ofColumn column: String) -> String? {
    switch self {
    case .coredata:
      switch column.uppercased() {
      case "Z_PK", "Z_ENT", "ROWID": "which identifies a row for Core Data"
      case "Z_OPT": "in which Core Data counts the saves of a row"
      default: nil
      }
    case .plain: nil
    }
  }

  /// The tables that no statement of a plan writes: those of the books, and of the history.
  var reservedTables: [String] { bookkeepingTables + historyTables }

  /// Whether the keys of a table's rows are counted elsewhere, so that no statement of a plan may insert rows.
  func countsKeys(ofTable table: String) -> Bool {
    switch self {
    // A table of links has no keys, and its name begins with the number of an entity.
    case .coredata: table.uppercased().hasPrefix("Z") && !table.hasPrefix("Z_")
    case .plain: false
    }
  }

  /// Whether apps know the rows of a layout's tables by the values of their columns alone, and never by a rowid that is
  /// not the value of a column.
  package var knowsRowsByColumns: Bool {
    switch self {
    case .coredata: true
    case .plain: false
    }
  }

  /// Whether rows may name files beside the store that hold their large values.
  package var mayHaveExternalValues: Bool {
    switch self {
    case .coredata: true
    case .plain: false
    }
  }

  fileprivate func readStructure(_ db: Database) throws -> StoreStructure {
    switch self {
    case .coredata: try StoreStructure.readCoreData(db)
    case .plain: try StoreStructure.read(db)
    }
  }

  /// Reads the version that a store declares, and the fingerprint that it was stamped with.
  ///
  /// - Parameters:
  ///   - source: Where the plan looks for the version of a plain store.
  ///   - structure: The store's structure.
  /// - Returns: `nil` for what the store does not declare. A plain store has no fingerprint.
  /// - Throws: `corruptStore` where the metadata is damaged; the database's error.
  package func declaration(
    _ db: Database, at source: VersionSource, in structure: StoreStructure
  ) throws -> (version: Schema.Version?, fingerprint: String?) {
    switch self {
    case .coredata:
      let metadata = try metadata(db)
      return (metadata?.version, metadata?.fingerprint)
    case .plain:
      return (try PlainVersion.read(db, at: [source], in: structure)[source], nil)
    }
  }
}

extension StoreStructure {
  /// Reads the tables and indexes of a store, without those that SQLite and the format reserve.
  ///
  /// - Throws: The database's error; `unsupported` for a schema that is too large. Nothing is written.
  public static func read(_ db: Database, format: StoreFormat) throws -> StoreStructure {
    let key = try SchemaKey.read(db).map { Reading(format: format, schema: $0) }
    return try known.value(of: key) { try format.readStructure(db) }
  }

  /// A schema is read in each format in another way.
  private struct Reading: Hashable {
    let format: StoreFormat
    let schema: SchemaKey
  }

  private static let known = BoundedCache<Reading, StoreStructure>()
}
