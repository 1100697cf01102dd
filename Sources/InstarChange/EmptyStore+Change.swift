package import InstarSchema
package import InstarWire

extension EmptyStore {
  /// Makes the change of schema of a stage.
  ///
  /// - Throws: as a run, where the store's structure is the cause.
  package func make(_ change: SchemaChange) throws(InstarError) -> [PlannedChange] {
    do {
      return try perform { session in try change.make(session) }
    } catch {
      throw error as? InstarError
        ?? InstarError(.sqlFailed, "cannot plan the change of schema", cause: "\(error)")
    }
  }
}
