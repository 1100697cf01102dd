import Foundation
package import InstarSchema
package import InstarStore
package import InstarWire

/// An in-memory store with another store's schema and no rows: a preview makes the changes of a plan on it.
package struct EmptyStore {
  private let connection: StoreConnection

  /// - Throws: `unexpectedStructure` where SQLite cannot create the tables: their conditions may call functions that
  ///   only the app has. Altering such a table does not need them.
  package init(_ ddl: StoreDDL) throws(InstarError) {
    guard !ddl.statements.isEmpty else {
      throw Self.failure("the store has too many tables and indexes")
    }
    connection = try StoreConnection(inMemory: nil)
    do {
      try connection.perform { session in
        try session.useOrdinaryTables()
        try session.run("PRAGMA foreign_keys = OFF")
        for statement in ddl.statements { try session.run(statement) }
      }
    } catch {
      let known = error as? InstarError
      throw Self.failure("SQLite cannot create them without the app: \(known?.cause ?? "\(error)")")
    }
  }

  /// The store as Instar itself creates it for a version.
  package init(of layout: any StoreLayout) throws(InstarError) {
    let statements: [String]
    do {
      statements = try layout.emptyStoreStatements()
    } catch {
      throw Self.failure("\(error)")
    }
    try self.init(StoreDDL(statements: statements))
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot create the store's tables for a preview", cause: cause)
  }

  /// Makes the change of schema of a stage.
  ///
  /// - Throws: as a run, where the store's structure is the cause.
  package func make(_ change: SchemaChange) throws(InstarError) -> [PlannedChange] {
    do {
      return try connection.perform { session in try change.make(session) }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }
}
