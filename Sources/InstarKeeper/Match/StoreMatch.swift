internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The state of a store, seen from the plan that knows it best.
///
/// A plan that has the version a store declares knows the store better than one whose structure it has, and that one
/// better than a plan that ends below the store's version. Of several that know it equally well, the plan whose last
/// version is the highest wins: it leads the store furthest.
struct StoreMatch {
  var plan: PluginCatalog.Plan
  var match: SchemaMatch
  /// The store's identity as the plan sees it.
  var identity: StoreIdentity

  /// Matches a store; `nil` where there is no plan. A store that no plan knows gets the plan with the nearest version.
  ///
  /// A store with the hashes of a plan's reference store is at that version, whatever it declares.
  ///
  /// - Throws: `ambiguousPlan` when several plans know the store and end at the same version.
  init?(
    of identity: StoreIdentity, hashes: [String: Data], among plans: [PluginCatalog.Plan]
  ) throws(InstarError) {
    let matches = plans.map { plan in
      var seen = identity.seen(
        from: plan.manifest.versionSource, importing: plan.manifest.importedVersions)
      if let version = plan.version(withHashes: hashes) { seen.version = version }
      return StoreMatch(
        plan: plan, match: plan.match(of: seen), identity: seen)
    }
    for states in [[StoreState.current, .behind], [.unversioned], [.ahead]] {
      let knowing = matches.filter { states.contains($0.match.state) }
      guard let last = knowing.compactMap(\.lastVersion).max() else { continue }
      let furthest = knowing.filter { $0.lastVersion == last }
      guard furthest.count == 1 else { throw Self.ambiguous(furthest, endingAt: last) }
      self = furthest[0]
      return
    }
    guard var nearest = matches.min(by: { $0.distance < $1.distance }) else { return nil }
    if matches.count > 1, nearest.match.reason == SchemaMatch.matchesNoVersion {
      nearest.match.reason = "the store's structure matches no version of any plan"
    }
    self = nearest
  }

  private init(plan: PluginCatalog.Plan, match: SchemaMatch, identity: StoreIdentity) {
    self.plan = plan
    self.identity = identity
    self.match = match
  }

  private var lastVersion: Schema.Version? { plan.manifest.versions.last?.schema.version }

  private static func ambiguous(
    _ matches: [StoreMatch], endingAt version: Schema.Version
  ) -> InstarError {
    let names = matches.map { "'\($0.plan.manifest.name)' of '\($0.plan.plugin)'" }
    let haveOneName = Set(matches.map(\.plan.manifest.name)).count == 1
    let files = matches.map { CommandText.quoted($0.plan.plugin) }.joined(separator: ", ")
    return InstarError(
      .ambiguousPlan, "cannot choose a plan for the store",
      cause: "\(names.count) plans know the store and end at \(version): "
        + names.joined(separator: ", "),
      next: haveOneName
        ? "remove all of these plugins but one: \(files); or name one of them for instarctl: "
          + "--plugin FILE.so"
        : "name the plan to use: --plan NAME for instarctl, 'plan: NAME' in the watch for instard; or "
          + "name its plugin: --plugin FILE.so")
  }

  /// How little the plan knows of the store. A plan with none of its tables has few differences only if it has few
  /// tables.
  private var distance: (Int, Int) {
    guard match.nearest != nil else { return (2, 0) }
    return (sharesTable ? 0 : 1, match.differences.count)
  }

  /// Whether a version of the plan has a table of the store.
  private var sharesTable: Bool {
    let tables = Set(identity.structure.tables.map(\.name))
    return plan.manifest.versions.contains { version in
      version.structure.tables.contains { tables.contains($0.name) }
    }
  }

  /// The version that a run starts from, and how the store differs from it.
  struct Start {
    var version: Schema.Version
    var fit: StructureFit
    /// What becomes of each difference, one sentence each.
    var consequences: [String]

    init(of identity: StoreIdentity, at version: VersionManifest, in manifest: PlanManifest) {
      self.version = version.schema.version
      let structure = identity.structure.described(
        asIn: version.structure, among: manifest.versions.map(\.structure),
        format: identity.format)
      fit = StructureFit(of: structure, to: version.structure)
      consequences = fit.consequences(in: version.structure)
    }
  }

  /// The version to start from.
  ///
  /// - Parameters:
  ///   - adopt: The version as which the user adopts an unversioned or unknown store.
  ///   - adoptsDifferences: Whether the user accepts that the store has more than that version, or lacks an index of
  ///     it.
  ///   - command: The command that errors propose with more options.
  /// - Throws: `storeAhead`, `unversionedStore`, `unknownVersion` or `unconfirmedAdoption`. A store that
  ///   declares its version needs none to adopt: a list may have stores of several plans.
  func start(
    adopt: Schema.Version?, adoptsDifferences: Bool, command: MigrationCommand
  ) throws(InstarError) -> Start {
    let plan = "plan '\(plan.manifest.name)'"
    switch match.state {
    case .current, .behind:
      if let version = match.version, let start = start(version) { return start }
    case .ahead:
      throw InstarError(
        .storeAhead, Self.what, cause: "\(match.reason) (\(plan))",
        next: "install the plugin of the app's version that wrote the store")
    case .unversioned:
      guard let adopt else {
        throw InstarError(
          .unversionedStore, Self.what, cause: "\(match.reason) of \(plan)",
          next: Self.adoption(as: match.fitting, command))
      }
      guard match.fitting.contains(adopt), let start = start(adopt) else {
        throw InstarError(
          .unversionedStore, Self.what, cause: "\(match.reason) of \(plan), not \(adopt)",
          next: Self.adoption(as: match.fitting, command))
      }
      return start
    default:
      if let adopt {
        return try adopted(as: adopt, adoptsDifferences: adoptsDifferences, command)
      }
    }
    throw unknown(command)
  }

  private static func adoption(
    as versions: [Schema.Version], _ command: MigrationCommand
  ) -> String {
    guard versions.count != 1 else {
      return "if the store is at \(versions[0]), run: \(command.adopting("\(versions[0])"))"
    }
    let names = versions.map { "\($0)" }.joined(separator: ", ")
    return "find out which version of the app wrote the store, then run, with one of \(names) as "
      + "VERSION: \(command.adopting("VERSION"))"
  }

  private static let what = "cannot migrate the store"

  private func start(_ version: Schema.Version) -> Start? {
    plan.start(of: identity, at: version)
  }

  private func adopted(
    as version: Schema.Version, adoptsDifferences: Bool, _ command: MigrationCommand
  ) throws(InstarError) -> Start {
    let plan = "plan '\(plan.manifest.name)'"
    guard let start = start(version) else {
      throw InstarError(
        .unknownVersion, Self.what, cause: "\(plan) has no version \(version)",
        next: "adopt the store as one of: "
          + self.plan.manifest.versions.map { "\($0.schema.version)" }.joined(separator: ", "))
    }
    guard start.fit.obstacles.isEmpty else {
      throw InstarError(
        .unknownVersion, Self.what,
        cause: Self.list(
          "the store cannot be adopted as \(version) of \(plan)",
          start.fit.obstacles + start.consequences),
        next: advice(on: start.fit) + stageToWrite(from: command.store, to: version))
    }
    guard start.fit.isExact || adoptsDifferences else {
      throw InstarError(
        .unconfirmedAdoption, Self.what,
        cause: Self.list(
          "the store differs from \(version) of \(plan)", start.consequences),
        next: "to adopt it with these differences, run: "
          + command.adopting("\(version)", withDifferences: true))
    }
    return start
  }

  private func unknown(_ command: MigrationCommand) -> InstarError {
    let what = Self.what
    guard let nearest = match.nearest, let start = start(nearest) else {
      return InstarError(
        .unknownVersion, what, cause: match.reason,
        next: "install a plugin whose plan has this version of the store")
    }
    let cause = Self.list(
      "\(match.reason); the nearest version of plan '\(plan.manifest.name)' is \(nearest)",
      match.differences)
    guard start.fit.obstacles.isEmpty else {
      return InstarError(
        .unknownVersion, what, cause: cause,
        next: advice(on: start.fit) + stageToWrite(from: command.store, to: nearest))
    }
    let purpose =
      command.name == .plan
      ? "see what adopting the store as it is does" : "adopt the store as it is"
    return InstarError(
      .unknownVersion, what, cause: cause,
      next: "to \(purpose), run: \(command.adopting("\(nearest)")); or "
        + stageToWrite(from: command.store, to: nearest))
  }

  private static func list(_ head: String, _ lines: [String]) -> String {
    let limit = 20
    let rest = lines.count > limit ? ["and \(lines.count - limit) more"] : []
    return ([head + (lines.isEmpty ? "" : ":")] + lines.prefix(limit) + rest)
      .joined(separator: "\n")
  }

  /// What to do about a plain store that differs from a version only in the declared types of columns: the model may
  /// not say what the app's table has. Empty for any other store.
  private func advice(on fit: StructureFit) -> String {
    guard !identity.format.hasMetadata, !fit.retypedColumns.isEmpty,
      fit.retypedColumns.count == fit.obstacles.count,
      !fit.retypedColumns.values.contains("")
    else { return "" }
    let types = fit.retypedColumns.sorted { $0.key < $1.key }.map {
      "@Column(.type(\"\($1)\")) before the property of \($0)"
    }
    return
      "if the table of the app has that type, write \(types.joined(separator: " and ")), build the plugin "
      + "again and install it; else, "
  }

  /// What to do about a store that has the structure of no version of the plan: what to add to the plan, if the plan is
  /// of the store's app.
  private func stageToWrite(from store: String, to version: Schema.Version) -> String {
    guard sharesTable || identity.structure.tables.isEmpty else {
      return "use the plugin of the app that wrote the store: '\(plan.plugin)' has none of the "
        + "store's tables, so it may belong to another app"
    }
    let known = plan.manifest.versions.first { $0.schema.version == version }?.name
    let name = known ?? "<#the plan's \(version)#>"
    let earlier = earlierVersion.map { " --version \($0)" } ?? ""
    return """
      to write the store's schema, run: instarctl schema import \(CommandText.quoted(store)) \
      --name FoundSchema\(earlier) -o FoundSchema.swift; add it to the plan as its first version, with this stage:
        static let fromFound = MigrationStage.custom(
          fromVersion: FoundSchema.self, toVersion: \(name).self,
          willMigrate: nil, didMigrate: nil)
      """
  }

  /// A version below the plan's first one: a stage from it can end at each version of the plan. `nil` below 0.0.0.
  private var earlierVersion: Schema.Version? {
    guard let first = plan.manifest.versions.first?.schema.version else { return nil }
    if first.major > 0 { return Schema.Version(first.major - 1, 9, 0) }
    if first.minor > 0 { return Schema.Version(0, first.minor - 1, 9) }
    return first.patch > 0 ? Schema.Version(0, 0, first.patch - 1) : nil
  }
}
