internal import GRDB
internal import InstarSchema

/// The identity of a plain store: its tables, and the versions that it declares.
struct PlainProbe: FormatProbe {
  private(set) var identity: StoreIdentity

  init(_ db: Database, versionSources: Set<VersionSource>) throws {
    let structure = try StoreStructure.read(db, format: .plain)
    identity = StoreIdentity(
      format: .plain, version: nil, entityNames: structure.tables.map(\.name),
      structure: structure, fingerprint: structure.fingerprint)
    identity.declaredVersions = try PlainVersion.read(db, at: versionSources, in: structure)
    identity.version = identity.declaredVersions[.userVersion]
    identity.toolVersions = try PlainVersion.toolVersions(db, in: structure)
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
