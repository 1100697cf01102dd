import Foundation
import InstarSchema
import InstarStore
import InstarWire

/// A store in memory that is made of what another one is made of, without its rows: the changes of schema that a plan shows
/// are made on it, by the code that makes them on a clone.
struct EmptyStore {
  private let connection: StoreConnection

  /// - Throws: `unexpectedStructure` where SQLite does not take what the store is made of: conditions of a table may call
  ///   functions that only the app has. Altering the table does not need them.
  init(_ sketch: StoreDDL) throws(InstarError) {
    guard !sketch.statements.isEmpty else {
      throw Self.failure("there are too many tables and indexes")
    }
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        if sketch.format == .plain {
          try session.useOrdinaryTables()
          try session.run("PRAGMA foreign_keys = OFF")
        }
        for statement in sketch.statements { try session.run(statement) }
        guard sketch.format == .coredata else { return }
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
      throw Self.failure("SQLite does not take them without the app: \(known?.cause ?? "\(error)")")
    }
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot make the store's tables for a plan", cause: cause)
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
        switch (stage.from.layout, stage.to.layout) {
        case (.coreData, .coreData):
          let conventions = try CoreDataConventions(of: session.database)
          let old = try CoreDataLayout(schema: stage.from.schema, conventions: conventions)
          let new = try CoreDataLayout(
            schema: stage.to.schema, conventions: old.conventions(after: difference))
          return try CoreDataChangeExecutor(stage: stage, difference: difference).run(
            session, from: old, to: new)
        case (.plain(let old), .plain(let new)):
          return try PlainChangeExecutor(
            change: PlainChange(old: old, new: new, difference: difference), session: session
          ).run()
        case (.coreData, .plain), (.plain, .coreData): return []
        }
      }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }
}
