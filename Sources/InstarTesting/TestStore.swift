internal import GRDB
public import Instar
internal import InstarStore
internal import InstarWire

/// A store of a test: a real file, which the test may migrate, read and compare.
///
/// One thread at a time uses it.
public final class TestStore {
  /// The store's file, alone in its folder. It is removed with the last value that uses it.
  public let url: URL
  let test: MigrationTest
  /// A copy from before the last migration, and what that migration did.
  private var last:
    (before: TestStore, from: Schema.Version, to: Schema.Version, report: RunReport)?

  init(_ test: MigrationTest, url: URL) {
    self.test = test
    self.url = url
  }

  // MARK: Migrating

  /// Migrates the store to a version of the plan, with backup, clone, verification and one transaction, as the daemon
  /// does. Nothing confines the plan, which runs in this process; see `migrateConfined(by:)`.
  ///
  /// A store that is at that version is left as it is.
  ///
  /// - Parameter version: The version to end at; `nil` for the plan's last one.
  /// - Throws: `InstarError` with the cause. The store is unchanged then, unless the error's `state` says otherwise.
  public func migrate(to version: (any VersionedSchema.Type)? = nil) throws {
    try migrate(to: version, beforeWrite: nil)
  }

  func migrate(
    to version: (any VersionedSchema.Type)? = nil, beforeWrite: (@Sendable () throws -> Void)?
  ) throws {
    let migration = try PlanMigration(test.plan, to: version?.versionIdentifier)
    let before = try test.store(copying: url.path)
    let report = try migration.run(
      store: url.path, stateFolder: try stateFolder(), beforeWrite: beforeWrite)
    guard let report, let from = report.from, let to = report.to else { return }
    last = (before, from, to, report)
  }

  /// Migrates the store to the plan's last version as an operator does: `instarctl` starts a keeper, which opens the
  /// store, and a confined worker, which loads the plan as a plugin. It shows what a plan may not do there: write other
  /// files, open sockets, start processes.
  ///
  /// The plugin is built from the sources of the package that the test belongs to, once for all tests. The other
  /// expectations need `migrate(to:)`.
  ///
  /// - Parameter file: The test's source.
  /// - Throws: `ExpectationFailure` with what `instarctl` printed; the store is unchanged then, unless that says
  ///   otherwise.
  public func migrateConfined(file: String = #filePath) throws {
    try PluginProcess(forTestIn: file).migrate(url, stateFolder: try stateFolder())
  }

  func stateFolder() throws -> String {
    let folder = url.deletingLastPathComponent().appendingPathComponent("state").path
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return folder
  }

  // MARK: Reading

  /// Reads the store with the models of a version, which must be the one that the store is at.
  ///
  /// - Parameter body: Gets a context of the store. Models are valid until it returns.
  /// - Throws: What `body` throws; an error if the store is at another version.
  public func read<Value>(
    _ version: any VersionedSchema.Type, _ body: (ModelContext) throws -> Value
  ) throws -> Value {
    let container = try ModelContainer(
      for: Schema(versionedSchema: version),
      configurations: ModelConfiguration(url: url, allowsSave: false))
    let result = Result { try body(ModelContext(container)) }
    try container.close()
    return try result.get()
  }

  /// The version of the plan that the store is at; `nil` if it is at none of them.
  public func version() throws -> Schema.Version? {
    try PlanMigration(test.plan).version(of: url.path)
  }

  /// The number of rows of each table.
  func rowCounts() throws -> [String: Int] {
    try StoreReader.withReadOnlyStore(url.path) { db in
      let tables = try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
      return try tables.reduce(into: [:]) { counts, table in
        counts[table] = try Int.fetchOne(
          db, sql: "SELECT count(*) FROM \(SQLIdentifier.sql(table))")
      }
    }
  }

  /// What the store has, for comparisons: its tables and indexes, and a digest of all rows.
  func content() throws -> String {
    let structure = try PlanMigration.structure(of: url.path)
    return try StoreReader.withReadOnlyStore(url.path) { db in
      "\(structure) \(try ContentDigest.ofRows(db))"
    }
  }

  // MARK: Expectations

  /// Checks that two stores have the same tables, columns and indexes. Give it a store that the app itself made, to
  /// learn whether the app can use what the plan makes.
  ///
  /// - Throws: `ExpectationFailure` with what only one of them has.
  public func expectStructure(equals other: URL) throws {
    let own = Self.lines(of: try PlanMigration.structure(of: url.path))
    let expected = Self.lines(of: try PlanMigration.structure(of: other.path))
    let missing = expected.subtracting(own).sorted().map {
      "only '\(other.lastPathComponent)' has \($0)"
    }
    let additional = own.subtracting(expected).sorted().map { "only the tested store has \($0)" }
    guard missing.isEmpty, additional.isEmpty else {
      throw ExpectationFailure(
        "the store's structure is not that of '\(other.path)'", missing + additional)
    }
  }

  /// Checks that two stores of tests have the same tables, columns and indexes.
  ///
  /// - Throws: `ExpectationFailure` with what only one of them has.
  public func expectStructure(equals other: TestStore) throws {
    try expectStructure(equals: other.url)
  }

  private static func lines(of structure: StoreStructure) -> Set<String> {
    var lines: Set<String> = []
    for table in structure.tables {
      lines.insert("table \(table.name)")
      for column in table.columns {
        lines.insert("column \(table.name).\(column.name) \(column.type)")
      }
    }
    for index in structure.indexes {
      lines.insert(
        "\(index.isUnique ? "unique " : "")index \(index.name) on \(index.table) (\(index.columns.joined(separator: ", ")))"
      )
    }
    return lines
  }

  /// Checks that the last migration kept the number of rows of each entity, and the number of links of each
  /// relationship, at least. The counts are those of the run's report, which the keeper's code took.
  ///
  /// - Parameter except: The names of entities that may lose rows and of relationships that may lose links: "Note",
  ///   "Note.tags".
  /// - Throws: `ExpectationFailure` with the counts, also if the store was not migrated.
  public func expectRowsKept(except: Set<String> = []) throws {
    let report = try migration().report
    var losses: [String] = []
    var names: [String] = []
    for entity in report.entities {
      guard let before = entity.rowsBefore, !except.contains(entity.name) else { continue }
      let after = entity.rowsAfter ?? 0
      if after < before {
        losses.append("\(entity.name): \(before) rows before, \(after) after")
        names.append(entity.name)
      }
    }
    for relationship in report.relationships {
      guard let before = relationship.linksBefore, !except.contains(relationship.name) else {
        continue
      }
      let after = relationship.linksAfter ?? 0
      if after < before {
        losses.append("\(relationship.name): \(before) links before, \(after) after")
        names.append(relationship.name)
      }
    }
    guard losses.isEmpty else {
      throw ExpectationFailure(
        "the migration lost rows or links; if the plan means to, pass except: \(names)", losses)
    }
  }

  /// Checks that the last migration changed no value of a model's rows: each row of before is there, and each property
  /// has the same values under the same or another name. A property that had values, and that no property of the new
  /// version continues, is a difference too. Values are compared as they are stored; links of to-one relationships
  /// count as values.
  ///
  /// - Parameters:
  ///   - model: The class in the version that the store is at now.
  ///   - except: The names of properties, in one of the two versions, whose values may change or go.
  /// - Throws: `ExpectationFailure` with the first rows and values, also if the store was not migrated.
  public func expectNoChange(
    of model: any PersistentModel.Type, except: Set<String> = []
  ) throws {
    let migration = try migration()
    let comparison = try RowComparison(
      of: Schema.entityName(for: model), except: except,
      versions: try PlanMigration(test.plan).manifest, from: migration.from, to: migration.to)
    let differences = try comparison.differences(from: migration.before.url, to: url)
    guard differences.isEmpty else {
      throw ExpectationFailure("the migration changed rows of \(comparison.entity)", differences)
    }
  }

  private func migration() throws -> (
    before: TestStore, from: Schema.Version, to: Schema.Version, report: RunReport
  ) {
    guard let last else {
      throw ExpectationFailure(
        "the store was not migrated",
        ["call migrate() before; a store at the last version has nothing to migrate"])
    }
    return last
  }
}
