package import InstarSchema
internal import InstarStore
package import InstarWire

extension EmptyStore {
  /// Makes the change of schema of a stage.
  ///
  /// - Throws: as a run, where the store's structure is the cause.
  package func make(_ change: SchemaChange) throws(InstarError) -> [PlannedChange] {
    do {
      return try perform { session in try change.make(session) }
    } catch {
      throw Self.failure(of: error)
    }
  }

  /// As `make`. Returns the statements that were executed, in order, and the columns that they read.
  func makeCollectingReads(
    _ change: SchemaChange
  ) throws(InstarError) -> (value: [ChangeStep], reads: Set<ReadColumn>) {
    do {
      return try perform { session in
        try session.collectingReads { try change.makeSteps(session) }
      }
    } catch {
      throw Self.failure(of: error)
    }
  }

  private static func failure(of error: any Error) -> InstarError {
    error as? InstarError
      ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
  }
}
