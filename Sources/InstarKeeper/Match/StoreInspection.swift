internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// A probed store, the plan that knows it, and its path through that plan, before anything is touched.
struct StoreInspection {
  var probe: StoreProbe
  var paths: StorePaths
  var plugin: String
  var path: MigrationPath
  /// The reference store of the last version, where the plugin has one.
  var reference: ReferenceStore?
  /// How the store's structure differs from its version.
  var fit: StructureFit
  /// What becomes of each difference.
  var consequences: [String]
  /// Why the version to adopt was not used; `nil` where it was, or where none was given.
  var adoptionNote: String?

  /// Matches a probed store, and finds its path.
  ///
  /// - Parameters:
  ///   - pluginFolders: Where plugins were looked for; `nil` if the caller named them.
  ///   - command: The command that errors propose with more options.
  /// - Returns: The inspection, and whether the store is already at the plan's last version.
  /// - Throws: Why the store cannot be migrated; it is untouched.
  static func inspect(
    _ probe: StoreProbe, plans: [PluginCatalog.Plan], pluginFolders: [String]? = nil,
    adopt: Schema.Version?, adoptsDifferences: Bool, command: MigrationCommand
  ) throws(InstarError) -> (inspection: StoreInspection, isCurrent: Bool) {
    guard
      let match = try StoreMatch(of: probe.identity, hashes: probe.entityHashes, among: plans)
    else { throw noPlan(pluginFolders, command) }
    var command = command
    command.plugins = [match.plan.plugin]
    let start = try match.start(
      adopt: adopt, adoptsDifferences: adoptsDifferences, command: command)
    var inspection = StoreInspection(
      probe: probe, paths: StorePaths(resolvedStore: probe.file.path), plugin: match.plan.plugin,
      path: try match.plan.path(from: start.version),
      reference: match.plan.manifest.versions.last.flatMap {
        match.plan.references[$0.schema.version]
      }, fit: start.fit, consequences: start.consequences)
    if let adopt, [.current, .behind].contains(match.match.state), adopt != start.version {
      inspection.adoptionNote =
        "the store is at \(start.version), so --adopt \(adopt) had no effect"
    }
    return (inspection, match.match.state == .current)
  }

  private static func noPlan(_ folders: [String]?, _ command: MigrationCommand) -> InstarError {
    var (cause, next) = ("no plugin with a plan was given", "run: \(command.text)")
    if let folders, let last = folders.last {
      let places = folders.map { folder in
        let isMissing = access(folder, F_OK) != 0 && errno == ENOENT
        return isMissing ? "'\(folder)' (it does not exist)" : "'\(folder)'"
      }
      cause += ", and no usable one is in \(places.joined(separator: " or "))"
      next +=
        "; or, as root, install the plugin: install -D -m 644 FILE.so "
        + CommandText.quoted(last + "/FILE.so")
    }
    return InstarError(.noPlan, "cannot migrate the store", cause: cause, next: next)
  }

  /// The layout of a version in this store.
  func layout(of schema: Schema) throws(InstarError) -> any StoreLayout {
    try path.layout(of: schema, probe.conventions)
  }

  /// How this user gets the right to write a file or folder.
  ///
  /// - Parameter mode: What its owner lacks.
  private static func rightToWrite(_ path: String, _ mode: String, _ noun: String) -> String {
    guard let status = stat(of: path), status.st_uid == geteuid() else {
      let user = ProcessIdentity.label(of: geteuid())
      return "run as the store's owner, or give user \(user) write permission on the \(noun)"
    }
    return "run as the owner of the store: chmod \(mode) \(CommandText.quoted(path))"
  }

  /// Reasons to refuse a run, or to warn, although the store's version is known.
  func findings(_ openPolicy: OpenPolicy) -> [Finding] {
    var findings = permissionFindings()
    findings += [
      linkFinding(), nameFinding() ?? pathFinding(), replicatorFinding(),
      externalFinding(openPolicy), mirrorFinding(), triggerFinding(),
    ].compactMap(\.self)
    findings += consequences.map { Finding(severity: .warning, message: $0) }
    if let adoptionNote { findings.append(Finding(severity: .note, message: adoptionNote)) }
    findings += [entityListFinding(), metadataFinding()].compactMap(\.self)
    return findings
  }

  private func permissionFindings() -> [Finding] {
    [
      WriteFinding(
        paths.folder.isEmpty ? "/" : paths.folder, W_OK | X_OK, "the folder '\(paths.folder)'",
        fix: "let Instar create the clone and the backup there: "
          + Self.rightToWrite(paths.folder, "u+wx", "folder")),
      WriteFinding(
        paths.store, R_OK | W_OK, "the store",
        fix: Self.rightToWrite(paths.store, "u+rw", "file")),
    ].compactMap {
      $0.map {
        Finding(severity: .error, code: .unreadableStore, message: $0.message, fix: $0.fix)
      }
    }
  }

  private func linkFinding() -> Finding? {
    do {
      try StoreTrust.requireSingleLink(paths.store)
      return nil
    } catch {
      return Finding(severity: .error, code: error.code, message: error.cause, fix: error.next)
    }
  }

  private func mirrorFinding() -> Finding? {
    guard let table = probe.frameworkObjects.first(where: { $0.hasPrefix("ANSCK") }) else {
      return nil
    }
    return Finding(
      severity: .error, code: .unsupported,
      message:
        "the store is mirrored to CloudKit (table \(table)), and the mirror would not follow a "
        + "migration",
      fix: "let the app itself migrate this store")
  }

  private func triggerFinding() -> Finding? {
    guard let trigger = unknownTrigger() else { return nil }
    return Finding(
      severity: .error, code: .unsupported,
      message: "trigger \(trigger) derives an attribute that is not derived in version "
        + "\(path.from) of the plan",
      fix: "mark the attribute with @Attribute(.derived(…)) in all versions that have it")
  }

  private func metadataFinding() -> Finding? {
    guard let problem = probe.metadataProblem else { return nil }
    return Finding(
      severity: .warning, code: .corruptStore, message: problem,
      fix:
        "no action is needed: Instar writes new metadata; values that the app stored in the old "
        + "metadata remain only in the backup")
  }

  /// Before anything is made: the backup's name would be too long only in the middle of a run.
  private func nameFinding() -> Finding? {
    let longest = StorePaths.longestName(hasExternalValues: path.hasExternalValues)
    let length = paths.name.utf8.count
    guard length > longest else { return nil }
    return Finding(
      severity: .error, code: .unsupported,
      message:
        "the store's name has \(length) bytes, so the names of its backups would be too long",
      fix: "rename the store to a name of at most \(longest) bytes")
  }

  /// SQLite could open the store, but not its clone, or its backup for a restore.
  private func pathFinding() -> Finding? {
    let length = paths.store.utf8.count
    guard length > StorePaths.longestPath else { return nil }
    return Finding(
      severity: .error, code: .unsupported,
      message: "the store's path has \(length) bytes, so SQLite could not open its clone and its "
        + "backup: their paths would have more than \(StoreFile.longestPath) bytes",
      fix: "move the store to a folder where its path has at most \(StorePaths.longestPath) bytes")
  }

  /// A reason to refuse a store whose list of entities is not that of its version.
  func entityListFinding() -> Finding? {
    entityListDifference().map {
      Finding(
        severity: .error, code: .unknownVersion, message: $0,
        fix: "use a plugin whose plan has this version of the store")
    }
  }

  /// A reason to refuse a store with a replicator, or a note that it has one.
  private func replicatorFinding() -> Finding? {
    guard let replicator = probe.replicator else { return nil }
    do {
      try replicator.requireLog(probe.file.usesWriteAheadLog, of: paths.store)
      return Finding(severity: .note, message: replicator.note)
    } catch {
      return Finding(severity: .error, code: error.code, message: error.cause, fix: error.next)
    }
  }

  /// A reason to refuse a store with external values that its version does not declare, or a note on files that may be
  /// those of another store: stores whose names differ only in their ends have one folder.
  private func externalFinding(_ openPolicy: OpenPolicy) -> Finding? {
    guard probe.identity.format.mayHaveExternalValues else { return nil }
    do throws(InstarError) {
      let files = ExternalFiles(of: paths)
      guard let folder = try files.existingFolder() else { return nil }
      // A folder that cannot be listed may hold values too.
      let names = try FolderNames.all(in: folder)
      let isDeclared = path.first.entities.contains {
        $0.attributes.contains(where: \.mayBeExternal)
      }
      guard !names.isEmpty, !isDeclared else { return nil }
      let count = try references(to: files, openPolicy).count
      guard count > 0 else {
        return Finding(
          severity: .note,
          message: "the files in '\(folder)' stay there: no row of the store references them")
      }
      return Finding(
        severity: .error, code: .unknownVersion,
        message:
          "the store has \(count.counted("external value")) in '\(folder)', "
          + "but no attribute of version \(path.from) of the plan has external storage",
        fix: "mark the attribute with @Attribute(.externalStorage) in all versions that have it")
    } catch {
      return Finding(severity: .error, code: error.code, message: error.cause, fix: error.next)
    }
  }

  private func references(
    to files: ExternalFiles, _ openPolicy: OpenPolicy
  ) throws(InstarError) -> Set<String> {
    let structure = probe.identity.structure
    guard openPolicy == .shared else {
      let file = try openPolicy.probeFile(paths.store)
      return try StoreReader.withReadOnlyStore(file.path) {
        try files.references($0, in: structure)
      }
    }
    // `StoreReader` would open the file without SQLite.
    do {
      return try GuardedConnection.use(
        paths.store, access: .readWrite, busyTimeout: 1, firesTriggers: false
      ) { try files.references($0, in: structure) }
    } catch {
      throw InstarError(error, what: "cannot read '\(paths.store)'", store: paths.store)
    }
  }

  /// A trigger of a derived attribute that is not in the plan, and would be lost.
  private func unknownTrigger() -> String? {
    let derived = path.first.entities.flatMap { entity in
      entity.attributes.filter { $0.derivation != nil }.map { "_\(entity.name)_\($0.name)_" }
    }
    return probe.frameworkObjects.first { name in
      name.hasPrefix("Z_DA_") && !derived.contains { name.contains($0) }
    }
  }

  /// The first difference between the entity numbers in `Z_PRIMARYKEY` and those of the store's version.
  ///
  /// Rows carry these numbers. Names may be older than the version (see `ListedEntity`), so a name counts only where
  /// another number should have it.
  private func entityListDifference() -> String? {
    guard let entityList = probe.entityList else { return nil }
    let entities: [EntityLayout]
    do {
      entities = try layout(of: path.first).entityLayouts
    } catch {
      // Reported by whoever needs the layout.
      return nil
    }
    let list = "version \(path.from), but the store's list of entities (Z_PRIMARYKEY)"
    let listed = entityList.keyed(by: \.number)
    for entity in entities {
      guard let row = listed[entity.number] else {
        return "\(entity.name) is entity \(entity.number) in \(list) has no such number"
      }
      guard row.superNumber == entity.superNumber else {
        func parent(_ number: Int) -> String { number == 0 ? "no parent" : "the parent \(number)" }
        return
          "entity \(entity.name) has \(parent(entity.superNumber)) in version \(path.from), but "
          + "\(parent(row.superNumber)) in the store's list of entities (Z_PRIMARYKEY)"
      }
      if row.name != entity.name, let named = entities.first(where: { $0.name == row.name }),
        listed[named.number]?.name != row.name
      {
        return "\(entity.name) is entity \(entity.number) in \(list) has \(row.name) there"
      }
    }
    let numbers = Set(entities.map(\.number))
    if let row = entityList.first(where: { !numbers.contains($0.number) }) {
      return "no entity has number \(row.number) in \(list) has \(row.name) there"
    }
    return nil
  }
}
