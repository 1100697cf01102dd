internal import GRDB
internal import InstarSchema

/// The part of a probe that depends on the store's format.
protocol FormatProbe: Sendable {
  var identity: StoreIdentity { get }

  /// Counts the rows of each entity of `identity.entityNames`.
  ///
  /// - Parameter found: Called with the position of an entity and its count. Entities of damaged tables are left out.
  func countRows(_ db: Database, found: (Int, Int) -> Void) throws

  /// Reads the statements that create an empty store like this one; those that are too long are left out.
  func ddl(_ db: Database, limitBytes: Int) throws -> [String]

  /// Reads what a schema is made from.
  ///
  /// - Parameter path: The path of the store.
  /// - Returns: A closure that makes the schema. It does not need the store, so its time is not limited.
  func introspect(_ db: Database, path: String) throws -> () -> StoreIntrospection
}

extension FormatProbe {
  /// The version of an imported schema.
  var schemaVersion: Schema.Version { identity.version ?? Schema.Version(1, 0, 0) }

  /// The tables that rows can be counted in. A virtual table has no columns in a structure.
  var tablesWithColumns: Set<String> {
    Set(identity.structure.tables.lazy.filter { !$0.columns.isEmpty }.map(\.name))
  }

  /// Returns the number of rows, or `nil` where the table cannot be read.
  static func countRows(_ db: Database, of table: String) throws -> Int? {
    try whereReadable {
      try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.quotedDatabaseIdentifier)")
    }
  }

  /// Returns `nil` where the table is damaged: the rest of the store can still be reported.
  static func whereReadable<T>(_ body: () throws -> T?) throws -> T? {
    do {
      return try body()
    } catch let error as DatabaseError
      where [.SQLITE_CORRUPT, .SQLITE_ERROR, .SQLITE_TOOBIG, .SQLITE_NOMEM]
      .contains(error.resultCode)
    {
      return nil
    }
  }
}
