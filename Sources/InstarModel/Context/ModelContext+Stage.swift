import Foundation
package import InstarSchema
package import InstarStore

extension ModelContext {
  /// Creates the context for a stage's closure or check: the models of one version of the plan, on the clones.
  ///
  /// - Parameters:
  ///   - clones: At least one; each with the models that are in its store, and the path of that store, which the
  ///     context's configurations name; `nil` for a store in memory.
  ///   - other: The schemas of the stage's other version, whose classes the closure must not use.
  ///   - closure: `nil` for a check.
  ///   - keptValues: The scratchpad of the run.
  ///   - isReadOnly: Whether a save is refused.
  ///   - meter: Measures the work of the closure.
  /// - Throws: `unknownVersion` if the structure of a clone does not match its schema.
  package static func forStage(
    _ clones: [(schema: Schema, connection: StoreConnection, store: String?)], other: [Schema],
    closure: StageClosure?, keptValues: ScratchpadStore, isReadOnly: Bool = false,
    meter: WorkMeter? = nil
  ) throws -> ModelContext {
    let schemas = clones.map(\.schema)
    let whole = Schema(
      entities: schemas.flatMap(\.entities), version: schemas[0].version,
      modelTypes: schemas[0].modelTypes)
    let own = Set(whole.models.map { ObjectIdentifier($0) })
    let stores = try clones.map {
      try ModelStore(
        schema: $0.schema, connection: $0.connection, place: "the clone", allowsSave: !isReadOnly,
        creatingWhereEmpty: false)
    }
    let container = ModelContainer(
      stores: try ModelStores(
        stores, schema: schemas.count == 1 ? schemas[0] : whole,
        stageFailures: StageFailures(),
        excludedTypes: Set(other.flatMap(\.models).map { ObjectIdentifier($0) }).subtracting(own)),
      configurations: Set(
        clones.map { clone in
          clone.store.map { ModelConfiguration(url: URL(filePath: $0)) }
            ?? ModelConfiguration(isStoredInMemoryOnly: true)
        }))
    return ModelContext(container, closure: closure, keptValues: keptValues, meter: meter)
  }
}
