import Foundation
import InstarSchema
import InstarStore
import Synchronization

/// One open store of a container, which is built as its part of the container's schema says.
final class ModelStore: Sendable {
  let connection: StoreConnection
  /// With the models that are in this store, and no others.
  let schema: Schema
  let layout: StoreLayout
  /// What tells the store's rows from those of others: its `Z_UUID`, where it has one.
  let uuid: String
  /// How errors call the store.
  let place: String
  /// Whether contexts may save.
  let allowsSave: Bool
  /// When the structure was known to be the schema's: how many commits of others had been met, and SQLite's count of
  /// structural changes, where that was asked for.
  let knownStructure: Mutex<(commits: Int, version: Int64?)>
  /// By "TABLE.COLUMN", whether collections are archives there.
  private let archiveColumns = Mutex<[String: Bool]>([:])

  /// Maps a store whose structure must be that of the schema. A store that was adopted with more than
  /// that may have it still.
  ///
  /// - Parameter creatingWhereEmpty: makes the schema's tables in a database that has none.
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
    // Counted before: what is committed while the store is looked at is looked at again.
    knownStructure = Mutex((commits: connection.commitCountOfOthers, version: nil))
    uuid = try Self.open(
      schema, layout, connection, creatingWhereEmpty: creatingWhereEmpty)
  }

  /// The layout that the schema has in this store: which name a join table has is not always the schema's to say.
  private static func layout(
    of schema: Schema, _ connection: StoreConnection
  ) throws -> StoreLayout {
    try connection.perform { session in
      try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil
        ? StoreLayout(schema: schema) : StoreLayout(schema: schema, in: session.database)
    }
  }

  private static func open(
    _ schema: Schema, _ layout: StoreLayout, _ connection: StoreConnection,
    creatingWhereEmpty: Bool
  ) throws -> String {
    try connection.perform { session in
      try PredicateFunctions.register(session)
      if case .plain(let layout) = layout {
        return try openTables(
          schema, layout, session, creatingWhereEmpty: creatingWhereEmpty)
      }
      if creatingWhereEmpty, try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil {
        return try session.transaction {
          for statement in layout.createStatements { try session.run(statement) }
          var metadata = CoreDataMetadata(newStoreFor: schema)
          metadata.stamp(
            schema: schema, unchangedEntities: [], fingerprint: layout.structure.fingerprint)
          try metadata.write(session.database)
          return metadata.uuid
        }
      }
      let structure = try StoreStructure.read(session.database, format: .coredata)
      let fit = StructureFit(of: structure, to: layout.structure)
      // A store is used by its tables; one that lost its metadata can still be adopted.
      let metadata = try CoreDataMetadata.readIfSound(session.database)
      // What a stage works on was matched to its version before; a store is believed as it was left.
      let mayHaveMore =
        !creatingWhereEmpty
        || metadata?.version == schema.version && metadata?.fingerprint == structure.fingerprint
      if !(fit.lacksNothing && mayHaveMore) {
        try requireStructure(structure, of: layout.structure, schema)
      }
      return metadata?.uuid ?? ""
    }
  }

  /// Plain stores have no identifier of their own: that of the file stands for it.
  private static func openTables(
    _ schema: Schema, _ layout: PlainLayout, _ session: SQLSession, creatingWhereEmpty: Bool
  ) throws -> String {
    try session.useOrdinaryTables()
    if creatingWhereEmpty, try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil {
      try session.transaction {
        for statement in layout.createStatements { try session.run(statement) }
        try PlainVersion.stamp(schema.version, at: .userVersion, session.database)
      }
    }
    let structure = try StoreStructure.read(session.database, format: .plain)
      .described(asIn: layout.structure, among: [layout.structure])
    try requireStructure(structure, of: layout.structure, schema)
    let file = try session.text("SELECT file FROM pragma_database_list WHERE name = 'main'")
    return file.flatMap { $0.isEmpty ? nil : "file:\($0)" } ?? UUID().uuidString
  }

  private static func requireStructure(
    _ structure: StoreStructure, of expected: StoreStructure, _ schema: Schema
  ) throws {
    let differences = structure.differences(from: expected)
    guard !differences.isEmpty else { return }
    throw InstarError(
      .unknownVersion, "cannot open the store with schema \(schema.version)",
      cause: "the store is built otherwise:\n" + differences.joined(separator: "\n"),
      next: "open the container with a migration plan that knows this version of the store")
  }

  /// Whether collections in a column are kept as archives, as SwiftData does, and not as JSON: an app of Apple's reads no
  /// other form than it wrote.
  func keepsArchives(
    in column: StoredColumn, of table: String, _ session: SQLSession
  ) throws -> Bool {
    guard case .coreData(let layout) = layout else { return false }
    let key = "\(table).\(column.name)"
    if let known = archiveColumns.withLock({ $0[key] }) { return known }
    var samples = "SELECT \(column.name) FROM \(table) WHERE \(column.name) IS NOT NULL LIMIT 100"
    if column.mayBeExternal {
      // A value that lies in a file is read only where there is no other.
      samples =
        "SELECT \(column.name) FROM (\(samples)) ORDER BY substr(\(column.name), 1, 1) = x'02' LIMIT 1"
    }
    let archives = try session.integer(
      "SELECT max(substr(\(column.reading.sql("t0")), 1, 8) = x'62706C6973743030') "
        + "FROM (\(samples)) AS t0")
    let keeps = archives.map { $0 != 0 } ?? !layout.conventions.isMadeByInstar
    archiveColumns.withLock { $0[key] = keeps }
    return keeps
  }
}
