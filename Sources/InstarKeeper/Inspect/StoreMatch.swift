internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Where a store stands, seen from all the plans at hand: at most one of them may know it.
struct StoreMatch {
  var plan: PluginCatalog.Plan
  var match: SchemaMatch

  /// - Returns: The plan that knows the store, or the one that comes nearest; `nil` where there is
  ///   no plan.
  /// - Throws: `ambiguousPlan` when several know it.
  ///
  /// A store with the hashes of a plan's reference store is at that version, whatever it declares.
  init?(
    of identity: StoreIdentity, hashes: [String: Data], among plans: [PluginCatalog.Plan]
  ) throws(InstarError) {
    let matches = plans.map { plan in
      var identity = identity
      if let version = plan.version(withHashes: hashes) { identity.version = version }
      return StoreMatch(
        plan: plan, match: SchemaMatch(of: identity, among: plan.manifest.candidates))
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

  private init(plan: PluginCatalog.Plan, match: SchemaMatch) {
    self.plan = plan
    self.match = match
  }

  private static func distance(_ match: SchemaMatch) -> Int {
    match.nearest == nil ? Int.max : match.differences.count
  }

  /// The version to start from.
  ///
  /// - Parameter adopt: What the user says an unversioned store is at.
  /// - Throws: `storeAhead`, `unversionedStore` or `unknownVersion`: why the store cannot be
  ///   migrated.
  func startingVersion(adopt: Schema.Version?) throws(InstarError) -> Schema.Version {
    let plan = "plan '\(plan.manifest.name)'"
    let what = "cannot migrate the store"
    switch match.state {
    case .current, .behind:
      if let version = match.version { return version }
    case .ahead:
      throw InstarError(
        .storeAhead, what, cause: "\(match.reason) (\(plan))",
        next: "install the plugin that knows this version")
    case .unversioned:
      guard let version = match.version else { break }
      guard let adopt else {
        throw InstarError(
          .unversionedStore, what, cause: match.reason,
          next: "if it is a store of \(plan), adopt it: --adopt \(version)")
      }
      guard adopt == version else {
        throw InstarError(
          .unversionedStore, what,
          cause: "\(match.reason), not like \(adopt)", next: "adopt it as \(version)")
      }
      return version
    default:
      break
    }
    var cause = match.reason
    if let nearest = match.nearest {
      cause += "; \(plan) comes nearest at \(nearest)"
      for difference in match.differences.prefix(20) { cause += "\n\(difference)" }
      if match.differences.count > 20 { cause += "\nand \(match.differences.count - 20) more" }
    }
    throw InstarError(
      .unknownVersion, what, cause: cause,
      next: "use a plugin whose plan knows this version of the store")
  }
}
