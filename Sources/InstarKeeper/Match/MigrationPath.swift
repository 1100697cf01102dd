package import InstarSchema
internal import InstarStore
package import InstarWire

/// The stages from a version to the last one of a plan, worked out from the plan's manifest.
package struct MigrationPath {
  var plan: String
  /// The schemas on the way, the one the store is at first. Never empty.
  var schemas: [Schema]
  /// One less than `schemas`.
  var stages: [StageManifest]

  package var from: Schema.Version { first.version }
  package var to: Schema.Version { last.version }
  package var first: Schema
  package var last: Schema
  /// Where a plain store of the plan says its version.
  var versionSource: VersionSource
  /// Between each two of `schemas`.
  let differences: [SchemaDifference]

  /// Whether no code of the plan changes the data on this way.
  var isLightweight: Bool { stages.allSatisfy { $0.kind == .lightweight } }

  /// - Throws: `noMigrationPath` where stages are missing, `invalidPlan` where they go in a circle.
  package init(from version: Schema.Version, in manifest: PlanManifest) throws(InstarError) {
    let what = "cannot migrate from \(version)"
    plan = manifest.name
    versionSource = manifest.versionSource
    guard let start = manifest.versions.first(where: { $0.schema.version == version })?.schema,
      let target = manifest.versions.last?.schema
    else {
      throw InstarError(
        .noMigrationPath, what, cause: "plan '\(manifest.name)' has no schema \(version)")
    }
    schemas = [start]
    stages = []
    first = start
    last = target
    var current = version
    while current != target.version {
      guard let stage = manifest.stages.first(where: { $0.from == current }),
        let next = manifest.versions.first(where: { $0.schema.version == stage.to })?.schema
      else {
        throw InstarError(
          .noMigrationPath, what,
          cause: "no stage leads on from \(current); the last version is \(target.version)",
          next: "add a stage that starts at \(current)")
      }
      stages.append(stage)
      schemas.append(next)
      current = stage.to
      guard stages.count <= manifest.stages.count else {
        throw InstarError(
          .invalidPlan, what, cause: "the stages of plan '\(manifest.name)' go in a circle")
      }
    }
    differences = zip(schemas, schemas.dropFirst()).map { SchemaDifference(from: $0, to: $1) }
  }

  /// The name that an entity of the last schema had in the first one; `nil` where it is new.
  func origin(of entity: String) -> String? {
    var name = entity
    for difference in differences.reversed() {
      guard let before = difference.sourceName(of: name) else { return nil }
      name = before
    }
    return name
  }

  /// "Entity.relationship" of the first schema that a relationship of the last one continues, followed back through renames
  /// and moves; `nil` where it is new.
  func origin(of relationship: Schema.Relationship, in entity: String) -> String? {
    var (owner, name) = (entity, relationship.name)
    for (difference, schema) in zip(differences, schemas).reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == owner }),
        let source = mapping.old,
        let before = mapping.relationships.first(where: { $0.new.name == name })?.old
      else { return nil }
      name = before.name
      // It may have moved here from an entity above or below.
      let declaring = schema.entities.filter { $0.relationshipsByName[before.name] == before }
      owner =
        declaring.first { $0.name == source.name }?.name ?? declaring.first?.name ?? source.name
    }
    return "\(owner).\(name)"
  }

  /// Entities that are the same in the first schema and the last one.
  var unchangedEntities: Set<String> {
    let before = first.entitiesByName
    return Set(
      last.entities.lazy.filter { entity in
        guard let earlier = before[entity.name] else { return false }
        return CoreDataMetadata.canonicalText(of: earlier)
          == CoreDataMetadata.canonicalText(of: entity)
      }.map(\.name))
  }
}
