package import GRDB

/// A search index of the app: a full-text table (FTS4 or FTS5 with `content=`) whose rows are in another table or view.
///
/// SQLite does not keep it equal to these rows. The app's triggers do, or its code.
package struct SearchIndex: Sendable {
  package enum Module: String, Sendable {
    case fts4, fts5
  }

  package let name: String
  package let module: Module
  /// All names and text literals of its statement, in lower case: among them are those of its table and its columns.
  package let words: Set<String>

  /// The search indexes of a store.
  ///
  /// Reads the text of the schema only: an index may need a tokenizer that only the app has.
  package static func all(_ db: Database) throws -> [SearchIndex] {
    try known.value(of: SchemaKey.read(db)) { try readAll(db) }
  }

  private static let known = SchemaCache<[SearchIndex]>()

  private static func readAll(_ db: Database) throws -> [SearchIndex] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, sql FROM sqlite_master
        WHERE type = 'table' AND rootpage = 0 AND sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY name
        """)
    return try rows.compactMap { row in
      guard let name: String = row.get(0), let sql: String = row.get(1) else { return nil }
      let tokens = SQLToken.tokens(of: sql).filter { $0.kind != .space }
      guard let using = tokens.firstIndex(where: { $0.text.uppercased() == "USING" }),
        tokens.indices.contains(using + 1),
        let module = Module(rawValue: tokens[using + 1].name.lowercased()),
        // The module keeps the rows itself in this table, unless the statement names another.
        try Row.fetchOne(
          db, sql: "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE",
          arguments: ["\(name)_content"]) == nil
      else { return nil }
      return SearchIndex(
        name: name, module: module,
        words: Set(tokens[(using + 2)...].map { $0.name.lowercased() }.filter { !$0.isEmpty }))
    }
  }

  /// The tables in which the module keeps the index. How many rows they have is not known.
  package var ownTables: [String] {
    let suffixes =
      switch module {
      case .fts4: ["segments", "segdir", "docsize", "stat"]
      case .fts5: ["data", "idx", "docsize", "config"]
      }
    return suffixes.map { "\(name)_\($0)" }
  }
}
