public import Foundation
internal import GRDB
public import InstarSchema

/// The identity of a store of the format `coredata`, and what else of it only this format has.
public struct CoreDataProbe: FormatProbe {
  /// The declared version and the structure.
  public internal(set) var identity: StoreIdentity
  /// The rows of `Z_PRIMARYKEY`, in the order of their numbers.
  public var entityList: [ListedEntity]
  /// The names of tables and triggers in which Apple's frameworks keep more than the model says: CloudKit mirroring
  /// (`ANSCK…`) and derived attributes (`Z_DA_…`).
  public var frameworkObjects: [String]
  /// What the store decides about its layout.
  public var conventions: CoreDataConventions
  /// The store's `Z_UUID`.
  public var uuid: String?
  /// The declared hash of each entity.
  public var entityHashes: [String: Data] = [:]
  /// Why the metadata cannot be used, although SQLite can read it; `nil` where it can be used.
  public var metadataProblem: String?

  /// A row of `Z_PRIMARYKEY`.
  public struct ListedEntity: Sendable, Hashable {
    /// The number that the rows of the entity carry in `Z_ENT`.
    public var number: Int
    /// The entity's name when the row was written: Core Data does not update it after some renames.
    public var name: String
    /// The number of the superentity; 0 for a root entity.
    public var superNumber: Int
  }

  /// - Throws: `corruptStore` where SQLite cannot read the pages of the metadata, or where their property list is
  ///   damaged; the database's error.
  init(
    _ db: Database, tables: StoreTables, objects: [String], conventions: CoreDataConventions
  ) throws {
    self.init(tables, objects, conventions, entityList: try Self.readEntityList(db))
    switch try CoreDataMetadata.readContent(db) {
    case .usable(let metadata):
      take(CoreDataMetadata.Declaration(metadata), uuid: metadata.uuid)
    case .damaged(let cause):
      throw InstarError(
        .corruptStore, "cannot read the store", cause: cause, next: CommandText.restoring(nil))
    case .unusable(let cause):
      // A store is recognized by its tables too, so missing metadata is only reported.
      metadataProblem = cause
      uuid = try Self.whereReadable {
        CoreDataMetadata.uuid(
          try Data.fetchOne(
            db, sql: "SELECT \(CoreDataMetadata.uuidBytes) FROM Z_METADATA LIMIT 1"))
      }
    }
  }

  /// Probes a store by its pages; `nil` where its rows are not as frameworks write them, so that only SQLite can tell.
  init?(
    _ pages: PageReader, tables: StoreTables, objects: [String], conventions: CoreDataConventions
  ) {
    guard let list = Self.readEntityList(pages, tables),
      let (uuid, declaration) = CoreDataMetadata.read(pages, tables)
    else { return nil }
    self.init(tables, objects, conventions, entityList: list)
    take(declaration, uuid: uuid)
  }

  private init(
    _ tables: StoreTables, _ objects: [String], _ conventions: CoreDataConventions,
    entityList: [ListedEntity]
  ) {
    self.entityList = entityList
    identity = StoreIdentity(
      format: .coredata, version: nil, entityNames: entityList.map(\.name),
      structure: tables.structure, fingerprint: tables.fingerprint)
    frameworkObjects = objects
    self.conventions = conventions
  }

  private mutating func take(_ declaration: CoreDataMetadata.Declaration, uuid: String) {
    identity.version = declaration.version
    identity.stampedFingerprint = declaration.fingerprint
    entityHashes = declaration.entityHashes
    conventions.follow(frameworkVersion: declaration.frameworkVersion)
    conventions.isMadeByInstar = declaration.isMadeByInstar
    self.uuid = uuid
  }

  /// Returns the names of `frameworkObjects`.
  static func frameworkObjects(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_master
        WHERE type = 'table' AND name GLOB 'ANSCK*' OR type = 'trigger' AND name GLOB 'Z_DA_*'
        ORDER BY name LIMIT 100
        """)
  }

  /// The longest name of an entity that is read.
  private static let nameLimitBytes = 1 << 20

  /// Numbers from 16000 on belong to persistent history, which has no entities in the model.
  static func readEntityList(_ db: Database) throws -> [ListedEntity] {
    // A run reads it several times on one connection.
    let rows = try Row.fetchCursor(
      db.cachedStatement(
        sql: """
          SELECT Z_ENT, CASE WHEN length(Z_NAME) <= \(nameLimitBytes) THEN Z_NAME END, Z_SUPER
          FROM Z_PRIMARYKEY
          WHERE Z_ENT > 0 AND Z_ENT < 16000 ORDER BY Z_ENT LIMIT 16000
          """))
    var size = NameSize()
    var entities: [ListedEntity] = []
    while let row = try rows.next() {
      guard let number: Int = row.get(0), let name: String = row.get(1) else { continue }
      try size.add(name)
      entities.append(ListedEntity(number: number, name: name, superNumber: row.get(2) ?? 0))
    }
    return entities
  }

  /// As `readEntityList`, by the pages; `nil` where a row is not as frameworks write it.
  private static func readEntityList(
    _ pages: PageReader, _ tables: StoreTables
  ) -> [ListedEntity]? {
    guard let rows = pages.rows(of: "Z_PRIMARYKEY", tables, columns: 3) else { return nil }
    var entities: [ListedEntity] = []
    for row in rows where row.rowID > 0 && row.rowID < 16000 {
      guard let name = row.values[1].text(limitBytes: 1000) else { return nil }
      let superNumber: Int
      switch row.values[2] {
      case .null: superNumber = 0
      case .integer(let number): superNumber = Int(number)
      case .text, .blob: return nil
      }
      entities.append(
        ListedEntity(number: Int(row.rowID), name: name, superNumber: superNumber))
    }
    return entities
  }

  /// With the list of entities and the part of the metadata that the conventions depend on. Virtual tables are left
  /// out.
  func ddl(_ db: Database, limitBytes: Int) throws -> [String] {
    let statements = try String.fetchAll(
      db,
      sql: """
        SELECT sql FROM sqlite_master
        WHERE (type IN ('table', 'index') AND rootpage > 0 OR type = 'view' OR type = 'trigger'
            AND tbl_name IN (SELECT name FROM sqlite_master WHERE rootpage > 0 OR type = 'view'))
          AND sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND length(sql) < \(limitBytes)
        ORDER BY type = 'trigger', type = 'view', type = 'index', rowid LIMIT 50000
        """)
    return try statements + Self.bookkeepingStatements(db, entityList)
  }

  /// Returns the statements that write the list of entities, and the part of the metadata that the conventions depend
  /// on.
  static func bookkeepingStatements(
    _ db: Database, _ entityList: [ListedEntity]
  ) throws -> [String] {
    let list = entityList.map {
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) "
        + "VALUES (\($0.number), \(AttributeValue.text($0.name).literal), \($0.superNumber), 0)"
    }
    let metadata = try CoreDataMetadata.readIfSound(db)
    return try list + [
      CoreDataMetadata.insertStatement(
        frameworkVersion: metadata?.frameworkVersion,
        isMadeByInstar: metadata?.isMadeByInstar ?? false)
    ]
  }

  // MARK: Rows

  /// All entities below one root share the root's table, where `Z_ENT` tells them apart.
  func countRows(_ db: Database, found: (Int, Int) -> Void) throws {
    let roots = rootsOfEntities()
    var sharing: [Int: Int] = [:]
    for root in roots { sharing[root.number, default: 0] += 1 }
    let tables = tablesWithColumns
    var counts: [Int: [Int: Int]] = [:]
    for (position, (entity, root)) in zip(entityList, roots).enumerated() {
      let table = "Z" + root.name.uppercased()
      guard tables.contains(table) else { continue }
      if sharing[root.number] == 1 {
        if let count = try Self.countRows(db, of: table) { found(position, count) }
        continue
      }
      if counts[root.number] == nil {
        counts[root.number] = try Self.countRows(db, ofEachEntityIn: table)
      }
      guard let ofTable = counts[root.number], !ofTable.isEmpty else { continue }
      found(position, ofTable[entity.number] ?? 0)
    }
  }

  /// The root of each listed entity. A damaged list may contain a cycle; an entity in one is its own root.
  private func rootsOfEntities() -> [ListedEntity] {
    let byNumber = entityList.keyed(by: \.number)
    var roots: [Int: ListedEntity] = [:]
    return entityList.map { entity in
      var path: [Int] = []
      var current = entity
      var seen = Set<Int>()
      while seen.insert(current.number).inserted {
        if let known = roots[current.number] {
          current = known
          break
        }
        path.append(current.number)
        guard let above = byNumber[current.superNumber] else { break }
        current = above
      }
      for number in path { roots[number] = current }
      return current
    }
  }

  /// Returns the counts by the entities' numbers, with a count for number 0, so that an empty table differs from an
  /// unreadable one.
  private static func countRows(
    _ db: Database, ofEachEntityIn table: String
  ) throws -> [Int: Int] {
    try whereReadable {
      let rows = try Row.fetchCursor(
        db,
        sql: """
          SELECT Z_ENT, count(*) FROM \(table.quotedDatabaseIdentifier)
          WHERE typeof(Z_ENT) = 'integer' GROUP BY Z_ENT LIMIT 16000
          """)
      var counts = [0: 0]
      while let row = try rows.next() {
        guard let number: Int = row.get(0) else { continue }
        counts[number] = row.get(1)
      }
      return counts
    } ?? [:]
  }
}
