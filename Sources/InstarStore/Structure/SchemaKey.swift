internal import CDatabase
package import GRDB
internal import Synchronization

/// The schema of a store as the key of a cache: the bytes of `sqlite_schema`, after the format of the file.
///
/// `PageReader` makes the same key from the pages.
package struct SchemaKey: Hashable, Sendable {
  private let bytes: [UInt8]
  /// A run looks the same schema up many times.
  private let hash: Int

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // The compiler makes no special code for `hashValue` of an array: it would hash byte by byte.
    var hasher = Hasher()
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    hash = hasher.finalize()
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// Larger schemas are not kept.
  static let limitBytes = 256 << 10

  /// Returns the key without the pages at which b-trees begin; `nil` for a large schema.
  ///
  /// - Throws: The database's error.
  package static func read(_ db: Database) throws -> SchemaKey? {
    try UnchangedSchema.rows(db)?.key
  }

  /// Returns the key with the pages at which b-trees begin; `nil` for a large schema.
  ///
  /// - Throws: The database's error.
  static func readWithPages(_ db: Database) throws -> SchemaKey? {
    try UnchangedSchema.rows(db).map { SchemaKey($0.key.bytes + $0.pages) }
  }

  /// Returns the pages at which b-trees begin, in the order of the rows of `sqlite_schema`, to be compared; `nil` for a
  /// large schema.
  ///
  /// - Throws: The database's error.
  package static func roots(_ db: Database) throws -> [UInt8]? {
    try UnchangedSchema.rows(db)?.pages
  }

  fileprivate struct Rows {
    let key: SchemaKey
    /// The pages at which b-trees begin.
    let pages: [UInt8]
  }

  fileprivate static func readRows(_ db: Database) throws -> Rows? {
    let rows = try StatementReader(
      keptBy: db, "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema ORDER BY rowid")
    var key = start(fileFormat: instar_file_format(db.sqliteConnection))
    var pages: [UInt8] = []
    while try rows.next() {
      for column in 0..<4 { rows.withValue(column) { append($0, to: &key) } }
      rows.withValue(4) { page in
        append(page, to: &pages)
        switch page {
        case .integer(let number): append(.integer(number > 0 ? 1 : 0), to: &key)
        default: append(page, to: &key)
        }
      }
      if key.count > limitBytes { return nil }
    }
    return Rows(key: SchemaKey(key), pages: pages)
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

/// A schema that nobody changes for some time, so that its key is read once. Each step of a run needs it.
package final class UnchangedSchema: Sendable {
  private struct Known {
    let rows: SchemaKey.Rows?
  }

  private let known = Mutex<Known?>(nil)

  private struct Use {
    let schema: UnchangedSchema
    let connection: ObjectIdentifier
  }

  @TaskLocal private static var current: Use?

  package init() {}

  /// Calls `body`, in which the connection sees this schema.
  ///
  /// - Precondition: Nobody changes the schema between the first use and the end of the last one.
  package func use<T>(_ db: Database, _ body: () throws -> T) rethrows -> T {
    let use = Use(schema: self, connection: ObjectIdentifier(db))
    return try Self.$current.withValue(use, operation: body)
  }

  fileprivate static func rows(_ db: Database) throws -> SchemaKey.Rows? {
    guard let use = current, use.connection == ObjectIdentifier(db) else {
      return try SchemaKey.readRows(db)
    }
    if let known = use.schema.known.withLock({ $0 }) { return known.rows }
    let rows = try SchemaKey.readRows(db)
    use.schema.known.withLock { $0 = Known(rows: rows) }
    return rows
  }
}
