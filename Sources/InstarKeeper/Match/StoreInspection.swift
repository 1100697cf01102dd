internal import Foundation
package import InstarSchema
internal import InstarStore
package import InstarWire

/// What is known of a store and of the way ahead of it, before anything is touched.
struct StoreInspection {
  var probe: StoreProbe
  var place: StorePaths
  var plugin: String
  var path: MigrationPath
  /// The reference store of the last version, where the plugin has one.
  var reference: ReferenceStore?
  /// What the store has beside its version, or lacks of it, and what becomes of that.
  var fit: StructureFit
  var consequences: [String]

  /// Matches a store that was probed, and works out its way. `isCurrent` where it is at its plan's
  /// last version already.
  ///
  /// - Throws: why the store cannot be migrated; it is untouched.
  static func inspect(
    _ probe: StoreProbe, plans: [PluginCatalog.Plan], adopt: Schema.Version?,
    adoptsDifferences: Bool
  ) throws(InstarError) -> (inspection: StoreInspection, isCurrent: Bool) {
    guard
      let match = try StoreMatch(of: probe.identity, hashes: probe.entityHashes, among: plans)
    else {
      throw InstarError(
        .noPlan, "cannot migrate the store", cause: "no plugin with a plan was given",
        next: "give the plugin that carries the store's plan")
    }
    let start = try match.start(adopt: adopt, adoptsDifferences: adoptsDifferences)
    let inspection = StoreInspection(
      probe: probe, place: StorePaths(resolvedStore: probe.file.path), plugin: match.plan.plugin,
      path: try MigrationPath(from: start.version, in: match.plan.manifest),
      reference: match.plan.manifest.versions.last.flatMap {
        match.plan.references[$0.schema.version]
      }, fit: start.fit, consequences: start.consequences)
    return (inspection, match.match.state == .current)
  }

  /// What speaks against a run although the store's version is known.
  func findings() -> [Finding] {
    var findings: [Finding] = []
    if access(place.folder.isEmpty ? "/" : place.folder, W_OK | X_OK) != 0 {
      findings.append(
        Finding(
          severity: .error, code: .unreadableStore,
          message: "user \(geteuid()) cannot write the folder '\(place.folder)'",
          fix:
            "clone and backup are made there: run as the store's owner, or let that user write the folder"
        ))
    }
    if access(place.store, R_OK | W_OK) != 0 {
      findings.append(
        Finding(
          severity: .error, code: .unreadableStore,
          message: "user \(geteuid()) cannot write the store",
          fix: "run as the store's owner, or make the file writable"))
    }
    if let finding = externalFinding() { findings.append(finding) }
    if let table = probe.frameworkObjects.first(where: { $0.hasPrefix("ANSCK") }) {
      findings.append(
        Finding(
          severity: .error, code: .unsupported,
          message: "the store has a mirror in CloudKit, which would be told nothing of a migration "
            + "(table \(table))",
          fix: "let the app itself migrate this store"))
    }
    if let trigger = unknownTrigger() {
      findings.append(
        Finding(
          severity: .error, code: .unsupported,
          message: "the store derives an attribute of which version \(path.from) of the plan does "
            + "not say so (trigger \(trigger))",
          fix: "mark the attribute in all versions that have it: @Attribute(.derived(…))"))
    }
    findings += consequences.map { Finding(severity: .warning, message: $0) }
    if let difference = entityListDifference() {
      findings.append(
        Finding(
          severity: .error, code: .unknownVersion, message: difference,
          fix: "use a plugin whose plan knows this version of the store"))
    }
    if let problem = probe.metadataProblem {
      findings.append(
        Finding(
          severity: .warning, code: .corruptStore, message: problem,
          fix: "the store gets new metadata; what an app kept in it cannot be carried over"))
    }
    return findings
  }

  /// What speaks against large values that the store keeps in files.
  private func externalFinding() -> Finding? {
    guard probe.identity.format == .coredata else { return nil }
    do {
      guard let folder = try ExternalFiles(of: place).existingFolder() else { return nil }
      // One that cannot be listed may hold values as well.
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      let isDeclared = path.first.entities.contains {
        $0.attributes.contains(where: \.mayBeExternal)
      }
      guard !names.isEmpty, !isDeclared else { return nil }
      return Finding(
        severity: .error, code: .unknownVersion,
        message: "the store keeps \(names.count) large values in files in '\(folder)', but no "
          + "attribute of version \(path.from) of the plan says so",
        fix: "mark it in all versions that have it: @Attribute(.externalStorage)")
    } catch let error as InstarError {
      return Finding(severity: .error, code: error.code, message: error.cause, fix: error.next)
    } catch {
      return Finding(
        severity: .error, code: .unreadableStore,
        message: "the files with large values of the store cannot be listed: "
          + error.localizedDescription, fix: "run as the store's owner")
    }
  }

  /// A trigger of a derived attribute that would be lost, because the plan knows nothing of it.
  private func unknownTrigger() -> String? {
    let derived = path.first.entities.flatMap { entity in
      entity.attributes.filter { $0.derivation != nil }.map { "_\(entity.name)_\($0.name)_" }
    }
    return probe.frameworkObjects.first { name in
      name.hasPrefix("Z_DA_") && !derived.contains { name.contains($0) }
    }
  }

  /// What is first met where `Z_PRIMARYKEY` numbers the entities otherwise than the version that
  /// the store is at; `nil` where all are the same.
  ///
  /// Rows carry these numbers. Names may be older than the version (see `ListedEntity`): a name
  /// counts only where another number should have it.
  private func entityListDifference() -> String? {
    guard probe.identity.format == .coredata else { return nil }
    let layout: CoreDataLayout
    do {
      layout = try CoreDataLayout(schema: path.first, conventions: probe.conventions)
    } catch {
      // Said by whoever needs the layout.
      return nil
    }
    let list = "version \(path.from), but the store's list of entities (Z_PRIMARYKEY)"
    let listed = Dictionary(
      probe.entityList.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    for entity in layout.entities {
      guard let row = listed[entity.number] else {
        return "\(entity.name) is entity \(entity.number) in \(list) has no such number"
      }
      guard row.superNumber == entity.superNumber else {
        return "\(entity.name) is an entity below \(entity.superNumber) in \(list) has it below "
          + "\(row.superNumber)"
      }
      if row.name != entity.name, let named = layout.entity(named: row.name),
        listed[named.number]?.name != row.name
      {
        return "\(entity.name) is entity \(entity.number) in \(list) has \(row.name) there"
      }
    }
    let numbers = Set(layout.entities.map(\.number))
    if let row = probe.entityList.first(where: { !numbers.contains($0.number) }) {
      return "there is no entity \(row.number) in \(list) has \(row.name) there"
    }
    return nil
  }
}

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
