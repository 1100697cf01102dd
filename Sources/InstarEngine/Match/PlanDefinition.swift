package import InstarModel
package import InstarSchema
package import InstarStore
package import InstarWire

/// A checked migration plan: its versions in order, each with its layout, and its stages.
package struct PlanDefinition: Sendable {
  package let name: String
  /// Oldest first.
  package let versions: [Version]
  let stages: [MigrationStage]
  private let columnOrder: ColumnOrder
  private let versionSource: VersionSource
  private let importedVersions: [ToolVersion: Schema.Version]
  private let acceptedLosses: [String]

  package struct Version: Sendable {
    package let schema: Schema
    package let layout: StoreLayout
    /// The name of the `VersionedSchema` type.
    package let name: String
  }

  /// A stage between two versions of this plan.
  package struct Stage: Sendable {
    package let from: Version
    package let to: Version
    package let stage: MigrationStage
    package let columnOrder: ColumnOrder

    package var manifest: StageManifest {
      let kind: StageManifest.Kind =
        switch stage {
        case .lightweight: .lightweight
        case .custom: .custom
        }
      return StageManifest(from: from.schema.version, to: to.schema.version, kind: kind)
    }
  }

  /// - Throws: `invalidPlan`, `incompleteSchema` or `invalidModel`, naming the plan and the version. No store is
  ///   opened.
  package init(_ plan: any SchemaMigrationPlan.Type) throws(InstarError) {
    let name = "\(plan)"
    let what = "cannot use plan \(name)"
    var versions: [Version] = []
    for versioned in plan.schemas {
      let schema = Schema(versionedSchema: versioned)
      if let problem = schema.modelProblems().first {
        throw problem.about("\(what): \(problem.what)")
      }
      if let twin = versions.first(where: { $0.schema.version == schema.version }) {
        throw InstarError(
          .invalidPlan, what,
          cause:
            "the schemas \(twin.name) and \(versioned) have the same version, \(twin.schema.version)",
          next: "give each VersionedSchema its own versionIdentifier")
      }
      let layout = try StoreLayout(schema: schema)
      if let other = versions.first(where: { $0.layout.format != layout.format }) {
        throw InstarError(
          .invalidPlan, what,
          cause:
            "schema \(other.schema.version) has the format \(other.layout.format.rawValue), "
            + "and schema \(schema.version) the format \(layout.format.rawValue)",
          next: "write @Table before the models of all versions, or of none")
      }
      versions.append(Version(schema: schema, layout: layout, name: "\(versioned)"))
    }
    guard !versions.isEmpty else {
      throw InstarError(
        .invalidPlan, what, cause: "the plan has no schemas", next: "add its versions to `schemas`")
    }
    versions.sort { $0.schema.version < $1.schema.version }
    let known = Set(versions.map(\.schema.version))
    var starts: Set<Schema.Version> = []
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
      guard from < to else {
        let cycle = Self.versions(from: to, to: from, by: plan.stages).map {
          "the stages form a cycle: " + ([from] + $0).map(\.description).joined(separator: " → ")
        }
        throw InstarError(
          .invalidPlan, what,
          cause: cycle ?? "the stage from \(from) to \(to) does not end at a later version",
          next: "let each stage end at a later version than it starts at")
      }
      guard starts.insert(from).inserted else {
        throw InstarError(
          .invalidPlan, what, cause: "two stages start at \(from)",
          next: "remove one of them: each version may have one stage that starts at it")
      }
    }
    versionSource = plan.versionSource
    importedVersions = plan.importedVersions
    acceptedLosses = plan.acceptedLosses
    self.name = name
    self.versions = versions
    self.stages = plan.stages
    columnOrder = plan.columnOrder
  }

  /// The same plan for a store with some of its models: these versions, and the stages between them.
  init(_ plan: PlanDefinition, versions: [Version]) {
    name = plan.name
    self.versions = versions
    let known = Set(versions.map(\.schema.version))
    stages = plan.stages.filter {
      known.contains($0.fromVersion.versionIdentifier)
        && known.contains($0.toVersion.versionIdentifier)
    }
    columnOrder = plan.columnOrder
    versionSource = plan.versionSource
    importedVersions = plan.importedVersions
    acceptedLosses = plan.acceptedLosses
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

  package func version(_ version: Schema.Version) -> Version? {
    versions.first { $0.schema.version == version }
  }

  /// The stages from a version to the last one, in the order in which they run; empty for the last.
  ///
  /// - Throws: `unknownVersion`; `noMigrationPath`, naming the version at which no stage starts.
  package func path(from start: Schema.Version) throws(InstarError) -> [Stage] {
    let what = "cannot migrate from \(start) by plan \(name)"
    guard var current = version(start), let last = versions.last else {
      throw InstarError(.unknownVersion, what, cause: "the plan has no version \(start)")
    }
    var path: [Stage] = []
    while current.schema.version != last.schema.version {
      let from = current.schema.version
      guard let stage = stages.first(where: { $0.fromVersion.versionIdentifier == from }),
        let next = version(stage.toVersion.versionIdentifier)
      else {
        throw InstarError(
          .noMigrationPath, what,
          cause: "no stage starts at \(from); the plan ends at \(last.schema.version)",
          next: "add a stage that starts at \(from)")
      }
      path.append(Stage(from: current, to: next, stage: stage, columnOrder: columnOrder))
      current = next
    }
    return path
  }

  package var manifest: PlanManifest {
    var manifest = PlanManifest(
      name: name,
      versions: versions.map {
        let structure = $0.layout.structure
        return VersionManifest(
          schema: $0.schema, structure: structure, fingerprint: structure.fingerprint,
          name: $0.name)
      },
      stages: stages.compactMap { stage in
        guard let from = version(stage.fromVersion.versionIdentifier),
          let to = version(stage.toVersion.versionIdentifier)
        else { return nil }
        return Stage(from: from, to: to, stage: stage, columnOrder: columnOrder).manifest
      }
      .sorted { $0.from < $1.from })
    manifest.versionSource = versionSource
    manifest.importedVersions = importedVersions
    manifest.acceptedLosses = acceptedLosses
    return manifest
  }
}
