package import GRDB
package import InstarSchema

// Folders of this module, each using only those before it:
//
//   Bytes       digests, DEFLATE, property lists and archives: bytes that know no store
//   SQLText     names, literals and statements as text
//   Structure   tables and indexes as read from a store
//   Mapping     how entities map to tables, in the terms of SQL: knows no format
//   Probe       a store's file, and guarded connections to it: knows no format
//   CoreData    Metadata, Values, Layout, Probe, ModelCache, Introspection
//   Plain       Version,  Values, Layout, Probe,             Introspection
//   Soundness   whether pages, indexes and rows of a store fit together
//   Connection  sessions through which models are read and written, with the functions of both formats' Values
//
// Metadata is the counterpart of Version: where a store keeps its version. Files without a counterpart:
//
// - Only Core Data archives its model in the store (ModelCache), and has conventions, derived attributes, a history,
//   external values and archived collections. Its layout has extensions for what PlainLayout has in its own file.
//   Frameworks of different years write tables differently where that means nothing (StoreStructure+CoreData).
// - Only plain stores have column encodings (ColumnEncoding) and dates as text (DateText). Their introspection infers
//   types of attributes from content (ColumnContents), and reads all tables before it names classes and properties
//   (PlainTables).
// - In InstarChange, only Core Data renumbers entities, moves links and checks rows itself: SQLite enforces the
//   foreign keys and constraints of a plain store. Only Core Data has conventions, triggers and external values to
//   carry over (CoreDataLayout+Conventions, DerivedTriggers, ExternalChange). Only Plain rebuilds a table from its own
//   text (TableRebuild).

/// How a schema maps to the tables of a store, in the schema's format. `StoreFormat.layout(of:conventions:)` makes it.
package protocol StoreLayout: Sendable {
  var format: StoreFormat { get }

  /// The tables as models see them.
  var entityLayouts: [EntityLayout] { get }

  /// The structure of a store of this layout, as a probe reads it.
  var structure: StoreStructure { get }

  /// The statements that create the tables and indexes of an empty store.
  var createStatements: [String] { get }

  /// The indexes, each with the statement that creates it.
  var indexStatements: [(index: StoreStructure.Index, statement: String)] { get }

  /// The columns that need a value, by entity or table. No element is without columns.
  var requiredColumns: [RequiredColumns] { get }

  /// The statements that create the triggers of derived attributes.
  var triggerStatements: [String] { get }

  /// The statements that write the metadata of a new store, as far as its conventions depend on them.
  func metadataStatements() throws -> [String]

  /// The statements that give links of ordered relationships a position where they have none: the last one.
  var linkOrderStatements: [String] { get }

  /// Whether SQLite enforces relationships, so that rows must be written in order or with deferred foreign keys.
  var enforcesForeignKeys: Bool { get }

  /// Whether each row keeps its key for ever, because no property is a part of it.
  var hasPermanentKeys: Bool { get }

  /// Whether a change of schema moves the links of a to-one relationship that becomes to-many.
  var movesLinks: Bool { get }

  /// Whether a change of schema makes the column of an attribute with another type empty, so that converted values are
  /// written afterwards.
  var makesConvertedColumnsEmpty: Bool { get }

  /// The statements that create the tables of the history in a new store.
  var historyStatements: [String] { get }

  /// Whether a column may have collections as archives, as SwiftData writes them, and not as JSON.
  var mayHaveArchivedCollections: Bool { get }

  /// Whether a column without values gets collections as archives.
  var archivesNewCollections: Bool { get }

  /// The metadata of a new store; `nil` where the format has none.
  func metadata(newStoreFor schema: Schema) -> CoreDataMetadata?

  /// Writes the version into a store of this layout, with what else the format records after a change. Call it inside
  /// a transaction.
  ///
  /// - Parameters:
  ///   - source: Where the plan keeps the version of a plain store.
  ///   - metadata: The stamped metadata of a store whose format has some.
  func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata.Encoded?,
    _ db: Database
  ) throws

  /// Returns whether a store lists the entities of this layout by the numbers that its rows carry. A store without
  /// such a list does.
  func matchesEntityList(of db: Database) throws -> Bool

  /// Returns whether a store of this structure can be used with the schema. A store that was adopted may have more.
  func fits(_ structure: StoreStructure) -> Bool
}

/// The columns of one table in which every row must have a value.
package struct RequiredColumns: Sendable {
  /// The entity, or the table where no entity has these rows.
  package var owner: String
  /// As SQL.
  package var table: String
  /// The condition on the rows; `nil` for all rows of the table.
  package var rowCondition: String?
  /// The name of each column's property, or of the column where it has none, and the column as SQL.
  package var columns: [(name: String, column: String)]
}

extension StoreLayout {
  /// The columns in which a value may be the name of a file, each once.
  package var externalColumns: Set<TableColumn> {
    Set(
      entityLayouts.flatMap { entity in
        entity.attributes.filter(\.column.mayBeExternal).map {
          TableColumn(table: entity.table, column: $0.column.name)
        }
      })
  }

  /// The tables in which the format keeps a history of changes; empty where it keeps none.
  package var historyTables: [String] { format.historyTables }

  /// The statements that create an empty store as Instar creates it.
  package func emptyStoreStatements() throws -> [String] {
    try createStatements + triggerStatements + metadataStatements()
  }
}

extension Schema {
  /// Lays out the schema as an open store keeps it.
  ///
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property; the database's error.
  package func layout(in db: Database) throws -> any StoreLayout {
    try layout(conventions: format.conventions(of: db))
  }

  /// Lays out the schema.
  ///
  /// - Parameter conventions: What a store of the format `coredata` has that its schema does not decide.
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property.
  package func layout(
    conventions: CoreDataConventions = CoreDataConventions()
  ) throws(InstarError) -> any StoreLayout {
    try format.layout(of: self, conventions: conventions)
  }
}

extension CoreDataLayout: StoreLayout {
  package var format: StoreFormat { .coredata }
  package var enforcesForeignKeys: Bool { false }
  package var hasPermanentKeys: Bool { true }
  package var movesLinks: Bool { true }
  package var makesConvertedColumnsEmpty: Bool { true }
  package var mayHaveArchivedCollections: Bool { true }
  package var archivesNewCollections: Bool { !conventions.isMadeByInstar }
  package func metadataStatements() throws -> [String] {
    [try CoreDataMetadata.insertStatement(frameworkVersion: nil, isMadeByInstar: true)]
  }
  package func metadata(newStoreFor schema: Schema) -> CoreDataMetadata? {
    CoreDataMetadata(newStoreFor: schema)
  }
  package func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata.Encoded?,
    _ db: Database
  ) throws {
    try metadata?.write(db)
    // A key is never used twice: the highest key never falls, and is at least that of every row.
    for entity in entities where entity.superNumber == 0 {
      try db.execute(
        sql: """
          UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM \(entity.table))
          WHERE Z_ENT = ? AND coalesce(Z_MAX, 0) < (SELECT max(Z_PK) FROM \(entity.table))
          """, arguments: [entity.number])
    }
  }
  package func matchesEntityList(of db: Database) throws -> Bool {
    let expected = entities.map {
      CoreDataProbe.ListedEntity(number: $0.number, name: $0.name, superNumber: $0.superNumber)
    }
    let count = try db.integer("SELECT count(*) FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
    return try count == expected.count && CoreDataProbe.readEntityList(db) == expected
  }
  package func fits(_ structure: StoreStructure) -> Bool {
    StructureFit(of: structure, to: self.structure).lacksNothing
  }
  package var requiredColumns: [RequiredColumns] {
    entities.map { entity in
      RequiredColumns(
        owner: entity.name, table: entity.table,
        // Rows with the number of no entity do not match.
        rowCondition: "Z_ENT IN (\(entity.numbers.map(String.init).joined(separator: ", ")))",
        columns: entity.attributes.filter { !$0.attribute.isOptional }
          .map { ($0.attribute.name, $0.column.name) })
    }
    .filter { !$0.columns.isEmpty }
  }
  package var triggerStatements: [String] {
    DerivedAttribute.all(in: self).flatMap(\.triggerStatements)
  }
  package var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    indexes.map {
      (
        StoreStructure.Index(
          name: $0.name, table: $0.table, isUnique: $0.isUnique, columns: $0.columns),
        $0.createStatement
      )
    }
  }
}

extension PlainLayout: StoreLayout {
  package var format: StoreFormat { .plain }
  package var enforcesForeignKeys: Bool { true }
  package var hasPermanentKeys: Bool { false }
  package var movesLinks: Bool { false }
  package var makesConvertedColumnsEmpty: Bool { false }
  package var historyStatements: [String] { [] }
  package var mayHaveArchivedCollections: Bool { false }
  package var archivesNewCollections: Bool { false }
  package var triggerStatements: [String] { [] }
  package var linkOrderStatements: [String] { [] }
  package func metadataStatements() -> [String] { [] }
  package func metadata(newStoreFor schema: Schema) -> CoreDataMetadata? { nil }
  package func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata.Encoded?,
    _ db: Database
  ) throws {
    try PlainVersion.stamp(version, at: source, db)
  }
  package func matchesEntityList(of db: Database) throws -> Bool { true }
  package func fits(_ structure: StoreStructure) -> Bool {
    structure.described(asIn: self.structure, among: [self.structure]) == self.structure
  }
  package var requiredColumns: [RequiredColumns] {
    tables.map { table in
      RequiredColumns(
        owner: table.entity ?? table.name, table: SQLIdentifier.sql(table.name),
        columns: table.columns.filter(\.isRequired)
          .map { ($0.role.property ?? $0.name, SQLIdentifier.sql($0.name)) })
    }
    .filter { !$0.columns.isEmpty }
  }
  package var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    zip(structure.indexes, indexes).map { ($0, $1.createStatement) }
  }
}
