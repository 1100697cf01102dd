package import InstarSchema
package import InstarStore

extension SchemaText {
  /// Returns the schema that stages leave in a store with this one. Their changes are made on an empty copy of it, by
  /// the code that a run uses.
  ///
  /// - Parameters:
  ///   - stages: In the order in which they run.
  ///   - rows: Statements that write the rows that a change of schema reads.
  /// - Throws: The error that would end the run where the store's structure is the cause.
  package func after(_ stages: [SchemaStage], rows: [String]) throws(InstarError) -> SchemaText {
    let store = try EmptyStore(copying: self, rows: rows)
    for stage in stages { _ = try store.make(SchemaChange(stage)) }
    return try store.schemaText()
  }
}
