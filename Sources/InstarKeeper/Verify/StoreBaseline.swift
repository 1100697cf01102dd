package import GRDB
package import InstarSchema
package import InstarStore

/// Counts and structure of a store before the stages ran, which its clone is verified against.
package struct StoreBaseline {
  package let structure: StoreStructure
  /// `nil` in a store without readable metadata.
  package let metadata: CoreDataMetadata?
  let census: StoreCensus
  let schema: SchemaText
  /// The statements that write the rows that a change of schema reads.
  let bookkeeping: [String]
  /// The external values that its rows reference.
  let externalFiles: Set<String>
  let pageSize: Int
  let autoVacuum: Int

  /// - Parameter layout: The layout of the store's version.
  package init(_ db: Database, layout: any StoreLayout) throws {
    structure = try StoreStructure.read(db, format: layout.format)
    metadata = try layout.format.metadata(db)
    census = try StoreCensus(db, layout: layout)
    schema = try SchemaText(db)
    bookkeeping = try layout.format.bookkeepingStatements(db)
    externalFiles = try ExternalFiles.references(db, layout)
    pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    autoVacuum = try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") ?? 0
  }
}
