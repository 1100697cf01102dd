internal import InstarEngine

extension PlanDefinition {
  /// The version that an app's store is to be migrated from. One that declares none is taken for the version that it is
  /// built like.
  ///
  /// - Throws: `storeAhead` or `unknownVersion`: why the store cannot be opened by this plan.
  func startingVersion(of match: SchemaMatch) throws(InstarError) -> Schema.Version {
    let what = "cannot migrate the store"
    switch match.state {
    case .current, .behind, .unversioned:
      if let version = match.version { return version }
    case .ahead:
      throw InstarError(
        .storeAhead, what, cause: match.reason,
        next: "open it with the app that wrote it, or with a newer one")
    case .unknown, .notAStore, .corrupt, .encrypted, .busy, .unreadable: break
    }
    var cause = match.reason
    var next = "add the schema of this store to the plan, and a stage that starts at it"
    if !match.fitting.isEmpty {
      next = "find out which of these versions of the app wrote the store, then run: "
      next += "instarctl migrate --adopt VERSION"
    } else if let nearest = match.nearest {
      cause += "; \(name) comes nearest at \(nearest):"
      for difference in match.differences.prefix(20) { cause += "\n\(difference)" }
      if match.differences.count > 20 { cause += "\nand \(match.differences.count - 20) more" }
      next += "; or, if it is a store of \(nearest) all the same, let it be taken for one: "
      next += "instarctl migrate --adopt \(nearest)"
    }
    throw InstarError(.unknownVersion, what, cause: cause, next: next)
  }
}
