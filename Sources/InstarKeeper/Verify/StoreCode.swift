package import GRDB

/// What of a store is run by whoever uses it: its triggers, views and virtual tables.
///
/// A schema speaks of none of them, so none may come with a clone that the store did not have: a
/// plugin's trigger would go on working in the app.
package struct StoreCode {
  private let objects: Set<Object>

  private struct Object: Hashable {
    var name: String
    var sql: String
  }

  /// Everything that is neither a table nor an index by its statement. What the list calls it does
  /// not count: SQLite itself goes by the statement, and a worker can write the list.
  package init(_ db: Database) throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, CAST(sql AS TEXT) FROM sqlite_master
        WHERE sql IS NOT NULL AND sql NOT GLOB 'CREATE TABLE *' AND sql NOT GLOB 'CREATE INDEX *'
          AND sql NOT GLOB 'CREATE UNIQUE INDEX *'
        """)
    objects = Set(
      rows.map { row in
        let columns = Array(row.databaseValues)
        return Object(
          name: String.fromDatabaseValue(columns[0]) ?? "",
          sql: String.fromDatabaseValue(columns[1]) ?? "")
      })
  }

  /// The name of what is new or changed since; `nil` where nothing is. What is gone is none.
  func addition(to earlier: StoreCode) -> String? {
    objects.subtracting(earlier.objects).map(\.name).min()
  }
}
