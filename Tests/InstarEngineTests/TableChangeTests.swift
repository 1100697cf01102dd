import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

enum WaresV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self] }

  @Table("ware")
  @Model final class Ware {
    var id: Int
    var name: String
    var code: String?
    var note: String?
    @Column(.encoding(.unixSeconds)) var made: Date?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

/// 'note' goes, names are unique, and dates are text.
enum WaresV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self] }

  @Table("ware")
  @Model final class Ware {
    var id: Int
    @Attribute(.unique) var name: String
    var code: String?
    var made: Date?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

/// 'code' is required; the table has another name.
enum WaresV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self] }

  @Table("article")
  @Model final class Ware {
    var id: Int
    @Attribute(.unique) var name: String
    var code: String
    var made: Date?
    init(id: Int, name: String, code: String) {
      self.id = id
      self.name = name
      self.code = code
    }
  }
}

enum WaresPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [WaresV1.self, WaresV2.self, WaresV3.self] }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: WaresV1.self, toVersion: WaresV2.self),
      .custom(
        fromVersion: WaresV2.self, toVersion: WaresV3.self,
        willMigrate: { context in
          let missing = FetchDescriptor<WaresV2.Ware>(
            predicate: #Predicate { $0.code == nil && $0.name != "stubborn" })
          for ware in try context.fetch(missing) { ware.code = "W\(ware.id)" }
        }, didMigrate: nil),
    ]
  }
}

/// 'weight' is new and required, and only `didMigrate` sets it.
enum WeighedWares: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self] }

  @Table("ware")
  @Model final class Ware {
    var id: Int
    var name: String
    var weight: Int
    init(id: Int, name: String, weight: Int) {
      self.id = id
      self.name = name
      self.weight = weight
    }
  }
}

enum WeighingPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [WaresV1.self, WeighedWares.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: WaresV1.self, toVersion: WeighedWares.self, willMigrate: nil,
        didMigrate: { context in
          for ware in try context.fetch(FetchDescriptor<WeighedWares.Ware>()) { ware.weight = 1 }
        })
    ]
  }
}

/// A unique index over an expression that has no value in some rows.
enum MeasuredWares: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Ware.self] }

  @Table("ware", .index("by_size", on: "abs(id)", unique: true))
  @Model final class Ware {
    var id: Int
    var name: String
    var code: String?
    var note: String?
    @Column(.encoding(.unixSeconds)) var made: Date?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

enum MeasuringPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [WaresV1.self, MeasuredWares.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: WaresV1.self, toVersion: MeasuredWares.self)]
  }
}

@Suite("Changing ordinary tables")
struct TableChangeTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.db")
  }

  private func make(_ sql: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql: """
          CREATE TABLE ware (id INTEGER PRIMARY KEY, name TEXT NOT NULL, code TEXT, note TEXT, made INTEGER);
          INSERT INTO ware VALUES (3, 'nut', NULL, 'n', 1700000000), (8, 'bolt', 'B', NULL, NULL);
          """)
      try db.execute(sql: sql)
    }
    try queue.close()
  }

  private func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    let value = try queue.inDatabase(body)
    try queue.close()
    return value
  }

  private func migrate(_ plan: any SchemaMigrationPlan.Type = WaresPlan.self) throws {
    let definition = try PlanDefinition(plan)
    let connection = try StoreConnection(path: path, durability: .clone)
    defer { try? connection.close() }
    try StageExecutor.run(
      [
        StageExecutor.Clone(
          connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
        ) { _ in }
      ],
      plan: definition.name)
  }

  /// The error of a run over a store with this besides the table.
  private func failure(_ sql: String) throws -> InstarError? {
    try make(sql)
    do {
      try migrate()
      return nil
    } catch let error as InstarError {
      return error
    }
  }

  @Test("a table of the app's that is called as Instar calls its own is left alone")
  func sameName() throws {
    try make("CREATE TABLE instar_probe (x); INSERT INTO instar_probe VALUES (1);")
    try migrate()
    #expect(try read { try Int.fetchAll($0, sql: "SELECT x FROM instar_probe") } == [1])
  }

  @Test("tables are altered, rebuilt and renamed, with values converted and references kept")
  func wholePlan() throws {
    try make(
      """
      CREATE TABLE sale (ware INTEGER REFERENCES ware (id));
      INSERT INTO sale VALUES (3), (3), (8);
      CREATE INDEX by_note ON ware (note);
      CREATE VIEW named AS SELECT name FROM ware WHERE code IS NOT NULL;
      CREATE TRIGGER sold AFTER INSERT ON sale BEGIN UPDATE ware SET code = 'sold' WHERE id = new.ware; END;
      """)
    try migrate()
    let (rows, objects) = try read { db in
      (
        try String.fetchAll(
          db, sql: "SELECT id || name || code || '|' || ifnull(made, '-') FROM article"),
        try String.fetchAll(
          db, sql: "SELECT sql FROM sqlite_schema WHERE type <> 'index' ORDER BY name")
      )
    }
    #expect(rows == ["3nutW3|2023-11-14T22:13:20.000Z", "8boltB|-"])
    #expect(
      objects == [
        #"CREATE TABLE "article" (id INTEGER PRIMARY KEY, name TEXT NOT NULL, code TEXT NOT NULL, made TEXT)"#,
        #"CREATE VIEW named AS SELECT name FROM "article" WHERE code IS NOT NULL"#,
        #"CREATE TABLE sale (ware INTEGER REFERENCES "article" (id))"#,
        #"CREATE TRIGGER sold AFTER INSERT ON sale BEGIN UPDATE "article" SET code = 'sold' WHERE id = new.ware; END"#,
      ])
    let indexes = try read {
      try String.fetchAll($0, sql: "SELECT name FROM sqlite_schema WHERE type = 'index'")
    }
    #expect(indexes == ["ware_name_unique"])
  }

  @Test(
    "values of ordinary tables that repeat under a new uniqueness are counted before anything is changed"
  )
  func duplicates() throws {
    let error = try failure("INSERT INTO ware (name) VALUES ('nut'), ('bolt')")
    #expect(error?.code == .duplicateUniqueValues)
    #expect(error?.cause.contains(": 4 rows of ") == true, "\(error?.cause ?? "")")
    #expect(error?.rows?.count == 4)
  }

  @Test("a unique index that fails for another reason than duplicates is refused with that reason")
  func indexOverExpression() throws {
    try make("INSERT INTO ware (id, name) VALUES (-9223372036854775808, 'washer'), (-8, 'bolt')")
    let error = #expect(throws: InstarError.self) { try migrate(MeasuringPlan.self) }
    #expect(error?.code == .sqlFailed)
    let cause = try #require(error?.cause)
    #expect(cause.contains("integer overflow") && cause.contains("CREATE UNIQUE INDEX"), "\(cause)")
  }

  @Test("a column that a view or trigger names is not removed")
  func spokenOf() throws {
    let error = try failure("CREATE VIEW notes AS SELECT id, note FROM ware")
    #expect(error?.code == .unexpectedStructure)
    #expect(error?.cause.contains("notes") == true)
  }

  @Test("a column that a trigger names is not removed")
  func spokenOfByTrigger() throws {
    let error = try failure(
      """
      CREATE TABLE log (what TEXT);
      CREATE TRIGGER noted AFTER UPDATE ON ware BEGIN INSERT INTO log VALUES (new.note); END
      """)
    #expect(error?.code == .unexpectedStructure)
    #expect(error?.cause.contains("noted") == true)
  }

  @Test("a row without a value for a column that becomes required is named")
  func missingValue() throws {
    try make("UPDATE ware SET name = 'stubborn' WHERE id = 3")
    let error = #expect(throws: InstarError.self) { try migrate() }
    #expect(error?.code == .missingRequiredValues)
    #expect(error?.cause.contains("'code'") == true)
  }

  @Test("a new required column that only didMigrate sets is refused, with what to write")
  func newRequiredColumn() throws {
    try make("")
    let error = #expect(throws: InstarError.self) { try migrate(WeighingPlan.self) }
    #expect(error?.code == .missingRequiredValues)
    #expect(
      error?.cause.contains("2 rows of ware have no value for the required column 'weight'") == true
    )
    #expect(error?.next?.contains("add Ware.weight as optional in one version") == true)
    let notes = try PlanDefinition(WeighingPlan.self).migration(from: Schema.Version(1, 0, 0)).notes
    #expect(
      notes.contains {
        $0.hasPrefix("the stage from 1.0.0 to 2.0.0 runs only if Ware has no rows: ")
      },
      "\(notes)")
  }

  @Test("the statements that change ordinary tables are known beforehand")
  func planned() throws {
    let plan = try PlanDefinition(WaresPlan.self).migration(from: Schema.Version(2, 0, 0))
    #expect(
      plan.stages.first?.statements.prefix(1) == ["ALTER TABLE ware RENAME TO article"])
    #expect(
      plan.stages.first?.statements.contains {
        $0.hasPrefix("INSERT INTO instar_new_article (id, name, code, made) SELECT")
      } == true)
  }
}
