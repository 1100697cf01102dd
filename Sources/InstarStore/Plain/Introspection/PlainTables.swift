import GRDB
import InstarSchema

/// The tables of a plain store as SQLite reports them, with sample values where types do not show enough.
///
/// Everything that is needed from the store is read here, in few statements, because reading has a time limit. Making
/// models of it needs no store.
struct PlainTables {
  /// In the order in which they were created.
  private(set) var all: [Table] = []
  /// By lower-case name.
  private var positions: [String: Int] = [:]
  /// The names of other objects by kind, at most eleven of each.
  private(set) var others: [(kind: String, names: [String])] = []

  struct Table {
    var name: String
    var isWithoutRowID: Bool
    var isStrict: Bool
    /// The table's `CREATE TABLE` statement.
    var sql: String?
    /// Whether the statement may show more than pragmas do: collations and `AUTOINCREMENT`.
    var saysMore: Bool
    var columns: [Column] = []
    var foreignKeys: [ForeignKey] = []
    var indexes: [Index] = []
    /// The class of its rows; `nil` for a join table.
    var entity: String?

    /// In the order of the key.
    var keyColumns: [Column] {
      columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
    }

    /// The two columns of a join table: its primary key, or two required columns that are unique together, as Prisma
    /// and Tortoise write it. Empty for every other table.
    var linkColumns: [Column] {
      if columns.count != 2 { return [] }
      let key = keyColumns
      if key.count == 2 { return key }
      let isLinked = indexes.contains { index in
        index.isUnique && index.isPlain && index.columns.count == 2
      }
      return key.isEmpty && isLinked && columns.allSatisfy(\.isRequired) ? columns : []
    }

    /// The definitions of its columns, by lower-case name.
    fileprivate var definitions: [String: CreateTableText.Item] {
      Dictionary(
        firstOf: (sql.flatMap { CreateTableText($0) }?.items ?? []).compactMap { item in
          item.column.map { ($0.lowercased(), item) }
        })
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
    /// From 1; 0 for a column outside the primary key.
    var keyPosition: Int
    var isGenerated: Bool
    var isStored: Bool
    var holds: ColumnContents
    /// The first value found near the beginning of the table, where `holds` needs one.
    var sample: DatabaseValue?
    /// The definition in `CREATE TABLE`, where it shows more than pragmas do.
    var definition: CreateTableText.Item?
  }

  struct ForeignKey {
    var table: String
    /// The columns of this table, each with the referenced one. An empty name stands for the other table's primary key.
    var columns: [(own: String, other: String)]
    var onUpdate: String
    var onDelete: String
  }

  struct Index {
    var name: String
    /// The covered columns; `nil` for an expression.
    var columns: [String?] = []
    var isUnique: Bool
    /// Whether it covers all rows, in ascending order.
    var isPlain = true
    /// Its `CREATE INDEX` statement; `nil` for a constraint's index.
    var text: CreateIndexText?
  }

  /// The tables of migration tools and platforms.
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
    for position in all.indices { try readSamples(db, ofTableAt: position) }
    try readOthers(db)
  }

  /// The most columns that are read. Models with more do not compile in reasonable time.
  private static let columnLimit = 200_000

  /// Returns the table of that name, in any case; `nil` where there is none.
  subscript(_ name: String) -> Table? {
    positions[name.lowercased()].map { all[$0] }
  }

  mutating func name(_ entity: String, forTableAt position: Int) {
    all[position].entity = entity
  }

  // MARK: Reading

  private mutating func readTables(_ db: Database) throws {
    var options: [String: (isWithoutRowID: Bool, isStrict: Bool)] = [:]
    // All at once: SQLite lists all tables even when asked for one.
    for row in try Row.fetchAll(
      db,
      sql: """
        SELECT name, wr, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        """)
    {
      guard let name: String = row.get(0) else { continue }
      options[name] = (row.get(1) ?? false, row.get(2) ?? false)
    }
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, sql, sql LIKE '%COLLATE%' OR sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema
        WHERE type = 'table' AND rootpage > 0 AND name NOT GLOB 'sqlite_*' ORDER BY rowid
        """)
    for row in rows {
      guard let name: String = row.get(0), let options = options[name],
        !Self.toolTables.contains(name.lowercased()), !name.hasPrefix(Replicator.tablePrefix)
      else { continue }
      positions[name.lowercased()] = all.count
      all.append(
        Table(
          name: name, isWithoutRowID: options.isWithoutRowID, isStrict: options.isStrict,
          sql: row.get(1), saysMore: row.get(2) ?? false))
    }
  }

  /// The tables whose details are read.
  private static let ordinaryTables =
    "sqlite_schema AS m WHERE m.type = 'table' AND m.rootpage > 0 AND m.name NOT GLOB 'sqlite_*'"

  /// Returns the rows of a pragma for each table, the table's name first.
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
    var contents: [String: ColumnContents] = [:]
    var count = 0
    var (last, isTakenApart) = (-1, false)
    let rows = try rows(
      db, "pragma_table_xinfo", "p.name, p.type, p.\"notnull\", p.dflt_value, p.pk, p.hidden",
      order: "p.cid")
    while let row = try rows.next() {
      guard let position = position(row), let name: String = row.get(1) else { continue }
      if last != position {
        (last, isTakenApart) = (position, false)
        definitions = [:]
      }
      let hidden = row.get(6) ?? 0
      // Parsing all statements would take longer than everything else.
      if !isTakenApart, hidden >= 2 || all[position].saysMore {
        isTakenApart = true
        definitions = all[position].definitions
      }
      count += 1
      guard count <= Self.columnLimit else {
        throw InstarError(
          .unsupported, "cannot read the schema of the store",
          cause: "the store's tables have more than \(Self.columnLimit) columns",
          next: "let the app itself migrate this store")
      }
      let type = row.get(2) ?? ""
      // There are few types and many columns.
      let holds = contents[type] ?? ColumnContents(declared: type)
      contents[type] = holds
      all[position].columns.append(
        Column(
          name: name, type: type,
          isRequired: row.get(3) ?? false, defaultValue: row.get(4),
          keyPosition: row.get(5) ?? 0, isGenerated: hidden >= 2,
          isStored: hidden == 3, holds: holds, definition: definitions[name.lowercased()]))
    }
  }

  private mutating func readForeignKeys(_ db: Database) throws {
    let rows = try rows(
      db, "pragma_foreign_key_list",
      "p.id, p.\"table\", p.\"from\", p.\"to\", p.on_update, p.on_delete",
      order: "p.id DESC, p.seq")
    var last: (table: Int, id: Int?)?
    while let row = try rows.next() {
      guard let position = position(row) else { continue }
      func text(_ index: Int) -> String { row.get(index) ?? "" }
      let id: Int? = row.get(1)
      if last?.table != position || last?.id != id {
        all[position].foreignKeys.append(
          ForeignKey(table: text(2), columns: [], onUpdate: text(5), onDelete: text(6)))
        last = (position, id)
      }
      let key = all[position].foreignKeys.count - 1
      all[position].foreignKeys[key].columns.append((own: text(3), other: text(4)))
    }
  }

  private mutating func readIndexes(_ db: Database) throws {
    var statements: [String: String] = [:]
    for row in try Row.fetchAll(
      db, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    {
      if let name: String = row.get(0) { statements[name] = row.get(1) }
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
      guard let position = position(row), let name: String = row.get(1) else { continue }
      if all[position].indexes.last?.name != name {
        all[position].indexes.append(
          Index(
            name: name, isUnique: row.get(2) ?? false, isPlain: row.get(3) == 0,
            text: statements[name].flatMap { CreateIndexText($0) }))
      }
      let index = all[position].indexes.count - 1
      let column: String? = row.get(4)
      all[position].indexes[index].columns.append(column)
      if column == nil || row.get(5) != 0 {
        all[position].indexes[index].isPlain = false
      }
    }
  }

  /// One statement for many columns, because a statement per column takes longer than the values.
  private mutating func readSamples(_ db: Database, ofTableAt position: Int) throws {
    let table = SQLIdentifier.sql(all[position].name)
    let unclear = all[position].columns.indices.filter {
      !all[position].columns[$0].isGenerated && all[position].columns[$0].holds.needsSample
    }
    for start in stride(from: 0, to: unclear.count, by: 50) {
      let asked = unclear[start..<min(start + 50, unclear.count)]
      let values = asked.map { index in
        let name = SQLIdentifier.sql(all[position].columns[index].name)
        return """
          (SELECT iif(typeof(\(name)) IN ('text', 'blob'), substr(\(name), 1, 64), \(name))
          FROM (SELECT \(name) FROM \(table) LIMIT 100) WHERE \(name) IS NOT NULL LIMIT 1)
          """
      }
      let row = try Row.fetchOne(db, sql: "SELECT \(values.joined(separator: ", "))")
      for (number, index) in asked.enumerated() {
        guard let value: DatabaseValue = row?.get(number), !value.isNull else { continue }
        all[position].columns[index].sample = value
      }
    }
  }

  private mutating func readOthers(_ db: Database) throws {
    let kinds = [
      ("views", "type = 'view'"), ("triggers", "type = 'trigger'"),
      ("virtual tables", "type = 'table' AND rootpage = 0"),
    ]
    for (kind, condition) in kinds {
      let names = try String.fetchAll(
        db,
        sql: """
          SELECT substr(name, 1, 100) FROM sqlite_schema WHERE \(condition) ORDER BY name LIMIT 11
          """)
      if !names.isEmpty { others.append((kind, names)) }
    }
  }

  /// The position of the table that is named in the first column.
  private func position(_ row: Row) -> Int? {
    let name: String? = row.get(0)
    return name.flatMap { positions[$0.lowercased()] }
  }
}
