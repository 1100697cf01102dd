internal import CDigest
package import GRDB

/// XXH3-128 of all rows of a store: equal for two stores with the same rows, whatever their pages, triggers and views
/// are. Tells the content of a restored backup from the content that it replaced, also after an app's VACUUM.
package enum ContentDigest {
  /// Returns the digest of the tables in the order of their names, each row in the order of its b-tree.
  ///
  /// - Throws: The database's error, as for a damaged store.
  package static func ofRows(_ db: Database) throws -> String {
    let tables = try String.fetchAll(
      db,
      sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name")
    return try digest { state in
      for table in tables {
        add(Array(table.utf8), to: state)
        try add(StatementReader(db, "SELECT * FROM \(SQLIdentifier.sql(table))"), to: state)
      }
    }
  }

  /// Returns the digest of the rows of one query, in its order.
  ///
  /// - Throws: The database's error.
  package static func ofRows(_ db: Database, query: String) throws -> String {
    try digest { state in try add(StatementReader(db, query), to: state) }
  }

  /// Returns the digest of what `addRows` adds to a state.
  static func digest(_ addRows: (OpaquePointer?) throws -> Void) rethrows -> String {
    let state = XXH3_createState()
    defer { XXH3_freeState(state) }
    XXH3_128bits_reset(state)
    try addRows(state)
    let digest = XXH3_128bits_digest(state)
    return "\(digest.high64)-\(digest.low64)"
  }

  private static func add(_ rows: StatementReader, to state: OpaquePointer?) throws {
    while try rows.next() { addRow(of: rows, to: state) }
  }

  /// Adds the current row.
  static func addRow(of rows: StatementReader, to state: OpaquePointer?) {
    for column in 0..<rows.columnCount { rows.withValue(column) { add($0, to: state) } }
  }

  private static func add(_ value: RowValue, to state: OpaquePointer?) {
    switch value {
    case .null: add(kind: 0, to: state)
    case .integer(let number): add(kind: 1, UInt64(bitPattern: number), to: state)
    case .real(let number): add(kind: 2, number.bitPattern, to: state)
    case .text(let bytes): add(kind: 3, bytes, to: state)
    case .blob(let bytes): add(kind: 4, bytes, to: state)
    }
  }

  private static func add(_ name: [UInt8], to state: OpaquePointer?) {
    name.withUnsafeBytes { add(kind: 5, $0, to: state) }
  }

  /// The length comes first, so that no two lists of values have the same bytes.
  private static func add(kind: UInt64, _ bytes: UnsafeRawBufferPointer, to state: OpaquePointer?) {
    add(kind: kind, UInt64(bytes.count), to: state)
    if let start = bytes.baseAddress { XXH3_128bits_update(state, start, bytes.count) }
  }

  private static func add(kind: UInt64, _ bits: UInt64 = 0, to state: OpaquePointer?) {
    withUnsafeBytes(of: (kind, bits)) { part in
      _ = XXH3_128bits_update(state, part.baseAddress, part.count)
    }
  }
}
