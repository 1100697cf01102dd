public import GRDB
import InstarSchema

/// What a layout has that its schema does not decide: conventions of the framework that wrote the store, and names that
/// only the store shows.
///
/// Stores keep them through every migration, as with Core Data itself.
public struct CoreDataConventions: Sendable, Hashable {
  /// The frameworks whose rules the store follows.
  public var generation: Generation
  /// The names of the store's join tables.
  public var joinTables: Set<String>
  /// The relationships that name their join table although they belong to the entity with the greater number, or relate
  /// an entity to itself. Most tables are named after the lower number (Core Data layout, section 4.5); those of
  /// Apple's Notes and Photos are not.
  public var namingRelationships: Set<RelationshipName> = []
  /// By the name of the join table of a relationship that is its own inverse: the column beside `REFLEXIVE`, where its
  /// name differs from the table's.
  public var reflexiveColumns: [String: String] = [:]
  /// Whether Instar created the store. Any other store keeps its order of columns, because Apple's frameworks may open
  /// it again.
  public var isMadeByInstar = true

  /// How frameworks of different years write indexes and uniqueness (Core Data layout, sections 4.5 and 6.1).
  @frozen
  public enum Generation: Sendable, Hashable {
    /// No indexes on join tables; else as `before2017`.
    case before2015
    /// Uniqueness by constraints of the table; indexes are named by columns.
    case before2017
    /// Uniqueness by indexes; indexes are named by entities.
    case current

    /// - Parameter frameworkVersion: `NSPersistenceFrameworkVersion`. Observed: up to 519; 637; 847 and more.
    public init(frameworkVersion: Int) {
      if frameworkVersion < 600 {
        self = .before2015
      } else {
        self = frameworkVersion < 800 ? .before2017 : .current
      }
    }
  }

  /// A relationship of an entity.
  public struct RelationshipName: Sendable, Hashable {
    /// The entity that declares the relationship.
    public var entity: String
    /// The relationship's name.
    public var name: String

    package init(entity: String, name: String) {
      self.entity = entity
      self.name = name
    }
  }

  /// Creates the conventions of a new store.
  public init(generation: Generation = .current, joinTables: Set<String> = []) {
    self.generation = generation
    self.joinTables = joinTables
  }

  /// Reads the conventions of a store. Unusable metadata counts as current.
  ///
  /// - Throws: `corruptStore` where the metadata is damaged; the database's error.
  public init(of db: Database) throws {
    try self.init(of: db, metadata: CoreDataMetadata.readIfSound(db))
  }

  /// Reads the conventions of a store whose metadata were read already.
  public init(of db: Database, metadata: CoreDataMetadata?) throws {
    try self.init(schemaOf: db)
    follow(frameworkVersion: metadata?.frameworkVersion)
    isMadeByInstar = metadata?.isMadeByInstar ?? false
  }

  /// Sets the rules of the framework that created the store; `nil` for an unknown one.
  mutating func follow(frameworkVersion: Int?) {
    generation = frameworkVersion.map { Generation(frameworkVersion: $0) } ?? .current
  }

  /// Reads what the schema of a store shows. The rest is in its metadata.
  init(schemaOf db: Database) throws {
    let tables = try Row.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT name, sql LIKE '%\(Self.reflexiveColumn)%' FROM sqlite_master
          WHERE type = 'table' AND name GLOB 'Z_[0-9]*' AND length(name) < 300 LIMIT 50000
          """))
    self.init(joinTables: Set(tables.compactMap { $0.get(0) as String? }))
    isMadeByInstar = false
    guard tables.contains(where: { $0.get(1) as Bool? == true }) else { return }
    let columns = try Row.fetchAll(
      db,
      sql: """
        SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name GLOB 'Z_[0-9]*' AND m.sql LIKE '%\(Self.reflexiveColumn)%'
          AND length(m.name) < 300 AND c.name GLOB 'Z_[0-9]*' AND c.name <> m.name LIMIT 1000
        """)
    for row in columns {
      guard let table: String = row.get(0) else { continue }
      reflexiveColumns[table] = row.get(1)
    }
  }

  /// The second column of the join table of a relationship that is its own inverse (section 4.5).
  static let reflexiveColumn = "REFLEXIVE"
}
