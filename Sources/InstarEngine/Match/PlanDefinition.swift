package import InstarChange
package import InstarModel
package import InstarSchema
import InstarStore
package import InstarWire

/// A checked migration plan: its versions in order, each with its layout, and its stages.
package struct PlanDefinition: Sendable {
  package let name: String
  /// Oldest first.
  package let versions: [PlanVersion]
  /// Those of the plan, and those that Instar adds.
  private(set) var stages: [MigrationStage]
  /// The versions at which the stages start that Instar adds.
  private let implicitStarts: Set<Schema.Version>
  private let notes: [String]
  private let columnOrder: ColumnOrder
  private let versionSource: VersionSource
  private let importedVersions: [ToolVersion: Schema.Version]
  private let acceptedLosses: [String]
  package let invariants: [Invariant]

  /// A stage between two versions of this plan, with its closures.
  package struct Stage: Sendable {
    package let schemas: SchemaStage
    let stage: MigrationStage
    let versionSource: VersionSource

    package var from: PlanVersion { schemas.from }
    package var to: PlanVersion { schemas.to }
    package var manifest: StageManifest { schemas.manifest }

    /// The change of schema. Values that the new type of a property decodes are carried over.
    var change: SchemaChange {
      SchemaChange(
        schemas,
        decodes: { schema, entity, attribute in
          guard let type = schema.decodedType(of: attribute, in: entity) else { return nil }
          return { Schema.canDecode($0, as: type) }
        }, code: stage.work.code(versionSource, beforeWrite: stage.beforeWrite))
    }
  }

  /// Where no stage starts at a version, a lightweight one goes to the next version if that is possible: apps have
  /// several schemas and `stages: []`, because SwiftData makes lightweight changes without a stage. A stage from a
  /// version to itself is ignored, and noted.
  ///
  /// - Throws: `invalidPlan`, `incompleteSchema` or `invalidModel`, naming the plan and the version. No store is
  ///   opened.
  package init(_ plan: any SchemaMigrationPlan.Type) throws(InstarError) {
    name = "\(plan)"
    let what = "cannot use plan \(name)"
    let (versions, types) = try Self.versions(of: plan, what)
    let (stages, ignored) = try Self.stages(
      of: plan, among: Set(versions.map(\.schema.version)), what)
    let starts = Set(stages.map { $0.fromVersion.versionIdentifier })
    let implicit = Self.implicitStages(between: versions, besides: starts, types)
    notes =
      versions.flatMap(\.schema.replacedClasses) + ignored
      + implicit.map {
        Self.note(ofStageFrom: $0.fromVersion.versionIdentifier, to: $0.toVersion.versionIdentifier)
      }
    self.versions = versions
    self.stages = stages + implicit
    implicitStarts = Set(implicit.map { $0.fromVersion.versionIdentifier })
    versionSource = plan.versionSource
    importedVersions = plan.importedVersions
    acceptedLosses = plan.acceptedLosses
    columnOrder = plan.columnOrder
    invariants = plan.invariants
    try InvariantCheck.check(invariants, of: name, versions)
  }

  private typealias Types = [Schema.Version: any VersionedSchema.Type]

  /// Lays out the plan's schemas.
  ///
  /// - Returns: The versions, oldest first, and the type of each.
  private static func versions(
    of plan: any SchemaMigrationPlan.Type, _ what: String
  ) throws(InstarError) -> ([PlanVersion], Types) {
    var versions: [PlanVersion] = []
    var types: Types = [:]
    for versioned in plan.schemas {
      let schema = Schema(versionedSchema: versioned)
      if let problem = schema.modelProblems().first {
        throw problem.about("\(what): \(problem.what)")
      }
      if let same = types.updateValue(versioned, forKey: schema.version) {
        throw InstarError(
          .invalidPlan, what,
          cause: "the schemas \(same) and \(versioned) have the same version, \(schema.version)",
          next: correction(of: versioned, same, in: plan))
      }
      let layout = try schema.layout()
      if let other = versions.first(where: { $0.layout.format != layout.format }) {
        throw InstarError(
          .invalidPlan, what,
          cause:
            "schema \(other.schema.version) has the format \(other.layout.format.rawValue), "
            + "and schema \(schema.version) the format \(layout.format.rawValue)",
          next: "write @Table before the models of all versions, or of none")
      }
      versions.append(
        PlanVersion(
          schema: schema, layout: layout, name: "\(versioned)", valueShapes: schema.valueShapes))
    }
    guard !versions.isEmpty else {
      throw InstarError(
        .invalidPlan, what, cause: "the plan has no schemas", next: "add its versions to `schemas`")
    }
    return (versions.sorted { $0.schema.version < $1.schema.version }, types)
  }

  /// Checks the plan's stages.
  ///
  /// - Returns: The stages that end at a later version, and a note on each stage that is ignored.
  private static func stages(
    of plan: any SchemaMigrationPlan.Type, among known: Set<Schema.Version>, _ what: String
  ) throws(InstarError) -> (stages: [MigrationStage], notes: [String]) {
    var stages: [MigrationStage] = []
    var notes: [String] = []
    for stage in plan.stages {
      let from = stage.fromVersion.versionIdentifier
      let to = stage.toVersion.versionIdentifier
      for version in [from, to] where !known.contains(version) {
        throw InstarError(
          .invalidPlan, what,
          cause:
            "the stage from \(from) to \(to) names version \(version), which is not in `schemas`",
          next: "add the schema of \(version) to `schemas`")
      }
      guard from != to else {
        notes.append(
          "the stage from \(from) to itself is ignored, because a store at \(from) has nothing to migrate; its code never runs"
        )
        continue
      }
      guard from < to else {
        let cycle = Self.versions(from: to, to: from, by: plan.stages).map {
          "the stages form a cycle: " + ([from] + $0).map(\.description).joined(separator: " → ")
        }
        throw InstarError(
          .invalidPlan, what,
          cause: cycle ?? "the stage from \(from) to \(to) does not end at a later version",
          next: "let each stage end at a later version than it starts at")
      }
      guard !stages.contains(where: { $0.fromVersion.versionIdentifier == from }) else {
        throw InstarError(
          .invalidPlan, what, cause: "two stages start at \(from)",
          next: "remove one of them: each version may have one stage that starts at it")
      }
      stages.append(stage)
    }
    return (stages, notes)
  }

  /// The same plan for a store with some of its models: these versions, the stages between them, and the invariants
  /// that these models are enough for.
  package init(_ plan: PlanDefinition, versions: [PlanVersion]) {
    name = plan.name
    self.versions = versions
    let known = Set(versions.map(\.schema.version))
    stages = plan.stages.filter {
      known.contains($0.fromVersion.versionIdentifier)
        && known.contains($0.toVersion.versionIdentifier)
    }
    implicitStarts = plan.implicitStarts
    notes = plan.notes
    columnOrder = plan.columnOrder
    versionSource = plan.versionSource
    importedVersions = plan.importedVersions
    acceptedLosses = plan.acceptedLosses
    invariants = plan.invariants.filter { invariant in
      do throws(InstarError) {
        try InvariantCheck.check([invariant], of: plan.name, versions)
        return true
      } catch {
        // It names models of another store. `parts` refuses a plan with an invariant that belongs to no store.
        return false
      }
    }
  }

  /// The same plan, whose code calls `beforeWrite` before each row that it inserts, changes or deletes.
  package func watchingWrites(
    _ beforeWrite: @escaping @Sendable () throws -> Void
  ) -> PlanDefinition {
    var plan = self
    plan.stages = stages.map { $0.watchingWrites(beforeWrite) }
    return plan
  }

  /// The versions that stages pass from one to another, both included; `nil` where no stages connect them.
  private static func versions(
    from start: Schema.Version, to end: Schema.Version, by stages: [MigrationStage]
  ) -> [Schema.Version]? {
    var versions = [start]
    while let current = versions.last, current != end, versions.count <= stages.count {
      guard let stage = stages.first(where: { $0.fromVersion.versionIdentifier == current }) else {
        return nil
      }
      versions.append(stage.toVersion.versionIdentifier)
    }
    return versions.last == end ? versions : nil
  }

  package func version(_ version: Schema.Version) -> PlanVersion? {
    versions.first { $0.schema.version == version }
  }

  /// The stages from a version to the last one, in the order in which they run; empty for the last. Fused stages are
  /// one.
  ///
  /// - Throws: `unknownVersion`; `noMigrationPath`, naming the version at which no stage starts.
  package func path(from start: Schema.Version) throws(InstarError) -> [Stage] {
    let what = "cannot migrate from \(start) by plan \(name)"
    guard var current = version(start), let last = versions.last else {
      throw InstarError(
        .unknownVersion, what, cause: "the plan has no version \(start)",
        next: "add schema \(start) to the plan's 'schemas'")
    }
    var path: [Stage] = []
    while current.schema.version != last.schema.version {
      let from = current.schema.version
      guard let stage = stages.first(where: { $0.fromVersion.versionIdentifier == from }),
        let next = version(stage.toVersion.versionIdentifier)
      else {
        throw missingStage(at: current, what)
      }
      path.append(self.stage(stage, from: current, to: next))
      current = next
    }
    return Self.fused(path)
  }

  private static func fused(_ path: [Stage]) -> [Stage] {
    var rest = path[...]
    return SchemaStage.fused(path.map(\.schemas)).compactMap { schemas in
      let parts = rest.prefix(schemas.parts.count)
      rest = rest.dropFirst(parts.count)
      guard let first = parts.first?.stage, let last = parts.last?.stage else { return nil }
      return Stage(
        schemas: schemas,
        stage: parts.count == 1
          ? first : .lightweight(fromVersion: first.fromVersion, toVersion: last.toVersion),
        versionSource: path[0].versionSource)
    }
  }

  private func stage(_ stage: MigrationStage, from: PlanVersion, to: PlanVersion) -> Stage {
    Stage(
      schemas: SchemaStage(
        from: from, to: to, kind: stage.work.kind, columnOrder: columnOrder,
        isImplicit: implicitStarts.contains(from.schema.version), label: stage.label,
        computedProperties: stage.work.computedProperties),
      stage: stage, versionSource: versionSource)
  }

  package var manifest: PlanManifest {
    var manifest = PlanManifest(
      name: name,
      versions: versions.map {
        let structure = $0.layout.structure
        var version = VersionManifest(
          schema: $0.schema, structure: structure, fingerprint: structure.fingerprint,
          name: $0.name)
        version.unlistedModels = $0.schema.modelTypes.reached.sorted()
        version.valueShapes = $0.valueShapes
        return version
      },
      stages: stages.compactMap { stage in
        guard let from = version(stage.fromVersion.versionIdentifier),
          let to = version(stage.toVersion.versionIdentifier)
        else { return nil }
        return self.stage(stage, from: from, to: to).manifest
      }
      .sorted { $0.from < $1.from })
    manifest.versionSource = versionSource
    manifest.columnOrder = columnOrder
    manifest.importedVersions = importedVersions
    manifest.acceptedLosses = acceptedLosses
    manifest.invariants = invariants
    manifest.notes = notes
    return manifest
  }
}
