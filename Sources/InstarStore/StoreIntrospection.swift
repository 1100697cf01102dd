internal import GRDB
public import InstarSchema

/// What a store tells of its schema.
public struct StoreIntrospection: Sendable {
  /// Where it was found.
  public enum Origin: Sendable, Hashable {
    /// The archived model in `Z_MODELCACHE`.
    case modelCache
    /// The schema in the metadata of a store that Instar made or migrated.
    case metadata
    /// The tables alone.
    case tables
  }

  public var origin: Origin
  /// Of the version that the store declares, or 1.0.0.
  public var schema: Schema
  /// "Note.kind": composites whose columns are the cases of an enum, and enums with a raw value.
  public var enumerations: [String] = []
  /// "Note.kind": composites that every model has a value of.
  public var requiredComposites: [String] = []
  /// What of the store the schema does not say, one sentence each.
  public var notes: [String]

  init(origin: Origin, schema: Schema, notes: [String]) {
    self.origin = origin
    self.schema = schema
    self.notes = notes
  }

  /// Probes the store at a path, and reads its schema.
  ///
  /// - Throws: what `StoreProbe.read` throws. The store is as it was in any case.
  public static func read(
    _ path: String
  ) throws(InstarError) -> (probe: StoreProbe, introspection: StoreIntrospection) {
    var found: StoreIntrospection?
    var tables: PlainTables?
    let probe = try StoreProbe.read(path, rows: .none, busyTimeout: 1) { db, probe in
      switch probe.identity.format {
      case .coredata: found = try read(db, probe)
      case .plain: tables = try PlainTables(db)
      }
    }
    if let tables {
      var introspection = PlainIntrospection(tables, probe)
      found = introspection.read(version: version(of: probe))
    }
    guard let found else {
      throw InstarError(
        .internalError, "cannot read the schema of '\(path)'", cause: "nothing was read")
    }
    return (probe, found)
  }

  /// Reads the schema of a store in the Core Data format that is open and was probed.
  private static func read(_ db: Database, _ probe: StoreProbe) throws -> StoreIntrospection {
    let version = version(of: probe)
    var tables = try CoreDataIntrospection(db, probe)
    let carried: CoreDataModel?
    do {
      carried = try CoreDataModel.read(db)
    } catch {
      guard error.code == .corruptStore else { throw error }
      return try tables.read(version: version, because: error.cause)
    }
    guard let model = carried else {
      if let schema = try stampedSchema(db, probe) {
        return StoreIntrospection(origin: .metadata, schema: schema, notes: [])
      }
      return try tables.read(version: version, because: "it carries no model")
    }
    let names = Set(model.schema.entities.map(\.name))
    guard probe.entityHashes.isEmpty || names == Set(probe.entityHashes.keys) else {
      return try tables.read(
        version: version, because: "the model that it carries is of another version")
    }
    var introspection = StoreIntrospection(model, version: version)
    try introspection.takeConditions(of: db)
    return introspection
  }

  private static func version(of probe: StoreProbe) -> Schema.Version {
    probe.identity.version ?? Schema.Version(1, 0, 0)
  }

  /// The schema that the store was stamped with, if the store is still built so.
  private static func stampedSchema(_ db: Database, _ probe: StoreProbe) throws -> Schema? {
    guard var schema = try? CoreDataMetadata.read(db).schema else { return nil }
    if let version = probe.identity.version { schema.version = version }
    guard let layout = try? CoreDataLayout(schema: schema, conventions: probe.conventions),
      layout.structure == probe.identity.structure
    else { return nil }
    return schema
  }

  /// What the model says that a store carries.
  private init(_ model: CoreDataModel, version: Schema.Version) {
    origin = .modelCache
    schema = model.schema
    schema.version = version
    notes = []
    for entity in model.details.keys.sorted() {
      guard let details = model.details[entity] else { continue }
      for composite in details.composites {
        let path = "\(entity).\(composite.property)"
        if composite.isEnumeration { enumerations.append(path) }
        if !composite.isOptional { requiredComposites.append(path) }
      }
      notes += details.fetchedProperties.map {
        "'\($0)' of \(entity) is fetched each time and not stored: it is left out"
      }
      notes += details.notes.map { "\(entity): \($0)" }
    }
  }

  /// Says of which rows a partial index is as the store's own `CREATE INDEX` does: a model has predicates of Foundation.
  private mutating func takeConditions(of db: Database) throws {
    for position in schema.entities.indices {
      let entity = schema.entities[position].name
      for number in schema.entities[position].fetchIndexes.indices {
        let index = schema.entities[position].fetchIndexes[number]
        guard index.isPartial,
          let sql = try String.fetchOne(
            db, sql: "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?",
            arguments: [CoreDataLayout.fetchIndexName(index.name, of: entity)]),
          let condition = CreateIndexText(sql)?.condition
        else { continue }
        schema.entities[position].fetchIndexes[number].condition = condition
        schema.entities[position].fetchIndexes[number].partialPredicate = nil
      }
    }
  }
}
