package import GRDB

/// The schema of a store as SQLite keeps it: the rows of `sqlite_schema`, byte for byte.
///
/// Collations, defaults, checks, generated expressions, conflict clauses, foreign keys, triggers and views are nowhere
/// else, and a structure describes none of them.
package struct SchemaText: Sendable {
  package struct Object: Sendable {
    package let type: String
    package let name: String
    /// The table that it belongs to; its own name for a table.
    package let table: String
    /// `nil` for the index of a constraint.
    package let sql: String?
    package let tree: Tree
  }

  /// What a b-tree of the file holds for an object.
  package enum Tree: UInt8, Sendable {
    /// Nothing, as for views, triggers and virtual tables.
    case none
    /// Rows by their rowid.
    case rows
    /// Keys, as for an index and for a table without rowid.
    case keys
  }

  /// In the order in which SQLite reads them.
  package let objects: [Object]
  /// How the store encodes text, as `PRAGMA encoding` names it.
  package let encoding: String
  /// Equal for equal schemas; `nil` for a large one.
  package let key: Key?

  package struct Key: Hashable, Sendable {
    let encoding: String
    let schema: SchemaKey
  }

  /// - Throws: The database's error; `unsupported` for a schema that is too large. Nothing is written.
  package init(_ db: Database) throws {
    let encoding = try db.text("PRAGMA encoding") ?? ""
    let key = try SchemaKey.read(db).map { Key(encoding: encoding, schema: $0) }
    self = try Self.known.value(of: key) { try SchemaText(db, encoding: encoding, key) }
  }

  private static let known = BoundedCache<Key, SchemaText>()

  private init(_ db: Database, encoding: String, _ key: Key?) throws {
    self.encoding = encoding
    self.key = key
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(sql AS TEXT),
          rootpage > 0
        FROM sqlite_master ORDER BY rowid
        """)
    let withoutRowID = try Self.tablesWithoutRowID(db)
    var objects: [Object] = []
    while let row = try rows.next() {
      let (type, name): (String, String) = (row.get(0) ?? "", row.get(1) ?? "")
      let hasTree = row.get(4) ?? false
      let hasRows = type == "table" && !withoutRowID.contains(name)
      objects.append(
        Object(
          type: type, name: name, table: row.get(2) ?? "", sql: row.get(3),
          tree: hasTree ? (hasRows ? .rows : .keys) : .none))
    }
    self.objects = objects
  }

  /// A table without rowid is stored in the index of its primary key, which has no row in `sqlite_schema`.
  private static func tablesWithoutRowID(_ db: Database) throws -> Set<String> {
    let indexes = Set(
      try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'index'"))
    let keys = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, l.name FROM sqlite_master AS m JOIN pragma_index_list(m.name) AS l
        WHERE m.type = 'table' AND m.rootpage > 0 AND l.origin = 'pk'
        """)
    return Set(
      keys.compactMap { row in
        guard let index: String = row.get(1), !indexes.contains(index) else { return nil }
        return row.get(0)
      })
  }

  /// Compares two schemas byte by byte. The order of the objects does not count.
  ///
  /// - Returns: One sentence for each object that differs; empty where the schemas are equal.
  package func differences(from expected: SchemaText) -> [String] {
    guard encoding == expected.encoding else {
      return ["the text encoding is \(encoding), expected \(expected.encoding)"]
    }
    let (found, wanted) = (byName, expected.byName)
    var differences: [String] = []
    for (key, objects) in wanted {
      guard let mine = found[key] else {
        differences += objects.map { "\($0.type) '\($0.name)' is missing" }
        continue
      }
      let pairs = zip(mine, objects).filter { !$0.hasText(of: $1) }
      differences += pairs.map { $0.difference(from: $1) }
      if mine.count != objects.count, let object = mine.first {
        differences.append("\(object.type) '\(object.name)' is listed \(mine.count) times")
      }
    }
    for (key, objects) in found where wanted[key] == nil {
      differences += objects.map { "\($0.type) '\($0.name)' is new" }
    }
    return differences.sorted()
  }

  /// Keys are bytes: strings that Unicode treats as equal differ for SQLite.
  private var byName: [[UInt8]: [Object]] {
    Dictionary(grouping: objects) { Array("\($0.type)\0\($0.name)".utf8) }
  }
}

extension SchemaText.Object {
  fileprivate func hasText(of other: SchemaText.Object) -> Bool {
    table.utf8.elementsEqual(other.table.utf8)
      && (sql == nil) == (other.sql == nil)
      && (sql ?? "").utf8.elementsEqual((other.sql ?? "").utf8)
      && tree == other.tree
  }

  fileprivate func difference(from expected: SchemaText.Object) -> String {
    let subject = "\(type) '\(name)'"
    guard table.utf8.elementsEqual(expected.table.utf8) else {
      return "\(subject) belongs to table '\(table)', expected '\(expected.table)'"
    }
    guard let sql, let wanted = expected.sql, tree == expected.tree else {
      return "\(subject) is stored in another way than expected"
    }
    let start = zip(sql.utf8, wanted.utf8).prefix { $0 == $1 }.count
    return "\(subject) has '\(Self.excerpt(sql, at: start))', "
      + "expected '\(Self.excerpt(wanted, at: start))'"
  }

  /// Enough of a text to recognize the place.
  private static func excerpt(_ text: String, at position: Int) -> String {
    let (before, after) = (24, 56)
    let bytes = text.utf8.dropFirst(max(0, position - before)).prefix(before + after)
    return (position > before ? "…" : "") + String(decoding: bytes, as: UTF8.self)
      + (position + after < text.utf8.count ? "…" : "")
  }
}
