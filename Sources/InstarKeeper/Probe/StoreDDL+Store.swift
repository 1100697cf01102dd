internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreDDL {
  /// Larger schemas are not sent to a worker.
  private static let limitBytes = 4 << 20

  /// Reads what a worker needs to know of a store for its plan.
  ///
  /// - Throws: Why the store cannot be read.
  static func read(
    _ probe: StoreProbe, openPolicy: OpenPolicy
  ) throws(InstarError) -> StoreDDL {
    let file = try openPolicy.probeFile(probe.file.path)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      let format = probe.identity.format
      let all = try String.fetchAll(
        db, sql: format == .coredata ? coreDataStatements : plainStatements)
      let isTooLarge = all.reduce(0) { $0 + $1.utf8.count } >= limitBytes
      let statements = isTooLarge ? [] : all
      guard format == .coredata else { return StoreDDL(format: format, statements: statements) }
      let metadata = try CoreDataMetadata.readIfSound(db)
      return StoreDDL(
        format: format, statements: statements,
        entities: probe.entityList.map {
          Entity(number: $0.number, name: $0.name, superNumber: $0.superNumber)
        },
        frameworkVersion: metadata?.frameworkVersion,
        isMadeByInstar: metadata?.isMadeByInstar ?? false)
    }
  }

  private static let coreDataStatements = """
    SELECT sql FROM sqlite_master
    WHERE (type IN ('table', 'index') AND rootpage > 0 OR type = 'view' OR type = 'trigger'
        AND tbl_name IN (SELECT name FROM sqlite_master WHERE rootpage > 0 OR type = 'view'))
      AND sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND length(sql) < \(limitBytes)
    ORDER BY type = 'trigger', type = 'view', type = 'index', rowid LIMIT 50000
    """

  /// A virtual table creates its shadow tables itself.
  private static let plainStatements = """
    SELECT sql FROM sqlite_master
    WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND length(sql) < \(limitBytes)
      AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow')
    ORDER BY type = 'trigger', type = 'view', type = 'index', rowid LIMIT 50000
    """
}
