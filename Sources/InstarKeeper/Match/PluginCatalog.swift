internal import Foundation
internal import InstarChange
internal import InstarLinux
package import InstarSchema
internal import InstarStore
package import InstarWire
internal import Synchronization

/// The manifests of plugins, each read once for a version of its file.
package final class PluginCatalog {
  private let host: any PluginHost
  private var known: [String: Entry] = [:]

  private struct Entry {
    /// `nil` where the file's status cannot be read: the entry is not kept.
    var version: FileVersion?
    /// `nil` without a signature.
    var signature: FileVersion?
    var manifest: PluginManifest
    var references: [Schema.Version: ReferenceStore]
    let paths: [String: KnownPaths]
  }

  /// The paths of one plan that were found, how stores match it and where they start, for further stores.
  package final class KnownPaths: Sendable {
    private let paths = Mutex<[Schema.Version: MigrationPath]>([:])
    private let matches = BoundedCache<MatchedIdentity, SchemaMatch>()
    private let starts = BoundedCache<MatchedStart, StoreMatch.Start>()

    fileprivate func path(
      from version: Schema.Version, in manifest: PlanManifest
    ) throws(InstarError) -> MigrationPath {
      if let known = paths.withLock({ $0[version] }) { return known }
      let path = try MigrationPath(from: version, in: manifest)
      paths.withLock { $0[version] = path }
      return path
    }

    fileprivate func match(of identity: StoreIdentity, in manifest: PlanManifest) -> SchemaMatch {
      matches.value(of: MatchedIdentity(identity: identity)) {
        SchemaMatch(of: identity, among: manifest.versions)
      }
    }

    fileprivate func start(
      of identity: StoreIdentity, at version: VersionManifest, in manifest: PlanManifest
    ) -> StoreMatch.Start {
      let start = MatchedStart(
        identity: MatchedIdentity(identity: identity), version: version.schema.version)
      return starts.value(of: start) {
        StoreMatch.Start(of: identity, at: version, in: manifest)
      }
    }
  }

  private struct MatchedStart: Hashable {
    let identity: MatchedIdentity
    let version: Schema.Version
  }

  /// An identity as a key. Structures of stores with one schema are one value in memory, which is compared quickly; to
  /// hash it would take longer than to match it.
  private struct MatchedIdentity: Hashable {
    let identity: StoreIdentity

    func hash(into hasher: inout Hasher) {
      hasher.combine(identity.fingerprint)
      hasher.combine(identity.version)
    }
  }

  /// One plan, and the plugin that carries it.
  package struct Plan {
    /// The plugin's path.
    var plugin: String
    var manifest: PlanManifest
    /// The reference stores beside the plugin.
    var references: [Schema.Version: ReferenceStore] = [:]
    private let paths: KnownPaths

    package init(
      plugin: String, manifest: PlanManifest, references: [Schema.Version: ReferenceStore] = [:],
      paths: KnownPaths = KnownPaths()
    ) {
      self.paths = paths
      self.plugin = plugin
      self.manifest = manifest
      self.references = references
    }

    /// Returns the stages from a version to the last one.
    ///
    /// - Throws: as `MigrationPath.init`.
    func path(from version: Schema.Version) throws(InstarError) -> MigrationPath {
      try paths.path(from: version, in: manifest)
    }

    /// Matches a store to the versions of the plan.
    func match(of identity: StoreIdentity) -> SchemaMatch {
      paths.match(of: identity, in: manifest)
    }

    /// Returns how a store starts at a version; `nil` where the plan does not have the version.
    func start(of identity: StoreIdentity, at version: Schema.Version) -> StoreMatch.Start? {
      manifest.versions.first { $0.schema.version == version }.map {
        paths.start(of: identity, at: $0, in: manifest)
      }
    }

    /// Returns the version whose reference store has these hashes.
    func version(withHashes hashes: [String: Data]) -> Schema.Version? {
      guard !hashes.isEmpty else { return nil }
      return manifest.versions.lazy.map(\.schema.version).first { version in
        references[version]?.metadata.entityHashes == hashes && isBuiltAsNamed(version)
      }
    }

    /// Whether a reference store has the structure of its version. One that has not is refused when it is needed.
    private func isBuiltAsNamed(_ version: Schema.Version) -> Bool {
      let structure = manifest.versions.first { $0.schema.version == version }?.structure
      return references[version]?.structure == structure
    }
  }

  init(host: any PluginHost) {
    self.host = host
  }

  /// - Throws: `notAPlugin` or `wrongABI` before the file is loaded; else why a worker could not load it.
  func manifest(of plugin: String) throws(InstarError) -> PluginManifest {
    try entry(of: plugin).manifest
  }

  private func entry(of plugin: String) throws(InstarError) -> Entry {
    guard plugin.hasPrefix("/") else {
      throw InstarError(
        .notAPlugin, "cannot read plugin '\(plugin)'", cause: "the path is not absolute",
        next: "pass the plugin's absolute path")
    }
    let version = Self.version(of: plugin)
    let signature = Self.version(of: SignaturePolicy.signature(of: plugin))
    if let version, let entry = known[plugin], entry.version == version,
      entry.signature == signature
    {
      return entry
    }
    let note = try PluginNote.read(path: plugin)
    try note.requireSupportedABI(path: plugin)
    let manifest = try host.describe(plugin: plugin)
    for plan in manifest.plans where plan.versions.isEmpty {
      throw InstarError(
        .invalidPlan, "cannot use plan '\(plan.name)' of plugin '\(plugin)'",
        cause: "the plan has no schemas", next: "list the versions in the plan's 'schemas'")
    }
    for plan in manifest.plans { try plan.requireInvariants() }
    let entry = Entry(
      version: version, signature: signature, manifest: manifest,
      references: try ReferenceStore.all(of: plugin),
      paths: Dictionary(firstOf: manifest.plans.map { ($0.name, KnownPaths()) }))
    if version != nil { known[plugin] = entry }
    return entry
  }

  /// Returns the plans of a selection that its plugins have.
  func plans(of selection: PlanSelection) throws(InstarError) -> [Plan] {
    var plans: [Plan] = []
    for plugin in selection.plugins {
      let entry: Entry
      do throws(InstarError) {
        entry = try self.entry(of: plugin)
      } catch {
        throw Self.naming(plugin, in: error)
      }
      plans += entry.manifest.plans.filter { selection.includes($0.name) }.map {
        Plan(
          plugin: plugin, manifest: $0, references: entry.references,
          paths: entry.paths[$0.name] ?? KnownPaths())
      }
    }
    return plans
  }

  /// The error of a plan must say which of several plugins has the plan.
  private static func naming(_ plugin: String, in error: InstarError) -> InstarError {
    guard !error.what.contains("'\(plugin)'") else { return error }
    var error = error
    error.cause = "\(error.what): \(error.cause)"
    error.what = "cannot use plugin '\(plugin)'"
    return error
  }

  /// Returns the plans of a selection, for a run.
  ///
  /// - Parameter what: What cannot be done without them, for the error.
  /// - Throws: `noPlan` where the selection names plans, and its plugins have none of these.
  func requiredPlans(
    of selection: PlanSelection, _ what: String = "cannot migrate the store"
  ) throws(InstarError) -> [Plan] {
    let plans = try plans(of: selection)
    guard plans.isEmpty, let reason = selection.reasonForNone else { return plans }
    throw InstarError(
      .noPlan, what, cause: reason, state: "unchanged",
      next: "to see the plans of a plugin, run: instarctl plugin inspect FILE.so")
  }

  private static func version(of path: String) -> FileVersion? {
    stat(following: path).map(FileVersion.init)
  }
}

extension PlanManifest {
  /// A worker sent the manifest, and only the keeper runs the queries: so it checks them itself too.
  fileprivate func requireInvariants() throws(InstarError) {
    guard !invariants.isEmpty else { return }
    let versions = try versions.map { version throws(InstarError) in
      PlanVersion(
        schema: version.schema, layout: try version.schema.layout(), name: version.name ?? "")
    }
    try InvariantCheck.check(invariants, of: name, versions)
  }
}

extension [PluginCatalog.Plan] {
  /// Where these plans look for the version of a plain store.
  var versionSources: Set<VersionSource> { Set(map(\.manifest.versionSource)) }
}
