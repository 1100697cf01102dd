internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Where a store stands, seen from all the plans at hand: at most one of them may know it.
struct StoreMatch {
  var plan: PluginCatalog.Plan
  var match: SchemaMatch
  /// The store's identity as the plan sees it.
  var identity: StoreIdentity

  /// - Returns: The plan that knows the store, or the one that comes nearest; `nil` where there is
  ///   no plan.
  /// - Throws: `ambiguousPlan` when several know it.
  ///
  /// A store with the hashes of a plan's reference store is at that version, whatever it declares.
  init?(
    of identity: StoreIdentity, hashes: [String: Data], among plans: [PluginCatalog.Plan]
  ) throws(InstarError) {
    let matches = plans.map { plan in
      var seen = identity.seen(
        from: plan.manifest.versionSource, importing: plan.manifest.importedVersions)
      if let version = plan.version(withHashes: hashes) { seen.version = version }
      return StoreMatch(
        plan: plan, match: SchemaMatch(of: seen, among: plan.manifest.candidates), identity: seen)
    }
    // A plan that has the store's version knows it better than one that it only resembles.
    for states in [[StoreState.current, .behind], [.unversioned], [.ahead]] {
      let knowing = matches.filter { states.contains($0.match.state) }
      guard let first = knowing.first else { continue }
      guard knowing.count == 1 else {
        let names = knowing.map { "'\($0.plan.manifest.name)' of '\($0.plan.plugin)'" }
        throw InstarError(
          .ambiguousPlan, "cannot choose a plan",
          cause: "several plans know the store: \(names.joined(separator: ", "))",
          next: "give only the plugin that shall be used")
      }
      self = first
      return
    }
    let nearest = matches.min { left, right in
      Self.distance(left.match) < Self.distance(right.match)
    }
    guard let nearest else { return nil }
    self = nearest
  }

  private init(plan: PluginCatalog.Plan, match: SchemaMatch, identity: StoreIdentity) {
    self.plan = plan
    self.identity = identity
    self.match = match
  }

  private static func distance(_ match: SchemaMatch) -> Int {
    match.nearest == nil ? Int.max : match.differences.count
  }

  /// What a run starts from: a version, and what the store has beside it.
  struct Start {
    var version: Schema.Version
    var fit: StructureFit
    /// What becomes of the differences, one sentence each.
    var consequences: [String]
  }

  /// The version to start from.
  ///
  /// - Parameters:
  ///   - adopt: What the user says an unversioned or unknown store is at.
  ///   - adoptsDifferences: Whether the user knows that the store has more than that version, or
  ///     lacks an index of it.
  /// - Throws: `storeAhead`, `unversionedStore`, `unknownVersion` or `unconfirmedAdoption`: why the
  ///   store cannot be migrated.
  func start(
    adopt: Schema.Version?, adoptsDifferences: Bool
  ) throws(InstarError) -> Start {
    let plan = "plan '\(plan.manifest.name)'"
    switch match.state {
    case .current, .behind:
      if let version = match.version, let start = start(version) { return start }
    case .ahead:
      throw InstarError(
        .storeAhead, Self.what, cause: "\(match.reason) (\(plan))",
        next: "install the plugin that knows this version")
    case .unversioned:
      guard let version = match.version else { break }
      guard let adopt else {
        throw InstarError(
          .unversionedStore, Self.what, cause: match.reason,
          next: "if it is a store of \(plan), adopt it: --adopt \(version)")
      }
      guard adopt == version, let start = start(version) else {
        throw InstarError(
          .unversionedStore, Self.what,
          cause: "\(match.reason), not like \(adopt)", next: "adopt it as \(version)")
      }
      return start
    default:
      if let adopt { return try adopted(as: adopt, adoptsDifferences: adoptsDifferences) }
    }
    throw unknown()
  }

  private static let what = "cannot migrate the store"

  private func start(_ version: Schema.Version) -> Start? {
    guard let candidate = plan.manifest.candidates.first(where: { $0.version == version }) else {
      return nil
    }
    // Of a plain store only what some version of the plan speaks of has to fit.
    let structure =
      identity.format == .plain
      ? identity.structure.described(
        asIn: candidate.structure, among: plan.manifest.candidates.map(\.structure))
      : identity.structure
    let fit = StructureFit(of: structure, to: candidate.structure)
    return Start(
      version: version, fit: fit, consequences: fit.consequences(in: candidate.structure))
  }

  private func adopted(
    as version: Schema.Version, adoptsDifferences: Bool
  ) throws(InstarError) -> Start {
    let plan = "plan '\(plan.manifest.name)'"
    guard let start = start(version) else {
      throw InstarError(
        .unknownVersion, Self.what, cause: "\(plan) has no version \(version) to adopt it as")
    }
    guard start.fit.obstacles.isEmpty else {
      throw InstarError(
        .unknownVersion, Self.what,
        cause: Self.list(
          "it cannot be adopted as \(version) of \(plan)",
          start.fit.obstacles + start.consequences),
        next: Self.stageToWrite(to: version))
    }
    guard start.fit.isExact || adoptsDifferences else {
      throw InstarError(
        .unconfirmedAdoption, Self.what,
        cause: Self.list(
          "it differs from \(version) of \(plan), which it shall be adopted as", start.consequences
        ),
        next: "if that is meant so, confirm it: --adopt \(version) --yes")
    }
    return start
  }

  private func unknown() -> InstarError {
    let what = Self.what
    guard let nearest = match.nearest, let start = start(nearest) else {
      return InstarError(
        .unknownVersion, what, cause: match.reason,
        next: "use a plugin whose plan knows this version of the store")
    }
    let cause = Self.list(
      "\(match.reason); plan '\(plan.manifest.name)' comes nearest at \(nearest)",
      match.differences)
    guard start.fit.obstacles.isEmpty else {
      return InstarError(
        .unknownVersion, what, cause: cause, next: Self.stageToWrite(to: nearest))
    }
    return InstarError(
      .unknownVersion, what, cause: cause,
      next: "adopt it as it is: --adopt \(nearest); or "
        + Self.stageToWrite(to: nearest))
  }

  private static func list(_ head: String, _ lines: [String]) -> String {
    let limit = 20
    let rest = lines.count > limit ? ["and \(lines.count - limit) more"] : []
    return ([head + (lines.isEmpty ? "" : ":")] + lines.prefix(limit) + rest)
      .joined(separator: "\n")
  }

  /// How a plan comes to know a store that is built like none of its versions.
  private static func stageToWrite(to version: Schema.Version) -> String {
    let name = "SchemaV\(version.major)_\(version.minor)_\(version.patch)"
    return """
      use a plugin whose plan knows this version of the store: describe it as it is in a schema of \
      its own, and add that and a stage to the plan
        static let fromFound = MigrationStage.custom(
          fromVersion: FoundSchema.self, toVersion: \(name).self,
          willMigrate: nil, didMigrate: nil)
      """
  }
}
