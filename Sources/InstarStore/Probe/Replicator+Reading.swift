internal import Glibc
package import GRDB
package import InstarSchema

extension Replicator {
  /// Finds the replicator of an open store; `nil` where there is no sign of one.
  ///
  /// A replicator that does not run now counts too: it goes on where it stopped.
  package init?(of store: String, _ db: Database) throws {
    self.init(of: store, tables: try Self.tables(db))
  }

  /// As `init(of:_:)`, for a store whose schema was read before.
  init?(of store: String, tables: [String]) {
    let folder = Self.folder(ofStore: store)
    let hasFolder = stat(of: folder)?.isFolder == true
    guard hasFolder || !tables.isEmpty else { return nil }
    self.init(name: .litestream, folder: hasFolder ? folder : nil, tables: tables)
  }

  /// Returns the tables that replicators keep in an open store.
  static func tables(_ db: Database) throws -> [String] {
    try knownTables.value(of: SchemaKey.read(db)) {
      try db.texts(
        """
        SELECT name FROM sqlite_master
        WHERE type = 'table' AND rootpage > 0 AND name GLOB '\(tablePrefix)*'
        ORDER BY name LIMIT 10
        """)
    }
  }

  private static let knownTables = SchemaCache<[String]>()
}
