internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// What is known of a store and of the way ahead of it, before anything is touched.
struct StoreInspection {
  var probe: StoreProbe
  var paths: StorePaths
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
    let start = try match.start(
      of: probe.file.path, adopt: adopt, adoptsDifferences: adoptsDifferences)
    let inspection = StoreInspection(
      probe: probe, paths: StorePaths(resolvedStore: probe.file.path), plugin: match.plan.plugin,
      path: try MigrationPath(from: start.version, in: match.plan.manifest),
      reference: match.plan.manifest.versions.last.flatMap {
        match.plan.references[$0.schema.version]
      }, fit: start.fit, consequences: start.consequences)
    return (inspection, match.match.state == .current)
  }

  /// The layout of a version in this store.
  func layout(of schema: Schema) throws(InstarError) -> StoreLayout {
    try StoreLayout(schema: schema, conventions: probe.conventions)
  }

  /// What speaks against a run although the store's version is known.
  func findings() -> [Finding] {
    var findings: [Finding] = []
    if access(paths.folder.isEmpty ? "/" : paths.folder, W_OK | X_OK) != 0 {
      findings.append(
        Finding(
          severity: .error, code: .unreadableStore,
          message: "user \(geteuid()) cannot write the folder '\(paths.folder)'",
          fix:
            "clone and backup are made there: run as the store's owner, or let that user write the folder"
        ))
    }
    if access(paths.store, R_OK | W_OK) != 0 {
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
      guard let folder = try ExternalFiles(of: paths).existingFolder() else { return nil }
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
