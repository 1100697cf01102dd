package import GRDB
public import InstarSchema

// Folders of this module, each using only those before it:
//
//   Bytes       digests, DEFLATE, property lists and archives: bytes that know no store
//   SQLText     names, literals and statements as text
//   Structure   tables and indexes as read from a store
//   Mapping     how entities map to tables, in the terms of SQL: knows no format
//   Probe       a store's file, and guarded connections to it: knows no format
//   CoreData    Metadata, Values, Layout, Probe, ModelCache, Introspection
//   Plain       Version,  Values, Layout, Probe,             Introspection
//   Connection  sessions through which models are read and written, with the functions of both formats' Values
//
// Metadata is the counterpart of Version: where a store keeps its version. Files without a counterpart:
//
// - Only Core Data archives its model in the store (ModelCache), and has conventions, derived attributes, a history,
//   external values and archived collections.
// - Only plain stores have column encodings (ColumnEncoding). Their introspection infers types of attributes from
//   content (ColumnContents), and reads all tables before it names classes and properties (PlainTables).
// - In InstarEngine/Change, only Core Data renumbers entities, moves links and checks rows itself: SQLite enforces the
//   foreign keys and constraints of a plain store. Only Plain rebuilds a table from its own text (TableRebuild).

/// How a schema maps to the tables of a store, in the schema's format.
public enum StoreLayout: Sendable {
  case coreData(CoreDataLayout)
  case plain(PlainLayout)

  /// Lays out a schema.
  ///
  /// - Parameter conventions: What a store of the format `coredata` has that its schema does not decide.
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property.
  public init(
    schema: Schema, conventions: CoreDataConventions = CoreDataConventions()
  ) throws(InstarError) {
    self = try schema.format.layout(of: schema, conventions: conventions)
  }

  /// Lays out a schema as an open store keeps it.
  ///
  /// - Throws: As `init(schema:conventions:)`; the database's error.
  package init(schema: Schema, in db: Database) throws {
    try self.init(schema: schema, conventions: schema.format.conventions(of: db))
  }

  private var layout: any FormatLayout {
    switch self {
    case .coreData(let layout): layout
    case .plain(let layout): layout
    }
  }

  public var format: StoreFormat { layout.format }
  /// The tables as models see them.
  public var entityLayouts: [EntityLayout] { layout.entityLayouts }
  /// The structure of a store of this layout, as a probe reads it.
  public var structure: StoreStructure { layout.structure }
  /// The statements that create the tables and indexes of an empty store.
  public var createStatements: [String] { layout.createStatements }
  /// The indexes, each with the statement that creates it.
  public var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    layout.indexStatements
  }

  /// The columns in which a value may be the name of a file, each once.
  package var externalColumns: Set<TableColumn> {
    Set(
      entityLayouts.flatMap { entity in
        entity.attributes.filter(\.column.mayBeExternal).map {
          TableColumn(table: entity.table, column: $0.column.name)
        }
      })
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

  /// The columns that need a value, by entity or table.
  package var requiredColumns: [RequiredColumns] {
    layout.requiredColumns.filter { !$0.columns.isEmpty }
  }

  /// The statements that create an empty store as Instar creates it.
  package func emptyStoreStatements() throws -> [String] {
    try createStatements + triggerStatements + layout.metadataStatements()
  }

  /// The statements that create the triggers of derived attributes.
  package var triggerStatements: [String] { layout.triggerStatements }

  /// The statements that give links of ordered relationships a position where they have none: the last one.
  package var linkOrderStatements: [String] { layout.linkOrderStatements }

  /// Whether SQLite enforces relationships, so that rows must be written in order or with deferred foreign keys.
  package var enforcesForeignKeys: Bool { layout.enforcesForeignKeys }

  /// Whether each row keeps its key for ever, because no property is a part of it.
  package var hasPermanentKeys: Bool { layout.hasPermanentKeys }

  /// Whether a change of schema moves the links of a to-one relationship that becomes to-many.
  package var movesLinks: Bool { layout.movesLinks }

  /// Whether a store may have tables, columns and indexes that no version of its plan describes, and keeps them.
  package var allowsOtherTables: Bool { layout.allowsOtherTables }

  /// The tables in which the format keeps a history of changes.
  package var historyTables: [String] { layout.historyTables }

  /// The statements that create these tables in a new store.
  package var historyStatements: [String] {
    if case .coreData(let layout) = self { layout.historyStatements } else { [] }
  }

  /// The metadata of a new store; `nil` where the format has none.
  package func metadata(newStoreFor schema: Schema) -> CoreDataMetadata? {
    layout.metadata(newStoreFor: schema)
  }

  /// Writes the version into a store of this layout, with what else the format records after a change. Call it inside
  /// a transaction.
  ///
  /// - Parameters:
  ///   - source: Where the plan keeps the version of a plain store.
  ///   - metadata: The stamped metadata of a store whose format has some.
  package func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata?, _ db: Database
  ) throws {
    try layout.stamp(version, at: source, metadata: metadata, db)
  }

  /// Returns whether a store lists the entities of this layout by the numbers that its rows carry. A store without
  /// such a list does.
  package func matchesEntityList(of db: Database) throws -> Bool {
    try layout.matchesEntityList(of: db)
  }

  /// Returns whether a store of this structure can be used with the schema. A store that was adopted may have more.
  package func fits(_ structure: StoreStructure) -> Bool { layout.fits(structure) }
}

/// What a layout of either format offers; `StoreLayout` documents it.
private protocol FormatLayout {
  var format: StoreFormat { get }
  var entityLayouts: [EntityLayout] { get }
  var structure: StoreStructure { get }
  var createStatements: [String] { get }
  var indexStatements: [(index: StoreStructure.Index, statement: String)] { get }
  var requiredColumns: [StoreLayout.RequiredColumns] { get }
  var triggerStatements: [String] { get }
  /// The statements that write the metadata of a new store, as far as its conventions depend on them.
  func metadataStatements() throws -> [String]
  var linkOrderStatements: [String] { get }
  var enforcesForeignKeys: Bool { get }
  var hasPermanentKeys: Bool { get }
  var movesLinks: Bool { get }
  var allowsOtherTables: Bool { get }
  var historyTables: [String] { get }
  func metadata(newStoreFor schema: Schema) -> CoreDataMetadata?
  func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata?, _ db: Database
  ) throws
  func matchesEntityList(of db: Database) throws -> Bool
  func fits(_ structure: StoreStructure) -> Bool
}

extension CoreDataLayout: FormatLayout {
  fileprivate var format: StoreFormat { .coredata }
  fileprivate var enforcesForeignKeys: Bool { false }
  fileprivate var hasPermanentKeys: Bool { true }
  fileprivate var movesLinks: Bool { true }
  fileprivate var allowsOtherTables: Bool { false }
  fileprivate var historyTables: [String] { ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"] }
  fileprivate func metadataStatements() throws -> [String] {
    [try CoreDataMetadata.insertStatement(frameworkVersion: nil, isMadeByInstar: true)]
  }
  fileprivate func metadata(newStoreFor schema: Schema) -> CoreDataMetadata? {
    CoreDataMetadata(newStoreFor: schema)
  }
  fileprivate func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata?, _ db: Database
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
  fileprivate func matchesEntityList(of db: Database) throws -> Bool {
    let expected = entities.map {
      CoreDataProbe.ListedEntity(number: $0.number, name: $0.name, superNumber: $0.superNumber)
    }
    let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
    return try count == expected.count && CoreDataProbe.readEntityList(db) == expected
  }
  fileprivate func fits(_ structure: StoreStructure) -> Bool {
    StructureFit(of: structure, to: self.structure).lacksNothing
  }
  fileprivate var requiredColumns: [StoreLayout.RequiredColumns] {
    entities.map { entity in
      StoreLayout.RequiredColumns(
        owner: entity.name, table: entity.table, rowCondition: entity.rowCondition,
        columns: entity.attributes.filter { !$0.attribute.isOptional }
          .map { ($0.attribute.name, $0.column) })
    }
  }
  fileprivate var triggerStatements: [String] {
    DerivedAttribute.all(in: self).flatMap(\.triggerStatements)
  }
  fileprivate var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    indexes.map {
      (
        StoreStructure.Index(
          name: $0.name, table: $0.table, isUnique: $0.isUnique, columns: $0.columns),
        $0.createStatement
      )
    }
  }
}

extension PlainLayout: FormatLayout {
  fileprivate var format: StoreFormat { .plain }
  fileprivate var enforcesForeignKeys: Bool { true }
  fileprivate var hasPermanentKeys: Bool { false }
  fileprivate var movesLinks: Bool { false }
  fileprivate var allowsOtherTables: Bool { true }
  fileprivate var historyTables: [String] { [] }
  fileprivate var triggerStatements: [String] { [] }
  fileprivate var linkOrderStatements: [String] { [] }
  fileprivate func metadataStatements() -> [String] { [] }
  fileprivate func metadata(newStoreFor schema: Schema) -> CoreDataMetadata? { nil }
  fileprivate func stamp(
    _ version: Schema.Version, at source: VersionSource, metadata: CoreDataMetadata?, _ db: Database
  ) throws {
    try PlainVersion.stamp(version, at: source, db)
  }
  fileprivate func matchesEntityList(of db: Database) throws -> Bool { true }
  fileprivate func fits(_ structure: StoreStructure) -> Bool {
    structure.described(asIn: self.structure, among: [self.structure]) == self.structure
  }
  fileprivate var requiredColumns: [StoreLayout.RequiredColumns] {
    tables.map { table in
      StoreLayout.RequiredColumns(
        owner: table.entity ?? table.name, table: SQLIdentifier.sql(table.name),
        columns: table.columns.filter(\.isRequired)
          .map { ($0.role.property ?? $0.name, SQLIdentifier.sql($0.name)) })
    }
  }
  fileprivate var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    zip(structure.indexes, indexes).map { ($0, $1.createStatement) }
  }
}
