package import InstarSchema
package import InstarStore
package import InstarWire
import Synchronization

/// One version of a plan, with the layout of its stores.
package struct PlanVersion: Sendable {
  package let schema: Schema
  /// The layout in a new store.
  package let layout: any StoreLayout
  /// The name of the `VersionedSchema` type.
  package let name: String
  /// What the types of properties read, by "Entity.property", where a type may refuse a stored value.
  package let valueShapes: [String: ValueShape]
  private let coreDataLayouts = BoundedCache<CoreDataConventions, CoreDataLayout>()

  package init(
    schema: Schema, layout: any StoreLayout, name: String,
    valueShapes: [String: ValueShape] = [:]
  ) {
    self.schema = schema
    self.layout = layout
    self.name = name
    self.valueShapes = valueShapes
  }

  /// Returns the layout in a store with these conventions, made once for all stores that have them.
  ///
  /// - Throws: `invalidModel` where the schema has no layout.
  package func layout(
    _ conventions: CoreDataConventions
  ) throws(InstarError) -> any StoreLayout {
    // A plain store has those of a new store.
    conventions == CoreDataConventions() ? layout : try coreDataLayout(conventions)
  }

  /// As `layout`, for a version in the format `coredata`.
  func coreDataLayout(
    _ conventions: CoreDataConventions
  ) throws(InstarError) -> CoreDataLayout {
    // A hostile store may have any number of join tables, and is not kept.
    let key = conventions.joinTables.count > schema.entities.count * 100 ? nil : conventions
    return try coreDataLayouts.value(of: key) { () throws(InstarError) in
      try CoreDataLayout(schema: schema, conventions: conventions)
    }
  }

  /// Returns what in a change to this version needs code, whatever the rows are.
  package func reasonsForCode(in difference: SchemaDifference) -> [String] {
    difference.changes.filter { $0.rowsInNeed == nil }.compactMap(\.reasonForCustomStage)
      + (layout.movesLinks ? [] : difference.linksToMoveBetweenTables)
  }
}

/// A stage between two versions of a plan, without the plan's code.
///
/// What follows from the versions alone is worked out once: a keeper makes the same stage on many stores.
package struct SchemaStage: Sendable {
  package let from: PlanVersion
  package let to: PlanVersion
  package let kind: StageManifest.Kind
  package let columnOrder: ColumnOrder
  /// The plan's own stages that this one makes, in their order; several where they are made as one (see `fused`).
  package let parts: [StageManifest]
  package let difference: SchemaDifference
  /// What in the difference needs code, whatever the rows are.
  let reasonsForCode: [String]
  /// The changes that need code where the store has certain rows.
  package let changesThatNeedRows: [SchemaDifference.Change]
  /// See `needsTypes`.
  let typesAreNeeded = KeptValue<Bool>()

  /// One stage of the plan, or one that Instar adds because the plan has none.
  package init(
    from: PlanVersion, to: PlanVersion, kind: StageManifest.Kind, columnOrder: ColumnOrder,
    isImplicit: Bool, label: String? = nil, computedProperties: [String]? = nil
  ) {
    let part = StageManifest(
      from: from.schema.version, to: to.schema.version, kind: kind, isImplicit: isImplicit,
      label: label, computedProperties: computedProperties)
    self.init(from: from, to: to, kind: kind, columnOrder: columnOrder, parts: [part])
  }

  init(
    from: PlanVersion, to: PlanVersion, kind: StageManifest.Kind, columnOrder: ColumnOrder,
    parts: [StageManifest]
  ) {
    self.from = from
    self.to = to
    self.kind = kind
    self.columnOrder = columnOrder
    self.parts = parts
    difference = SchemaDifference(from: from.schema, to: to.schema)
    reasonsForCode = to.reasonsForCode(in: difference)
    changesThatNeedRows = difference.changes.filter { $0.rowsInNeed != nil }
  }

  /// Whether existing rows refuse a change whatever code runs after it: an ordinary table gets a NOT NULL column, and
  /// no transform computes its values.
  package func addsEmptyColumn(_ change: SchemaDifference.Change) -> Bool {
    guard let property = change.property, difference.addsEmptyColumn(change) else { return false }
    let path = "\(change.entity).\(property)"
    return !parts.contains { $0.computedProperties?.contains(path) == true }
  }

  package var manifest: StageManifest {
    StageManifest(
      from: from.schema.version, to: to.schema.version, kind: kind,
      isImplicit: parts.allSatisfy(\.isImplicit), label: label,
      computedProperties: parts.flatMap { $0.computedProperties ?? [] })
  }

  /// The labels of all parts that have one.
  private var label: String? {
    let labels = parts.compactMap(\.label)
    return labels.isEmpty ? nil : labels.joined(separator: ", ")
  }

  /// What an error says could not be done.
  var what: String { "cannot migrate from \(from.schema.version) to \(to.schema.version)" }

  /// Returns the source of a custom stage between the two versions.
  package var customStageSource: String { Self.customStageSource(from.name, to.name) }

  /// Returns the source of a custom stage between two schemas.
  package static func customStageSource(_ from: String, _ to: String) -> String {
    """
    .custom(fromVersion: \(from).self, toVersion: \(to).self,
      willMigrate: { context in … }, didMigrate: { context in … })
    """
  }
}

/// A value that all copies of its owner share, made at its first use.
package final class KeptValue<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)

  package init() {}

  package func get(orMake make: () -> Value) -> Value {
    value.withLock { value in
      let made = value ?? make()
      value = made
      return made
    }
  }
}

extension [SchemaStage] {
  /// The properties of the last version whose stored values another type reads than in the first, with its names.
  package var readingChanges: [SchemaDifference.ReadingChange] {
    guard contains(where: { $0.from.valueShapes != $0.to.valueShapes }) else { return [] }
    return reduce(into: []) { found, stage in
      let earlier = stage.difference.following(found, to: stage.to.valueShapes)
      let own = stage.difference.readingChanges(
        from: stage.from.valueShapes, to: stage.to.valueShapes)
      found =
        earlier
        + own.filter { change in
          !earlier.contains { ($0.entity, $0.property) == (change.entity, change.property) }
        }
    }
  }
}
