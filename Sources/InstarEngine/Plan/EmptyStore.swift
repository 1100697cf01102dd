import Foundation
import InstarSchema
import InstarStore
import InstarWire

/// A store in memory that is made of what another one is made of, without its rows: the changes of schema that a plan shows
/// are made on it, by the code that makes them on a clone.
struct EmptyStore {
  private let connection: StoreConnection

  /// - Throws: `unexpectedStructure` where SQLite does not take what the store is made of.
  init(_ sketch: StoreSketch) throws(InstarError) {
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        for statement in sketch.statements { try session.run(statement) }
        for entity in sketch.entities {
          let insertion = try session.statement(
            "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, 0)")
          insertion.bind(Int64(entity.number), at: 1)
          insertion.bind(entity.name, at: 2)
          insertion.bind(Int64(entity.superNumber), at: 3)
          try insertion.run()
        }
        let metadata = try session.statement(
          "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, '', ?)")
        metadata.bind(
          try CoreDataMetadata.propertyList(
            frameworkVersion: sketch.frameworkVersion, isMadeByInstar: sketch.isMadeByInstar),
          at: 1)
        try metadata.run()
      }
    } catch {
      let known = error as? InstarError
      throw InstarError(
        .unexpectedStructure, "cannot plan the change of schema",
        cause: "the store is made of what SQLite does not take: \(known?.cause ?? "\(error)")")
    }
  }

  /// Makes the change of schema of a stage.
  ///
  /// - Returns: the statements that were run.
  /// - Throws: what ends a run for what the store is made of.
  func change(
    _ stage: PlanDefinition.Stage, _ difference: SchemaDifference
  ) throws(InstarError) -> [String] {
    do {
      return try connection.perform { session in
        let conventions = try CoreDataConventions(of: session.database)
        return try SchemaChange(stage: stage, difference: difference).run(
          session, from: CoreDataLayout(schema: stage.from.schema, conventions: conventions),
          to: CoreDataLayout(schema: stage.to.schema, conventions: conventions))
      }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }
}
