package import InstarSchema
package import InstarStore

extension ModelContext {
  /// The context that a stage's closure is given: the models of one version of the plan, on the clone.
  ///
  /// - Parameter phase: "willMigrate" or "didMigrate", as errors name it.
  /// - Throws: `unknownVersion` where the clone is not built like `schema`.
  package static func forStage(
    schema: Schema, connection: StoreConnection, phase: String
  ) throws -> ModelContext {
    let store = try ModelStore(schema: schema, connection: connection, creatingWhereEmpty: false)
    let container = ModelContainer(
      schema: schema, store: store, configurations: [ModelConfiguration(isStoredInMemoryOnly: true)]
    )
    return ModelContext(container, phase: phase)
  }
}
