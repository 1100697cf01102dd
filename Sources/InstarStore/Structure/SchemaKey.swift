internal import CDatabase
package import GRDB

/// The schema of a store as the key of a cache.
package enum SchemaKey {
  /// Larger schemas are not kept.
  static let limitBytes = 256 << 10

  /// Returns the bytes of `sqlite_schema`, after the format of the file; `nil` for a large schema.
  ///
  /// `PageReader` makes the same key from the pages.
  ///
  /// - Parameter hasPages: Whether the key has the pages at which b-trees begin.
  /// - Throws: The database's error.
  package static func bytes(_ db: Database, hasPages: Bool = false) throws -> [UInt8]? {
    let rows = try StatementReader(
      keptBy: db, "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema ORDER BY rowid")
    var key = start(fileFormat: instar_file_format(db.sqliteConnection))
    while try rows.next() {
      for column in 0..<4 { rows.withValue(column) { append($0, to: &key) } }
      rows.withValue(4) { page in
        switch page {
        case .integer(let number) where !hasPages:
          append(.integer(number > 0 ? 1 : 0), to: &key)
        default: append(page, to: &key)
        }
      }
      if key.count > limitBytes { return nil }
    }
    return key
  }

  /// Files of a format below 4 ignore DESC in an index, so equal schemas of two files may mean different indexes.
  static func start(fileFormat: Int32) -> [UInt8] { [UInt8(truncatingIfNeeded: fileFormat)] }

  /// With its kind and size, so that no two lists of values have the same bytes.
  private static func append(_ value: RowValue, to key: inout [UInt8]) {
    switch value {
    case .null: key.append(0)
    case .integer(let number): append(number, kind: 1, to: &key)
    case .real(let number): append(Int64(bitPattern: number.bitPattern), kind: 2, to: &key)
    case .text(let bytes):
      append(Int64(bytes.count), kind: 3, to: &key)
      key += bytes
    case .blob(let bytes):
      append(Int64(bytes.count), kind: 4, to: &key)
      key += bytes
    }
  }

  private static func append(_ number: Int64, kind: UInt8, to key: inout [UInt8]) {
    key.append(kind)
    withUnsafeBytes(of: number) { key += $0 }
  }
}
