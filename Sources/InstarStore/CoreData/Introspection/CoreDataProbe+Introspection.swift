internal import Foundation
internal import GRDB
internal import InstarSchema

extension CoreDataProbe {
  /// Reads the schema from the archived model, else from the metadata, else from the tables.
  func introspect(_ db: Database, path: String) throws -> () -> StoreIntrospection {
    var introspection = try introspection(db, path: path)
    introspection.archivedTypes = try archivedTypes(db, introspection.schema)
    return { introspection }
  }

  private func introspection(_ db: Database, path: String) throws -> StoreIntrospection {
    var reason = metadataProblem ?? "the store holds no model"
    do throws(InstarError) {
      if let introspection = try storedSchema(db) { return introspection }
    } catch {
      guard error.code == .corruptStore else { throw error }
      reason = error.cause
    }
    var tables = try CoreDataIntrospection(db, self, path: path)
    return try tables.read(version: schemaVersion, because: reason)
  }

  /// The schema in the archived model, else in the metadata; `nil` where the store has neither.
  ///
  /// - Throws: `corruptStore` where what the store has cannot be used.
  private func storedSchema(_ db: Database) throws(InstarError) -> StoreIntrospection? {
    guard let model = try CoreDataModel.read(db) else {
      return try stampedSchema(db).map {
        StoreIntrospection(origin: .metadata, schema: $0, notes: [])
      }
    }
    let names = Set(model.schema.entities.map(\.name))
    guard entityHashes.isEmpty || names == Set(entityHashes.keys) else {
      throw Self.unusable("the model in the store is of another version")
    }
    var introspection = StoreIntrospection(model, version: schemaVersion)
    try introspection.takeConditions(of: db)
    return introspection
  }

  /// The schema that the store was stamped with.
  ///
  /// - Throws: `corruptStore` where it does not fit the store's tables.
  private func stampedSchema(_ db: Database) throws(InstarError) -> Schema? {
    guard metadataProblem == nil, var schema = try CoreDataMetadata.read(db).readSchema() else {
      return nil
    }
    if let version = identity.version { schema.version = version }
    let structure: StoreStructure
    do {
      structure = try CoreDataLayout(schema: schema, conventions: conventions).structure
    } catch {
      throw Self.unusable("the schema in its metadata is invalid: \(error.cause)")
    }
    guard structure == identity.structure else {
      throw Self.unusable("the tables were changed since Instar wrote the schema in the metadata")
    }
    return schema
  }

  /// The types of the values that columns of type `Data` hold as archives, by "Entity.property", read off one value
  /// each.
  private func archivedTypes(_ db: Database, _ schema: Schema) throws -> [String: String] {
    let layout: CoreDataLayout
    do {
      layout = try CoreDataLayout(schema: schema, conventions: conventions)
    } catch {
      // A schema that cannot be laid out is refused where it is used.
      return [:]
    }
    var types: [String: String] = [:]
    for entity in layout.entities where tablesWithColumns.contains(entity.table) {
      for attribute in entity.attributes where attribute.attribute.type == .data {
        let value = try Self.whereReadable {
          try Data.fetchOne(
            db,
            sql: """
              SELECT \(attribute.column.name) FROM (
                SELECT Z_ENT, \(attribute.column.name) FROM \(entity.table) LIMIT 1000)
              WHERE Z_ENT = \(entity.number) AND typeof(\(attribute.column.name)) = 'blob'
                AND length(\(attribute.column.name)) < \(1 << 20) LIMIT 1
              """)
        }
        guard let value else { continue }
        var bytes = value
        if attribute.attribute.mayBeExternal,
          case .inline(let own) = ExternalValues.Form(stored: value)
        {
          bytes = Data(own)
        }
        types["\(entity.name).\(attribute.attribute.name)"] =
          ArchivedCollection.typeName(of: bytes)
      }
    }
    return types
  }

  private static func unusable(_ cause: String) -> InstarError {
    InstarError(.corruptStore, "cannot read the schema of the store", cause: cause)
  }
}

extension StoreIntrospection {
  fileprivate init(_ model: CoreDataModel, version: Schema.Version) {
    self.init(origin: .modelCache, schema: model.schema, notes: [])
    schema.version = version
    for entity in model.details.keys.sorted() {
      guard let details = model.details[entity] else { continue }
      notes += details.fetchedProperties.map {
        "'\($0)' of \(entity) is a fetched property, which is not stored: left out"
      }
      notes += details.transientRelationships.map {
        "'\($0)' of \(entity) is a transient relationship, which is not stored: left out"
      }
      notes += details.notes.map { "\(entity): \($0)" }
    }
  }

  /// Takes the conditions of partial indexes from the store's `CREATE INDEX` statements, because a model has them as
  /// predicates of Foundation.
  fileprivate mutating func takeConditions(of db: Database) throws(InstarError) {
    for position in schema.entities.indices {
      let entity = schema.entities[position].name
      for number in schema.entities[position].fetchIndexes.indices {
        let index = schema.entities[position].fetchIndexes[number]
        let name = CoreDataLayout.fetchIndexName(index.name, of: entity)
        guard index.isPartial, let condition = try Self.condition(of: name, db) else { continue }
        schema.entities[position].fetchIndexes[number].condition = condition
        schema.entities[position].fetchIndexes[number].partialPredicate = nil
      }
    }
  }

  private static func condition(of index: String, _ db: Database) throws(InstarError) -> String? {
    do {
      return try String.fetchOne(
        db, sql: "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?",
        arguments: [index]
      ).flatMap { CreateIndexText($0)?.condition }
    } catch {
      throw InstarError(error, what: "cannot read an index of the store")
    }
  }
}
