internal import GRDB
internal import InstarSchema

/// The identity of a plain store: its tables, and the versions that it declares.
struct PlainProbe: FormatProbe {
  private(set) var identity: StoreIdentity

  init(_ db: Database, tables: StoreTables, versionSources: Set<VersionSource>) throws {
    self.init(
      tables, declared: try PlainVersion.read(db, at: versionSources, in: tables.structure))
    identity.toolVersions = try PlainVersion.toolVersions(db, in: tables.structure)
  }

  /// Probes a store without a history of a tool by its pages; `nil` where only SQLite can read its version.
  init?(_ pages: PageReader, tables: StoreTables, versionSources: Set<VersionSource>) {
    guard let declared = PlainVersion.read(pages, at: versionSources, in: tables) else {
      return nil
    }
    self.init(tables, declared: declared)
  }

  private init(_ tables: StoreTables, declared: [VersionSource: Schema.Version]) {
    identity = StoreIdentity(
      format: .plain, version: declared[.userVersion],
      entityNames: tables.structure.tables.map(\.name), structure: tables.structure,
      fingerprint: tables.fingerprint)
    identity.declaredVersions = declared
  }

  /// A virtual table creates its shadow tables itself.
  func ddl(_ db: Database, limitBytes: Int) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT sql FROM sqlite_master
        WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND length(sql) < \(limitBytes)
          AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
        ORDER BY type = 'trigger', type = 'view', type = 'index', rowid LIMIT 50000
        """)
  }

  func countRows(_ db: Database, found: (Int, Int) -> Void) throws {
    let tables = tablesWithColumns
    for (position, table) in identity.entityNames.enumerated() where tables.contains(table) {
      if let count = try Self.countRows(db, of: table) { found(position, count) }
    }
  }
}
