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
// Metadata is the counterpart of Version: where a store keeps its version. A plain store has no ModelCache, because
// only Core Data archives its model in the store.

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
    try self.init(
      schema: schema,
      conventions: schema.format == .coredata
        ? CoreDataConventions(of: db) : CoreDataConventions())
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

  /// A column, as it stands in SQL.
  package struct TableColumn: Sendable, Hashable {
    package var table: String
    package var column: String
  }

  /// The statements that create the triggers of derived attributes.
  package var triggerStatements: [String] { layout.triggerStatements }

  /// Whether SQLite enforces relationships, so that rows must be written in order or with deferred foreign keys.
  package var enforcesForeignKeys: Bool { layout.enforcesForeignKeys }

  /// The tables in which the format keeps a history of changes.
  package var historyTables: [String] { layout.historyTables }

  /// The part of a structure that the schema describes: of a plain store, what its models name; else everything.
  ///
  /// - Parameter others: The structures of the plan's other versions.
  package func described(
    _ structure: StoreStructure, among others: [StoreStructure] = []
  ) -> StoreStructure {
    layout.described(structure, among: others)
  }

  /// Whether a store of this structure can be used with the schema. A store that was adopted may have more.
  package func fits(_ structure: StoreStructure) -> Bool {
    layout.fits(structure)
  }
}

/// What a layout of either format offers.
private protocol FormatLayout {
  var format: StoreFormat { get }
  var entityLayouts: [EntityLayout] { get }
  var structure: StoreStructure { get }
  var createStatements: [String] { get }
  var indexStatements: [(index: StoreStructure.Index, statement: String)] { get }
  var triggerStatements: [String] { get }
  var enforcesForeignKeys: Bool { get }
  var historyTables: [String] { get }
  func described(_ structure: StoreStructure, among others: [StoreStructure]) -> StoreStructure
  func fits(_ structure: StoreStructure) -> Bool
}

extension CoreDataLayout: FormatLayout {
  fileprivate var format: StoreFormat { .coredata }
  fileprivate var enforcesForeignKeys: Bool { false }
  fileprivate var historyTables: [String] { ["ACHANGE", "ATRANSACTION", "ATRANSACTIONSTRING"] }
  fileprivate func described(
    _ structure: StoreStructure, among others: [StoreStructure]
  ) -> StoreStructure { structure }
  fileprivate func fits(_ structure: StoreStructure) -> Bool {
    StructureFit(of: structure, to: self.structure).lacksNothing
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
  fileprivate var historyTables: [String] { [] }
  fileprivate var triggerStatements: [String] { [] }
  fileprivate func described(
    _ structure: StoreStructure, among others: [StoreStructure]
  ) -> StoreStructure {
    structure.described(asIn: self.structure, among: others + [self.structure])
  }
  fileprivate func fits(_ structure: StoreStructure) -> Bool {
    described(structure, among: []) == self.structure
  }
  fileprivate var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    zip(structure.indexes, indexes).map { ($0, $1.createStatement) }
  }
}
