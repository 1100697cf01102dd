package import GRDB
package import InstarSchema
package import InstarStore

/// What a store was before the stages ran: what is kept of it, and what its clone is verified against.
package struct StoreBaseline {
  package let structure: StoreStructure
  /// `nil` in a store that has none which can be read.
  package let metadata: CoreDataMetadata?
  let census: StoreCensus
  let code: SchemaCode
  /// The files with large values that its rows refer to.
  let externalFiles: Set<String>
  let pageSize: Int
  let autoVacuum: Int

  /// - Parameter layout: Of the version that the store is at.
  package init(_ db: Database, layout: StoreLayout) throws {
    structure = try StoreStructure.read(db, format: layout.format)
    metadata = layout.format == .coredata ? try CoreDataMetadata.readIfSound(db) : nil
    census = try StoreCensus(db, layout: layout)
    code = try SchemaCode(db)
    externalFiles = try ExternalFiles.references(db, layout)
    pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    autoVacuum = try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") ?? 0
  }
}
