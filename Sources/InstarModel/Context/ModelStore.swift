import Foundation
import InstarSchema
import InstarStore
import Synchronization

/// An open store of a container. Its structure matches its part of the container's schema.
final class ModelStore: Sendable {
  let connection: StoreConnection
  /// The schema of the models in this store.
  let schema: Schema
  let layout: any StoreLayout
  /// The store's identifier: its `Z_UUID`, or the path of a plain store.
  let uuid: String
  /// The store's name in errors.
  let place: String
  /// Whether contexts may save.
  let allowsSave: Bool
  /// When the structure was last checked: the number of commits by others until then, and SQLite's count of changes
  /// of the structure, if it was read.
  let knownStructure: Mutex<(commits: Int, version: Int64?)>
  /// Whether a table has ON CONFLICT FAIL; `nil` until it is read.
  let knownConflictFail = Mutex<Bool?>(nil)
  /// The tables of the store's history: not read yet, none, or these.
  let knownHistory = Mutex<HistoryTables??>(nil)
  /// An error from code that cannot throw and has no context, for the next fetch or save of any context.
  private let deferredError = Mutex<(any Error)?>(nil)
  /// Whether a column has archives of collections, by "TABLE.COLUMN".
  private let archiveColumns = Mutex<[String: Bool]>([:])

  /// Opens a store whose structure must match the schema. An adopted store may have more.
  ///
  /// - Parameter creatingWhereEmpty: Whether to create the schema's tables in an empty database.
  /// - Throws: `invalidModel` or `incompleteSchema` for models that cannot be stored; `unknownVersion` if the structure
  ///   does not match. The store is then unchanged.
  init(
    schema: Schema, connection: StoreConnection, place: String, allowsSave: Bool = true,
    creatingWhereEmpty: Bool
  ) throws {
    if let problem = schema.modelProblems().first { throw problem }
    self.schema = schema
    self.connection = connection
    self.place = place
    self.allowsSave = allowsSave
    layout = try Self.layout(of: schema, connection)
    // Counted before the structure is read, so that a commit during the reading is checked later.
    knownStructure = Mutex((commits: connection.commitCountOfOthers, version: nil))
    uuid = try Self.open(
      schema, layout, connection, creatingWhereEmpty: creatingWhereEmpty)
  }

  /// Returns the layout of the schema in this store. The names of join tables may depend on the store.
  private static func layout(
    of schema: Schema, _ connection: StoreConnection
  ) throws -> any StoreLayout {
    try connection.perform { session in
      try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil
        ? schema.layout() : schema.layout(in: session.database)
    }
  }

  /// Opens the store, and returns its identifier. A store without one is identified by the path of its file.
  private static func open(
    _ schema: Schema, _ layout: any StoreLayout, _ connection: StoreConnection,
    creatingWhereEmpty: Bool
  ) throws -> String {
    try connection.perform { session in
      try PredicateFunctions.register(session)
      if layout.enforcesForeignKeys { try session.useOrdinaryTables() }
      if creatingWhereEmpty, try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil {
        try create(schema, layout, session)
      }
      let format = layout.format
      let structure = try StoreStructure.read(session.database, format: format)
        .described(asIn: layout.structure, among: [layout.structure], format: format)
      // Only the tables matter here; a store without metadata can still be adopted.
      let metadata = try format.metadata(session.database)
      // The clone of a stage was matched before. Another store may have more only if its stamp is valid.
      let mayHaveMore =
        !creatingWhereEmpty
        || metadata?.version == schema.version && metadata?.fingerprint == structure.fingerprint
      if !(mayHaveMore && layout.fits(structure)) {
        try requireStructure(structure, of: layout.structure, schema)
      }
      if format.hasMetadata { return metadata?.uuid ?? "" }
      return try session.mainFile.map { "file:\($0)" } ?? UUID().uuidString
    }
  }

  /// Creates the schema's tables, triggers and metadata in an empty database.
  private static func create(
    _ schema: Schema, _ layout: any StoreLayout, _ session: SQLSession
  ) throws {
    try session.transaction {
      let statements = layout.createStatements + layout.historyStatements
      for statement in statements + layout.triggerStatements { try session.run(statement) }
      var metadata = layout.metadata(newStoreFor: schema)
      metadata?.stamp(
        schema: schema, unchangedEntities: [], fingerprint: layout.structure.fingerprint)
      try layout.stamp(
        schema.version, at: .userVersion, metadata: metadata?.encoded(), session.database)
    }
  }

  private static func requireStructure(
    _ structure: StoreStructure, of expected: StoreStructure, _ schema: Schema
  ) throws {
    let differences = structure.differences(from: expected)
    guard !differences.isEmpty else { return }
    throw InstarError(
      .unknownVersion, "cannot open the store with schema \(schema.version)",
      cause: "the store's structure does not match the models:\n"
        + differences.joined(separator: "\n"),
      next: "open the container with a migration plan that has the version of the store")
  }

  /// Runs a part of a save. If another process has locked the store, the error names the store.
  func explainingLock<Value>(_ save: () throws -> Value) throws -> Value {
    do {
      return try save()
    } catch let error as InstarError where error.code == .busyStore && error.state == nil {
      throw error.about(
        "cannot save to \(place)", state: "unchanged",
        next: "wait until the other process has ended its transaction, then call save() again")
    }
  }

  /// Keeps an error for the next fetch or save of any context.
  func note(_ error: any Error) { deferredError.withLock { $0 = $0 ?? error } }

  func throwDeferredError() throws {
    if let error = deferredError.withLock({ $0.take() }) { throw error }
  }

  /// Whether a column has collections as archives, as SwiftData writes them, not as JSON. An app on Apple's platforms
  /// reads only the form that it writes.
  func keepsArchives(
    in column: StoredColumn, of table: String, _ session: SQLSession
  ) throws -> Bool {
    guard layout.mayHaveArchivedCollections else { return false }
    let key = "\(table).\(column.name)"
    if let known = archiveColumns.withLock({ $0[key] }) { return known }
    var samples = "SELECT \(column.name) FROM \(table) WHERE \(column.name) IS NOT NULL LIMIT 100"
    if column.mayBeExternal {
      // Values in files come last, because reading them takes longer.
      samples =
        "SELECT \(column.name) FROM (\(samples)) ORDER BY substr(\(column.name), 1, 1) = x'02' LIMIT 1"
    }
    let archives = try session.integer(
      "SELECT max(substr(\(column.reading.sql("t0")), 1, 8) = x'62706C6973743030') "
        + "FROM (\(samples)) AS t0")
    let keeps = archives.map { $0 != 0 } ?? layout.archivesNewCollections
    archiveColumns.withLock { $0[key] = keeps }
    return keeps
  }
}
