import GRDB
import InstarSchema

/// The ordinary tables of a plain store, with what SQLite tells of each.
///
/// Read by a few statements, whatever the number of tables: one for each table would take longer than the tables are worth.
struct PlainTables {
  /// In the order in which they were made.
  private(set) var all: [Table] = []
  /// By the name in lower case.
  private var positions: [String: Int] = [:]

  struct Table {
    var name: String
    var isWithoutRowID: Bool
    var isStrict: Bool
    var text: CreateTableText?
    var columns: [Column] = []
    var foreignKeys: [ForeignKey] = []
    var indexes: [Index] = []
    /// The class that its rows become; `nil` for a table of links.
    var entity: String?

    /// In the order of the key.
    var keyColumns: [Column] {
      columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
    }

    /// The two columns of a table of links: its primary key, or, as Prisma and Tortoise write such tables, two required
    /// columns that are unique together. Empty for every other table.
    var linkColumns: [Column] {
      if columns.count != 2 { return [] }
      let key = keyColumns
      if key.count == 2 { return key }
      let isLinked = indexes.contains { index in
        index.isUnique && index.isPlain && index.columns.count == 2
      }
      return key.isEmpty && isLinked && columns.allSatisfy(\.isRequired) ? columns : []
    }

    func column(_ name: String) -> Column? {
      columns.first { $0.name.lowercased() == name.lowercased() }
    }
  }

  struct Column {
    var name: String
    var type: String
    var isRequired: Bool
    var defaultValue: String?
    /// From 1; 0 for a column that is not of the primary key.
    var keyPosition: Int
    var isGenerated: Bool
    var isStored: Bool
    /// As it stands in `CREATE TABLE`.
    var definition: CreateTableText.Item?
  }

  struct ForeignKey {
    var table: String
    /// Those of this table, each with the one it refers to; an empty name stands for the other's primary key.
    var columns: [(own: String, other: String)]
    var onUpdate: String
    var onDelete: String
  }

  struct Index {
    var name: String
    /// What it covers; `nil` for an expression.
    var columns: [String?] = []
    var isUnique: Bool
    /// Whether it covers all rows, smaller values first.
    var isPlain = true
    /// Its statement; `nil` for that of a constraint.
    var text: CreateIndexText?
  }

  /// Where migration tools and platforms keep what is theirs.
  private static let toolTables: Set<String> = [
    "__diesel_schema_migrations", "__efmigrationshistory", "__efmigrationslock",
    "_prisma_migrations", "_sqlx_migrations", "aerich", "alembic_version", "android_metadata",
    "databasechangelog", "databasechangeloglock", "django_migrations", "flyway_schema_history",
    "goose_db_version", "grdb_migrations", "knex_migrations", "knex_migrations_lock",
    "refinery_schema_history", "room_master_table", "schema_migrations", "typeorm_metadata",
  ]

  init(_ db: Database) throws {
    try readTables(db)
    try readColumns(db)
    try readForeignKeys(db)
    try readIndexes(db)
  }

  /// The table of that name, in any case; `nil` where there is none.
  subscript(_ name: String) -> Table? {
    positions[name.lowercased()].map { all[$0] }
  }

  mutating func name(_ entity: String, forTableAt position: Int) {
    all[position].entity = entity
  }

  // MARK: Reading

  private mutating func readTables(_ db: Database) throws {
    var options: [String: (isWithoutRowID: Bool, isStrict: Bool)] = [:]
    // Of all at once: asked for one, SQLite goes through all of them.
    for row in try Row.fetchAll(
      db,
      sql: """
        SELECT name, wr, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        """)
    {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let name = String.fromDatabaseValue(values[0]) else { continue }
      options[name] = (
        Bool.fromDatabaseValue(values[1]) ?? false, Bool.fromDatabaseValue(values[2]) ?? false
      )
    }
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, sql FROM sqlite_schema
        WHERE type = 'table' AND rootpage > 0 AND name NOT GLOB 'sqlite_*' ORDER BY rowid
        """)
    for row in rows {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let name = String.fromDatabaseValue(values[0]), let options = options[name],
        !Self.toolTables.contains(name.lowercased())
      else { continue }
      positions[name.lowercased()] = all.count
      all.append(
        Table(
          name: name, isWithoutRowID: options.isWithoutRowID, isStrict: options.isStrict,
          text: String.fromDatabaseValue(values[1]).flatMap { CreateTableText($0) }))
    }
  }

  /// The tables that are asked for more.
  private static let ordinaryTables =
    "sqlite_schema AS m WHERE m.type = 'table' AND m.rootpage > 0 AND m.name NOT GLOB 'sqlite_*'"

  /// The rows of a pragma for each table, the table's name first.
  private func rows(
    _ db: Database, _ pragma: String, _ columns: String, order: String
  ) throws -> RowCursor {
    try Row.fetchCursor(
      db,
      sql: """
        SELECT m.name, \(columns)
        FROM (SELECT name FROM \(Self.ordinaryTables)) AS m JOIN \(pragma)(m.name) AS p
        ORDER BY m.name, \(order)
        """)
  }

  private mutating func readColumns(_ db: Database) throws {
    var definitions: [String: CreateTableText.Item] = [:]
    var last: Int?
    let rows = try rows(
      db, "pragma_table_xinfo", "p.name, p.type, p.\"notnull\", p.dflt_value, p.pk, p.hidden",
      order: "p.cid")
    while let row = try rows.next() {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let position = position(values[0]), let name = String.fromDatabaseValue(values[1])
      else { continue }
      if last != position {
        last = position
        definitions = Dictionary(
          (all[position].text?.items ?? []).compactMap { item in
            item.column.map { ($0.lowercased(), item) }
          }, uniquingKeysWith: { first, _ in first })
      }
      let hidden = Int.fromDatabaseValue(values[6]) ?? 0
      all[position].columns.append(
        Column(
          name: name, type: String.fromDatabaseValue(values[2]) ?? "",
          isRequired: Bool.fromDatabaseValue(values[3]) ?? false,
          defaultValue: String.fromDatabaseValue(values[4]),
          keyPosition: Int.fromDatabaseValue(values[5]) ?? 0, isGenerated: hidden >= 2,
          isStored: hidden == 3, definition: definitions[name.lowercased()]))
    }
  }

  private mutating func readForeignKeys(_ db: Database) throws {
    let rows = try rows(
      db, "pragma_foreign_key_list",
      "p.id, p.\"table\", p.\"from\", p.\"to\", p.on_update, p.on_delete",
      order: "p.id DESC, p.seq")
    var last: (table: Int, id: Int?)?
    while let row = try rows.next() {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let position = position(values[0]) else { continue }
      let text = values.map { String.fromDatabaseValue($0) ?? "" }
      let id = Int.fromDatabaseValue(values[1])
      if last?.table != position || last?.id != id {
        all[position].foreignKeys.append(
          ForeignKey(table: text[2], columns: [], onUpdate: text[5], onDelete: text[6]))
        last = (position, id)
      }
      let key = all[position].foreignKeys.count - 1
      all[position].foreignKeys[key].columns.append((own: text[3], other: text[4]))
    }
  }

  private mutating func readIndexes(_ db: Database) throws {
    var statements: [String: String] = [:]
    for row in try Row.fetchAll(
      db, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    {
      let values: [DatabaseValue] = Array(row.databaseValues)
      if let name = String.fromDatabaseValue(values[0]) {
        statements[name] = String.fromDatabaseValue(values[1])
      }
    }
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT m.name, p.name, p."unique", p.partial, x.name, x."desc", x.coll
        FROM (SELECT name FROM \(Self.ordinaryTables)) AS m
        JOIN pragma_index_list(m.name) AS p JOIN pragma_index_xinfo(p.name) AS x
        WHERE p.origin IN ('c', 'u') AND x.key = 1 ORDER BY m.name, p.seq DESC, x.seqno
        """)
    while let row = try rows.next() {
      let values: [DatabaseValue] = Array(row.databaseValues)
      guard let position = position(values[0]), let name = String.fromDatabaseValue(values[1])
      else { continue }
      if all[position].indexes.last?.name != name {
        all[position].indexes.append(
          Index(
            name: name, isUnique: Bool.fromDatabaseValue(values[2]) ?? false,
            isPlain: Int.fromDatabaseValue(values[3]) == 0,
            text: statements[name].flatMap { CreateIndexText($0) }))
      }
      let index = all[position].indexes.count - 1
      let column = String.fromDatabaseValue(values[4])
      all[position].indexes[index].columns.append(column)
      if column == nil || Int.fromDatabaseValue(values[5]) != 0 {
        all[position].indexes[index].isPlain = false
      }
    }
  }

  private func position(_ name: DatabaseValue) -> Int? {
    String.fromDatabaseValue(name).flatMap { positions[$0.lowercased()] }
  }
}
