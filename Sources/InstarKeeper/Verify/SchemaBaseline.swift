package import GRDB
package import InstarSchema
package import InstarStore

/// What a store was before the stages ran, as far as reading it does not depend on the number of rows.
package struct SchemaBaseline {
  package let structure: StoreStructure
  /// `nil` in a store without readable metadata.
  package let metadata: CoreDataMetadata?
  /// The schema that the clone has before the first stage.
  package internal(set) var schema: SchemaText
  /// The roots of all b-trees, see `SchemaKey.roots`; `nil` for a large schema.
  let roots: [UInt8]?
  /// See `StoreCheck`.
  let indexesStoredValues: Bool
  /// The statements that write the rows that a change of schema reads.
  let bookkeeping: [String]
  /// `nil` where the clone is not compared with the store.
  var pages: PageBaseline?
  let pageSize: Int
  let autoVacuum: Int

  package init(_ db: Database, format: StoreFormat) throws {
    structure = try StoreStructure.read(db, format: format)
    metadata = try format.metadata(db)
    schema = try SchemaText(db)
    roots = try SchemaKey.roots(db)
    indexesStoredValues = StoreCheck.indexesStoredValues(db)
    bookkeeping = try format.bookkeepingStatements(db)
    pageSize = try db.integer("PRAGMA page_size") ?? 0
    autoVacuum = try db.integer("PRAGMA auto_vacuum") ?? 0
  }
}
