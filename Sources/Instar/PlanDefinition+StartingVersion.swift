internal import InstarEngine
internal import InstarSchema

extension PlanDefinition {
  /// Returns the version to migrate an app's store from. A store that declares none is adopted as the version that its
  /// structure matches.
  ///
  /// - Parameter store: The path of the store; `nil` for one in memory.
  /// - Throws: `storeAhead` or `unknownVersion`: why the store cannot be opened by this plan.
  func startingVersion(
    of match: SchemaMatch, store: String?
  ) throws(InstarError) -> Schema.Version {
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
      next = "find out which of these versions of the app wrote the store"
      next += Self.adoption(of: store, as: "VERSION").map { ", then \($0)" } ?? ""
    } else if let nearest = match.nearest {
      cause += "; the nearest version of \(name) is \(nearest):"
      for difference in match.differences.prefix(20) { cause += "\n\(difference)" }
      if match.differences.count > 20 { cause += "\nand \(match.differences.count - 20) more" }
      next +=
        Self.adoption(of: store, as: "\(nearest)")
        .map { "; or, if the store is \(nearest) despite the differences, \($0)" } ?? ""
    }
    throw InstarError(.unknownVersion, what, cause: cause, next: next)
  }

  /// How to adopt a store; `nil` for one in memory, which no command can open.
  private static func adoption(of store: String?, as version: String) -> String? {
    store.map { store in
      "build the plan as a plugin, FILE.so, and run: "
        + CommandText.migrate(store, plugins: [], adopting: version)
    }
  }
}
