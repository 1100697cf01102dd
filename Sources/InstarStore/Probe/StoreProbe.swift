public import Foundation
public import GRDB
public import InstarSchema

/// What a store is, read without changing it.
public struct StoreProbe: Sendable {
  public var file: StoreFile
  public var identity: StoreIdentity
  /// In the order in which the store lists them.
  public var entities: [Entity]
  /// The entities as `Z_PRIMARYKEY` numbers them, in the order of their numbers.
  public var entityList: [ListedEntity] = []
  /// Tables and triggers by which Apple's frameworks keep more than the model says: of CloudKit
  /// mirroring (`ANSCK…`) and of derived attributes (`Z_DA_…`). By name.
  public var frameworkObjects: [String] = []
  /// The store's `Z_UUID`.
  public var uuid: String?
  /// The hash of each entity, as the store declares them.
  public var entityHashes: [String: Data]
  /// Why the metadata could not be read, for a store that has some.
  public var metadataProblem: String?

  public struct Entity: Sendable, Hashable {
    public var name: String
    /// `nil` where rows were not counted.
    public var rows: Int?

    public init(name: String, rows: Int? = nil) {
      self.name = name
      self.rows = rows
    }
  }

  /// Probes the store at a path.
  ///
  /// - Parameters:
  ///   - countsRows: Counting reads whole tables.
  ///   - busyTimeout: Seconds to wait for a process that is in the middle of writing.
  /// - Throws: what `StoreReader.withReadOnlyStore` throws; the store is as it was in any case.
  public static func read(
    _ path: String, countsRows: Bool = false, busyTimeout: Double = 1
  ) throws(InstarError) -> StoreProbe {
    let file = try StoreFile.look(at: path)
    return try StoreReader.withReadOnlyStore(path, busyTimeout: busyTimeout) { db in
      try read(db, file: file, countsRows: countsRows)
    }
  }

  /// Probes a store that is open already.
  public static func read(
    _ db: Database, file: StoreFile, countsRows: Bool = false
  ) throws -> StoreProbe {
    let format = try format(of: db)
    let structure = try StoreStructure.read(db, format: format)
    var identity = StoreIdentity(
      format: format, version: nil, entityNames: [], structure: structure,
      fingerprint: structure.fingerprint)
    switch format {
    case .plain:
      identity.entityNames = structure.tables.map(\.name)
      let entities = try structure.tables.map { table in
        Entity(
          name: table.name,
          rows: countsRows && !table.columns.isEmpty ? try countRows(db, of: table.name) : nil)
      }
      return StoreProbe(file: file, identity: identity, entities: entities, entityHashes: [:])
    case .coredata:
      let listed = try listedEntities(db)
      identity.entityNames = listed.map(\.name)
      var probe = StoreProbe(
        file: file, identity: identity,
        entities: listed.map { Entity(name: $0.name) }, entityHashes: [:])
      probe.entityList = listed
      probe.frameworkObjects = try frameworkObjects(db)
      do {
        let metadata = try CoreDataMetadata.read(db)
        probe.identity.version = metadata.version
        probe.entityHashes = metadata.entityHashes
        probe.uuid = metadata.uuid
      } catch {
        // A store is recognised by its tables too.
        guard error.code == .corruptStore else { throw error }
        probe.metadataProblem = error.cause
        probe.uuid = try String.fetchOne(db, sql: "SELECT Z_UUID FROM Z_METADATA LIMIT 1")
      }
      if countsRows {
        let counts = try countRows(db, of: listed, in: structure)
        for index in probe.entities.indices {
          probe.entities[index].rows = counts[index]
        }
      }
      return probe
    }
  }

  /// `coredata` where the two tables that no store of that format lacks are there.
  private static func format(of db: Database) throws -> StoreFormat {
    let count = try Int.fetchOne(
      db,
      sql: """
        SELECT count(*) FROM sqlite_master
        WHERE type = 'table' AND rootpage > 0 AND name IN ('Z_PRIMARYKEY', 'Z_METADATA')
        """)
    return count == 2 ? .coredata : .plain
  }

  /// A row of `Z_PRIMARYKEY`.
  public struct ListedEntity: Sendable, Hashable {
    public var number: Int
    /// What the entity was called when it was listed: Core Data leaves a name that is not true any
    /// more after some renames.
    public var name: String
    /// The number of the entity above; 0 for a root.
    public var superNumber: Int
  }

  private static func frameworkObjects(_ db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_master
        WHERE type = 'table' AND name GLOB 'ANSCK*' OR type = 'trigger' AND name GLOB 'Z_DA_*'
        ORDER BY name
        """)
  }

  /// Numbers from 16000 on are persistent history, which is no entity of the model.
  private static func listedEntities(_ db: Database) throws -> [ListedEntity] {
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY
        WHERE Z_ENT > 0 AND Z_ENT < 16000 ORDER BY Z_ENT
        """)
    var entities: [ListedEntity] = []
    while let row = try rows.next() {
      let columns = Array(row.databaseValues)
      guard let number = Int.fromDatabaseValue(columns[0]),
        let name = String.fromDatabaseValue(columns[1])
      else { continue }
      entities.append(
        ListedEntity(
          number: number, name: name, superNumber: Int.fromDatabaseValue(columns[2]) ?? 0))
    }
    return entities
  }

  /// Rows per entity, in the order of `entities`; `nil` where its table is missing.
  ///
  /// All entities below one root share the root's table and are told apart by `Z_ENT`.
  private static func countRows(
    _ db: Database, of entities: [ListedEntity], in structure: StoreStructure
  ) throws -> [Int?] {
    let byNumber = Dictionary(
      entities.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    let tables = Set(structure.tables.lazy.filter { !$0.columns.isEmpty }.map(\.name))
    func root(of entity: ListedEntity) -> ListedEntity {
      var current = entity
      // At most as many steps as there are entities: the list may hold a circle.
      for _ in entities {
        guard let above = byNumber[current.superNumber] else { break }
        current = above
      }
      return current
    }
    let roots = entities.map { root(of: $0) }
    var sharing: [Int: Int] = [:]
    for root in roots { sharing[root.number, default: 0] += 1 }
    var counts: [Int: [Int: Int]] = [:]
    return try zip(entities, roots).map { entity, root -> Int? in
      let table = "Z" + root.name.uppercased()
      guard tables.contains(table) else { return nil }
      if sharing[root.number] == 1 { return try countRows(db, of: table) }
      if counts[root.number] == nil {
        let rows = try Row.fetchAll(
          db, sql: "SELECT Z_ENT, count(*) FROM \(table.quotedDatabaseIdentifier) GROUP BY Z_ENT")
        var ofTable: [Int: Int] = [:]
        for row in rows {
          let columns = Array(row.databaseValues)
          guard let number = Int.fromDatabaseValue(columns[0]) else { continue }
          ofTable[number] = Int.fromDatabaseValue(columns[1])
        }
        counts[root.number] = ofTable
      }
      return counts[root.number]?[entity.number] ?? 0
    }
  }

  private static func countRows(_ db: Database, of table: String) throws -> Int? {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.quotedDatabaseIdentifier)")
  }
}
