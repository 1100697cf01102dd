public import GRDB
public import InstarSchema

/// Reads and writes the version that a plain store declares.
public enum PlainVersion {
  /// Returns the declared version at each of these sources. A source without one is left out.
  public static func read(
    _ db: Database, at sources: Set<VersionSource>, in structure: StoreStructure
  ) throws -> [VersionSource: Schema.Version] {
    var versions: [VersionSource: Schema.Version] = [:]
    for source in sources.union([.userVersion]) {
      versions[source] = try version(db, at: source, in: structure)
    }
    return versions
  }

  private static func version(
    _ db: Database, at source: VersionSource, in structure: StoreStructure
  ) throws -> Schema.Version? {
    switch source {
    case .userVersion:
      return try db.integer("PRAGMA user_version").map(Int64.init).flatMap {
        Schema.Version(userVersion: $0)
      }
    case .table(let table, let column):
      guard structure.hasTable(table, withColumns: [column]) else { return nil }
      let values = try DatabaseValue.fetchAll(
        db,
        sql:
          "SELECT substr(\(SQLIdentifier.sql(column)), 1, 100) FROM \(SQLIdentifier.sql(table)) LIMIT 2"
      )
      guard values.count == 1, let text = String.fromDatabaseValue(values[0]) else { return nil }
      return version(in: text)
    }
  }

  private static func version(in text: String) -> Schema.Version? {
    Schema.Version(text) ?? Int64(text).flatMap { Schema.Version(userVersion: $0) }
  }

  /// As `read`, by the pages of a store; `nil` where only SQLite can read one of the sources.
  static func read(
    _ pages: PageReader, at sources: Set<VersionSource>, in tables: StoreTables
  ) -> [VersionSource: Schema.Version]? {
    var versions: [VersionSource: Schema.Version] = [:]
    versions[.userVersion] = Schema.Version(userVersion: Int64(pages.userVersion))
    for case .table(let table, let column) in sources {
      guard tables.structure.hasTable(table, withColumns: [column]) else { continue }
      guard let position = tables.trees[table]?.columns[column],
        let rows = pages.rows(of: table, tables, columns: position + 1)
      else { return nil }
      guard rows.count == 1 else { continue }
      let text: String
      switch rows[0].values[position] {
      case .integer(let number): text = String(number)
      case let value:
        guard let short = value.text(limitBytes: 100) else { return nil }
        text = short
      }
      versions[.table(table, column: column)] = version(in: text)
    }
    return versions
  }

  /// Writes the version to the plan's source. The table is created where it does not exist; a number stays a number.
  ///
  /// - Throws: `unsupported` where the version cannot be written as a number; `verificationFailed` where nobody could
  ///   read it afterwards, because the table has several rows; the database's error.
  public static func stamp(
    _ version: Schema.Version, at source: VersionSource, _ db: Database
  ) throws {
    func number() throws -> Int32 {
      guard let number = version.userVersion else {
        throw InstarError(
          .unsupported, "cannot stamp the store as \(version)",
          cause: "PRAGMA user_version is a number, and \(version) cannot be written as one",
          next:
            "number versions from 1.0.0, minor and patch below 100, or name a table as versionSource"
        )
      }
      return number
    }
    switch source {
    case .userVersion:
      try db.execute(sql: "PRAGMA user_version = \(number())")
    case .table(let table, let column):
      let name = table
      let (table, column) = (SQLIdentifier.sql(table), SQLIdentifier.sql(column))
      try db.execute(sql: "CREATE TABLE IF NOT EXISTS \(table) (\(column) TEXT NOT NULL)")
      let rows = try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0
      guard rows < 2 else {
        throw InstarError(
          .verificationFailed, "cannot stamp the store as \(version)",
          cause: "table '\(name)' has \(rows) rows; its only row must be the version of the store",
          next:
            "remove the other rows in the app, or the code of the plan that inserts them; or name another table "
            + "as versionSource")
      }
      if rows == 0 {
        try db.execute(
          sql: "INSERT INTO \(table) (\(column)) VALUES (?)", arguments: [version.description])
      } else {
        try db.execute(
          sql:
            "UPDATE \(table) SET \(column) = CASE typeof(\(column)) WHEN 'integer' THEN ? ELSE ? END",
          arguments: [version.userVersion, version.description])
      }
    }
  }

  /// Whether a store has the history table of a known tool.
  static func hasToolTable(_ structure: StoreStructure) -> Bool {
    let names: Set = [
      "alembic_version", "django_migrations", "schema_migrations", "grdb_migrations",
      "room_master_table",
    ]
    return structure.tables.contains { names.contains($0.name.lowercased()) }
  }

  /// Returns the versions in the history tables of known tools. Instar never writes them.
  ///
  /// - Alembic: `alembic_version(version_num)`, one row per head.
  /// - Django: `django_migrations(id, app, name, …)`, the last row of each app.
  /// - golang-migrate: `schema_migrations(version, dirty)`, one row.
  /// - GRDB: `grdb_migrations(identifier)`, one row per applied migration: the last.
  /// - Room: `room_master_table(id, identity_hash)`, the row 42; the version is in `PRAGMA user_version`.
  public static func toolVersions(
    _ db: Database, in structure: StoreStructure
  ) throws -> [ToolVersion] {
    var versions: [ToolVersion] = []
    func read(_ tool: ToolVersion.Tool, _ table: String, _ columns: [String], _ sql: String) throws
    {
      guard structure.hasTable(table, withColumns: columns) else { return }
      for name in try String.fetchAll(db, sql: sql + " LIMIT 100") {
        versions.append(ToolVersion(tool: tool, name: name))
      }
    }
    try read(
      .alembic, "alembic_version", ["version_num"],
      "SELECT substr(version_num, 1, 200) FROM alembic_version WHERE version_num IS NOT NULL")
    try read(
      .django, "django_migrations", ["id", "app", "name"],
      """
      SELECT substr(app, 1, 200) || '.' || substr(name, 1, 200) FROM (
        SELECT app, name, max(id) FROM django_migrations
        WHERE app IS NOT NULL AND name IS NOT NULL GROUP BY app ORDER BY app
      )
      """)
    try read(
      .golangMigrate, "schema_migrations", ["version", "dirty"],
      """
      SELECT CAST(version AS TEXT) || CASE WHEN dirty THEN ' (dirty)' ELSE '' END
      FROM schema_migrations WHERE typeof(version) = 'integer'
      """)
    try read(
      .grdb, "grdb_migrations", ["identifier"],
      """
      SELECT substr(identifier, 1, 200) FROM grdb_migrations
      WHERE rowid = (SELECT max(rowid) FROM grdb_migrations) AND identifier IS NOT NULL
      """)
    try read(
      .room, "room_master_table", ["id", "identity_hash"],
      """
      SELECT substr(identity_hash, 1, 200) FROM room_master_table
      WHERE id = 42 AND identity_hash IS NOT NULL
      """)
    return versions
  }
}

extension StoreStructure {
  fileprivate func hasTable(_ name: String, withColumns columns: [String]) -> Bool {
    guard let table = tables.first(where: { $0.name.lowercased() == name.lowercased() }) else {
      return false
    }
    let names = Set(table.columns.map { $0.name.lowercased() })
    return columns.allSatisfy { names.contains($0.lowercased()) }
  }
}
