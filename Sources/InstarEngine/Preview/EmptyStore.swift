import Foundation
import InstarSchema
import InstarStore
import InstarWire

/// An in-memory store with another store's schema and no rows: a preview makes the changes of a plan on it.
struct EmptyStore {
  private let connection: StoreConnection

  /// - Throws: `unexpectedStructure` where SQLite cannot create the tables: their conditions may call functions that
  ///   only the app has. Altering such a table does not need them.
  init(_ ddl: StoreDDL) throws(InstarError) {
    guard !ddl.statements.isEmpty else {
      throw Self.failure("the store has too many tables and indexes")
    }
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        if ddl.format == .plain {
          try session.useOrdinaryTables()
          try session.run("PRAGMA foreign_keys = OFF")
        }
        for statement in ddl.statements { try session.run(statement) }
        guard ddl.format == .coredata else { return }
        for entity in ddl.entities {
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
            frameworkVersion: ddl.frameworkVersion, isMadeByInstar: ddl.isMadeByInstar),
          at: 1)
        try metadata.run()
      }
    } catch {
      let known = error as? InstarError
      throw Self.failure("SQLite cannot create them without the app: \(known?.cause ?? "\(error)")")
    }
  }

  /// The store as Instar itself creates it for a version.
  init(of layout: StoreLayout) throws(InstarError) {
    // The statements of a Core Data layout list the entities too.
    try self.init(
      StoreDDL(
        format: layout.format, statements: layout.createStatements + layout.triggerStatements,
        isMadeByInstar: true))
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot create the store's tables for a preview", cause: cause)
  }

  /// Makes the change of schema of a stage.
  ///
  /// - Throws: as a run, where the store's structure is the cause.
  func make(_ change: SchemaChange) throws(InstarError) -> [PlannedChange] {
    do {
      return try connection.perform { session in try change.make(session) }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }
}
