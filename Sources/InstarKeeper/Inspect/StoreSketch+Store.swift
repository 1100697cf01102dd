internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreSketch {
  /// More than this is sent to no worker: a plan is then made without the store.
  private static let limitBytes = 4 << 20

  /// What a worker has to know of a store to plan on. `nil` where it is too large, or of another format.
  ///
  /// - Throws: why the store cannot be read.
  static func read(
    _ probe: StoreProbe, opening: StoreOpening
  ) throws(InstarError) -> StoreSketch? {
    guard probe.identity.format == .coredata else { return nil }
    let file = try opening.look(at: probe.file.path)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      let statements = try String.fetchAll(
        db,
        sql: """
          SELECT sql FROM sqlite_master
          WHERE (type IN ('table', 'index') AND rootpage > 0 OR type = 'trigger'
              AND tbl_name IN (SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0))
            AND sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND length(sql) < \(limitBytes)
          ORDER BY type = 'trigger', type = 'index', rowid LIMIT 50000
          """)
      guard statements.reduce(0, { $0 + $1.utf8.count }) < limitBytes else { return nil }
      let metadata = try CoreDataMetadata.readIfSound(db)
      return StoreSketch(
        statements: statements,
        entities: probe.entityList.map {
          Entity(number: $0.number, name: $0.name, superNumber: $0.superNumber)
        },
        frameworkVersion: metadata?.frameworkVersion,
        isMadeByInstar: metadata?.isMadeByInstar ?? false)
    }
  }
}
