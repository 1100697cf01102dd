import InstarSchema
package import InstarStore

/// What a plan adds to the change of schema of a stage, apart from closures: SQL statements and transforms.
package struct StageCode: Sendable {
  /// Run in their order before the change of schema.
  package var before: [PlanStatement] = []
  /// Run in their order after the change of schema.
  package var after: [PlanStatement] = []
  package var transforms: [EntityTransform] = []
  /// The table with the version of the store, which the plan's SQL may not write; `nil` for none.
  package var versionTable: String?
  /// Called before each row that a statement inserts, changes or deletes; an error that it throws fails the statement.
  package var beforeWrite: (@Sendable () throws -> Void)?

  /// Nothing.
  package init() {}
}

extension StageCode {
  /// Runs the statements of one side of the change of schema on a store that is discarded after an error. The app's
  /// triggers fire, as when a context saves.
  ///
  /// - Parameter place: "before" or "after", for errors and comments.
  func run(
    _ side: KeyPath<StageCode, [PlanStatement]>, _ place: String, _ layout: any StoreLayout,
    _ session: SQLSession
  ) throws -> [ChangeStep] {
    let statements = self[keyPath: side]
    if statements.isEmpty { return [] }
    session.versionTable = versionTable
    if layout.enforcesForeignKeys { try session.useOrdinaryTables() }
    return try session.watchingWrites(beforeWrite) {
      try session.transactionWithoutRollback {
        try statements.enumerated().map { index, statement in
          try Self.run(
            statement,
            "statement \(index + 1) of \(statements.count) \(place) the change of schema",
            reason: "runs SQL of the plan \(place) the change of schema", layout.format, session)
        }
      }
    }
  }

  private static func run(
    _ statement: PlanStatement, _ name: String, reason: String, _ format: StoreFormat,
    _ session: SQLSession
  ) throws -> ChangeStep {
    do {
      let prepared = try statement.prepare(session, format)
      guard let table = prepared.writtenTable else {
        throw InstarError(
          .unsupported, "cannot run a statement of the plan",
          cause: "the statement writes nothing - in `\(statement.sql)`",
          next: "remove the statement from the stage")
      }
      try session.run(prepared)
      return ChangeStep(
        statement.sql, name, .conversion, rowChange: .writes, table: table, reason: reason)
    } catch var error as InstarError {
      error.cause = "\(name): \(error.cause)"
      throw error
    }
  }
}
