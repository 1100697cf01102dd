internal import InstarChange
package import InstarSchema
package import InstarStore
package import InstarWire

/// The stages from one version of a plan to its last one. Fused stages are one stage here.
///
/// Everything that depends on the plan alone is computed once, when the path is created, because a keeper migrates many
/// stores along it.
package struct MigrationPath {
  var plan: String
  /// The schemas of the path, starting with the store's version. Never empty.
  var schemas: [Schema]
  /// One less than `schemas`.
  var stages: [StageManifest]

  package var from: Schema.Version { first.version }
  package var to: Schema.Version { last.version }
  package var first: Schema
  package var last: Schema
  /// Where the plan looks for the version of a plain store.
  var versionSource: VersionSource
  /// The properties of the first schema whose values the plan agrees to lose when their type changes.
  let acceptedLosses: [String]
  /// The invariants that the run must keep.
  package let invariants: [Invariant]
  /// The stages with the layouts of their versions.
  let schemaStages: [SchemaStage]
  /// Of the stages.
  let differences: [SchemaDifference]
  /// The properties whose stored values another type reads at the end.
  let readingChanges: [SchemaDifference.ReadingChange]
  /// The entities that are equal in the first schema and the last one.
  let unchangedEntities: Set<String>
  /// The entities of the first schema that the plan removes with their rows.
  package let removedEntities: Set<String>
  /// The attributes of the first schema that the plan removes, without those of removed entities, whose rows are
  /// counted.
  private(set) var endingAttributes: [EndingAttribute] = []
  /// The entities of the first schema whose rows lose a relationship that rows of others keep, by
  /// "Entity.relationship".
  package private(set) var relationshipLosers: [String: [String]] = [:]
  /// The properties of the last schema in several columns that are required there, and optional or missing in the
  /// first one.
  private(set) var newlyRequiredComposites: [(entity: String, property: String)] = []
  /// The relationship of the first schema that each one of the last schema continues, both as "Entity.relationship".
  private var relationshipOrigins: [String: String] = [:]
  /// The relationships of the last schema that continue one of the first, in the order of names: a relationship may
  /// have moved to several entities.
  private(set) var relationshipContinuations: [String: [String]] = [:]
  private let versions: [Schema.Version: PlanVersion]
  /// The schemas that the stages leave, by the schema before.
  private let expectedSchemas = BoundedCache<SchemaBefore, ExpectedSchema>()
  /// The properties that the last version reads as a narrower type of integer.
  let keptNarrowedProperties = KeptValue<[PropertyPath]>()
  /// The metadata with the last version, by the property list before and the fingerprint of the structure.
  let stampedMetadata = BoundedCache<[UInt8], CoreDataMetadata.Encoded>()

  /// Whether a version has large values in files.
  let hasExternalValues: Bool

  /// Whether no stage runs code of the plan.
  var isLightweight: Bool { stages.allSatisfy { $0.kind == .lightweight } }

  /// - Throws: `noMigrationPath` where a stage is missing, `invalidPlan` where stages form a cycle; `invalidModel`
  ///   where a schema has no layout.
  package init(from version: Schema.Version, in manifest: PlanManifest) throws(InstarError) {
    plan = manifest.name
    versionSource = manifest.versionSource
    acceptedLosses = manifest.acceptedLosses
    invariants = manifest.invariants
    let route = try Self.route(from: version, in: manifest)
    var versions: [PlanVersion] = []
    for version in route.versions {
      versions.append(
        PlanVersion(
          schema: version.schema, layout: try version.schema.layout(),
          name: version.name ?? "Schema \(version.schema.version)",
          valueShapes: version.valueShapes))
    }
    first = versions[0].schema
    last = versions[versions.count - 1].schema
    self.versions = Dictionary(firstOf: versions.map { ($0.schema.version, $0) })
    hasExternalValues = versions.contains { !$0.layout.externalColumns.isEmpty }
    schemaStages = SchemaStage.fused(
      route.stages.indices.map { index in
        SchemaStage(
          from: versions[index], to: versions[index + 1], kind: route.stages[index].kind,
          columnOrder: manifest.columnOrder, isImplicit: route.stages[index].isImplicit,
          label: route.stages[index].label,
          computedProperties: route.stages[index].computedProperties)
      })
    stages = schemaStages.map(\.manifest)
    schemas = [first] + schemaStages.map(\.to.schema)
    differences = schemaStages.map(\.difference)
    readingChanges = schemaStages.readingChanges
    unchangedEntities = Self.unchangedEntities(first, last)
    removedEntities = Self.removedEntities(first, last, differences)
    endingAttributes = attributesThatEnd()
    relationshipLosers = losersOfRelationships()
    newlyRequiredComposites = findNewlyRequiredComposites()
    for entity in last.entities {
      for relationship in entity.relationships {
        relationshipOrigins["\(entity.name).\(relationship.name)"] = findOrigin(
          of: relationship, in: entity.name)
      }
    }
    relationshipContinuations = Dictionary(
      grouping: relationshipOrigins.keys.sorted(), by: { relationshipOrigins[$0] ?? $0 })
  }

  /// Returns the stages from a version to the last one, and the versions that they pass: one more than stages.
  private static func route(
    from version: Schema.Version, in manifest: PlanManifest
  ) throws(InstarError) -> (versions: [VersionManifest], stages: [StageManifest]) {
    let what = "cannot migrate from \(version)"
    guard let start = manifest.versions.first(where: { $0.schema.version == version }),
      let target = manifest.versions.last?.schema.version
    else {
      throw InstarError(
        .noMigrationPath, what, cause: "plan '\(manifest.name)' has no schema \(version)",
        next: "add schema \(version) to the plan's 'schemas'")
    }
    var versions = [start]
    var stages: [StageManifest] = []
    var current = version
    while current != target {
      guard let stage = manifest.stages.first(where: { $0.from == current }),
        let next = manifest.versions.first(where: { $0.schema.version == stage.to })
      else {
        throw InstarError(
          .noMigrationPath, what,
          cause: "no stage starts at \(current); the plan ends at \(target)",
          next: "add a stage that starts at \(current) to the plan's 'stages'")
      }
      stages.append(stage)
      versions.append(next)
      current = stage.to
      guard stages.count <= manifest.stages.count else {
        throw InstarError(
          .invalidPlan, what, cause: "the stages of plan '\(manifest.name)' form a cycle",
          next: "let each stage end at a later version than it starts at")
      }
    }
    return (versions, stages)
  }

  /// The layout of a version of this path in a store with these conventions.
  ///
  /// - Throws: `invalidModel` where the schema has no layout.
  func layout(
    of schema: Schema, _ conventions: CoreDataConventions
  ) throws(InstarError) -> any StoreLayout {
    if let version = versions[schema.version] { return try version.layout(conventions) }
    return try schema.layout(conventions: conventions)
  }

  /// Returns what the stages leave in a store.
  ///
  /// - Parameter rows: Statements that write the rows that a change of schema reads.
  /// - Throws: The error that would end the run where the store's structure is the cause.
  func expectedSchema(
    after schema: SchemaText, rows: [String]
  ) throws(InstarError) -> ExpectedSchema {
    let key = schema.key.map { SchemaBefore(schema: $0, rows: rows.map { Array($0.utf8) }) }
    return try expectedSchemas.value(of: key) { () throws(InstarError) in
      try schema.after(schemaStages, rows: rows)
    }
  }

  /// What the schema after the stages follows from.
  private struct SchemaBefore: Hashable {
    let schema: SchemaText.Key
    /// As bytes: texts that Unicode treats as equal differ for SQLite.
    let rows: [[UInt8]]
  }

  /// The queries whose answers on the store, before the stages, are needed afterwards.
  package var queriesBefore: [PlanQuery] {
    invariants.compactMap { invariant in
      invariant.rule.query(before: from).map { PlanQuery($0, of: invariant.name) }
    }
  }

  /// The queries of the invariants for the migrated clone.
  var queriesAfter: [PlanQuery] {
    invariants.compactMap { invariant in
      invariant.rule.query.map { PlanQuery($0, of: invariant.name) }
    }
  }

  /// Refuses a lightweight stage between versions that need code, whatever the rows are.
  ///
  /// - Throws: `needsCustomStage`.
  func requirePossibleStages() throws(InstarError) {
    for stage in schemaStages { try StageCheck.check(stage, plan: plan) }
  }

  /// The original names that the version before does not have, at each stage of the plan. A stage that joins several
  /// compares versions that do not follow each other.
  var unknownOriginalNames: [SchemaDifference.UnknownOriginalName] {
    schemaStages.flatMap(\.parts).flatMap { part in
      guard let from = versions[part.from]?.schema, let to = versions[part.to]?.schema else {
        return [SchemaDifference.UnknownOriginalName]()
      }
      return SchemaDifference(from: from, to: to).unknownOriginalNames
    }
  }

  /// Returns the name that an entity of the last schema had in the first one; `nil` where the entity is new.
  func origin(of entity: String) -> String? { Self.origin(of: entity, before: differences) }

  private static func origin(
    of entity: String, before differences: [SchemaDifference]
  ) -> String? {
    var name = entity
    for difference in differences.reversed() {
      guard let before = difference.sourceName(of: name) else { return nil }
      name = before
    }
    return name
  }

  /// Returns the relationship of the first schema, as "Entity.relationship", that a relationship of the last one
  /// continues through renames and moves; `nil` where it is new.
  func origin(of relationship: Schema.Relationship, in entity: String) -> String? {
    relationshipOrigins["\(entity).\(relationship.name)"]
  }

  private func findNewlyRequiredComposites() -> [(entity: String, property: String)] {
    last.entities.flatMap { entity in
      Dictionary(
        grouping: entity.attributes.filter { $0.isPartOfComposite && !$0.isEphemeral },
        by: \.compositeName
      ).filter { $1[0].declaration.isRequiredComposite && !$1.canAllBeEmpty }.keys.sorted()
        .filter { isNewlyRequired($0, of: entity.name) }.map { (entity.name, $0) }
    }
  }

  /// Whether a required composite of the last schema is new, or was optional in the first one.
  private func isNewlyRequired(_ composite: String, of entity: String) -> Bool {
    var (entity, name) = (entity, composite)
    for difference in differences.reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == entity }) else {
        return false
      }
      // Text that is not the name of a case is dropped, which the plan and the report say.
      if difference.retypedEnums(mapping).contains(where: { $0.name == name }) { return false }
      guard let before = mapping.sourceName(of: name) else { return true }
      // A new entity takes it over from entities below.
      guard let source = mapping.old else { return false }
      (entity, name) = (source.name, before)
    }
    // It may have moved here from another entity of the hierarchy.
    guard let entity = first.entitiesByName[entity] else { return false }
    return SchemaDifference.family(of: entity, in: first).lazy.flatMap(\.attributes)
      .first { $0.isPartOfComposite && $0.compositeName == name }
      .map { !$0.declaration.isRequiredComposite } ?? false
  }

  private func findOrigin(of relationship: Schema.Relationship, in entity: String) -> String? {
    var (owner, name) = (entity, relationship.name)
    for (difference, schema) in zip(differences, schemas).reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == owner }),
        let source = mapping.old,
        let before = mapping.relationships.first(where: { $0.new.name == name })?.old
      else { return nil }
      name = before.name
      // The relationship may have moved here from a superclass or a subclass.
      let declaring = schema.entities.filter { $0.relationshipsByName[before.name] == before }
      owner =
        declaring.first { $0.name == source.name }?.name ?? declaring.first?.name ?? source.name
    }
    return "\(owner).\(name)"
  }

  private static func removedEntities(
    _ first: Schema, _ last: Schema, _ differences: [SchemaDifference]
  ) -> Set<String> {
    let origins = last.entities.compactMap { origin(of: $0.name, before: differences) }
    return Set(first.entities.map(\.name)).subtracting(origins)
  }

  private static func unchangedEntities(_ first: Schema, _ last: Schema) -> Set<String> {
    let before = first.entitiesByName
    return Set(
      last.entities.lazy.filter { entity in
        guard let earlier = before[entity.name] else { return false }
        return CoreDataMetadata.canonicalText(of: earlier)
          == CoreDataMetadata.canonicalText(of: entity)
      }.map(\.name))
  }
}
