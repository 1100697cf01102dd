internal import InstarEngine

extension PlanDefinition {
  /// Returns the version to migrate an app's store from. A store that declares none is adopted as the version that its
  /// structure matches.
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
        next: "open the store with the app that wrote it, or a newer one")
    case .unknown, .notAStore, .corrupt, .encrypted, .busy, .unreadable: break
    }
    var cause = match.reason
    var next = "add the schema of this store to the plan, and a stage that starts at it"
    if !match.fitting.isEmpty {
      next = "find out which of these versions of the app wrote the store, then run: "
      next += "instarctl migrate --adopt VERSION"
    } else if let nearest = match.nearest {
      cause += "; the nearest version of \(name) is \(nearest):"
      for difference in match.differences.prefix(20) { cause += "\n\(difference)" }
      if match.differences.count > 20 { cause += "\nand \(match.differences.count - 20) more" }
      next += "; or, if the store is \(nearest) despite the differences, run: "
      next += "instarctl migrate --adopt \(nearest)"
    }
    throw InstarError(.unknownVersion, what, cause: cause, next: next)
  }
}
