internal import GRDB
internal import InstarSchema

/// What a probe finds out from the schema of a store alone, kept for other stores with the same schema.
struct ProbedSchema: Sendable {
  let format: StoreFormat
  let tables: StoreTables
  /// The tables that replicators keep in the store.
  let replicatorTables: [String]
  /// See `CoreDataProbe.frameworkObjects`.
  let frameworkObjects: [String]
  /// Without what depends on the metadata.
  let conventions: CoreDataConventions
  /// Whether a tool keeps a history of versions in the store.
  let hasToolTable: Bool

  private static let all = SchemaCache<ProbedSchema>()

  /// Returns what an earlier probe found out for this schema.
  static func known(_ key: SchemaKey) -> ProbedSchema? { all.known(key) }

  /// - Throws: The database's error; `unsupported` for a schema that is too large. Nothing is written.
  static func read(_ db: Database) throws -> ProbedSchema {
    try all.value(of: SchemaKey.read(db)) { try ProbedSchema(db) }
  }

  private init(_ db: Database) throws {
    format = try StoreFormat(of: db)
    let structure = try StoreStructure.read(db, format: format)
    tables = try StoreTables(db, structure: structure, statements: format.statementsOfReadTables)
    replicatorTables = try Replicator.tables(db)
    (frameworkObjects, conventions) = try format.names(db)
    hasToolTable = PlainVersion.hasToolTable(structure)
  }
}
