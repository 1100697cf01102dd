/// Where a store stands among the versions of one plan.
///
/// A store is matched by declared version *and* structure, else by structure alone. A declared version with another
/// structure is not believed: migrating from it would change the wrong columns; but for 1.0.0, which a schema made of model
/// types alone has, whatever they are. A store that was adopted with more than
/// its version has is believed as long as it is built as it was left.
public struct SchemaMatch: Sendable, Codable, Hashable {
  public var state: StoreState
  /// The version of the plan the store is at; `nil` where it is at none.
  public var version: Schema.Version?
  /// Why, in words; empty for `current` and `behind`.
  public var reason: String
  /// The version whose structure is nearest, where the store is at none.
  public var nearest: Schema.Version?
  /// What is different from the nearest version, one sentence each.
  public var differences: [String]

  public init(
    state: StoreState, version: Schema.Version? = nil, reason: String = "",
    nearest: Schema.Version? = nil, differences: [String] = []
  ) {
    self.state = state
    self.version = version
    self.reason = reason
    self.nearest = nearest
    self.differences = differences
  }

  /// One version of a plan, as a store of it would look.
  public struct Candidate: Sendable, Codable, Hashable {
    public var version: Schema.Version
    public var entityNames: [String]
    public var structure: StoreStructure
    public var format: StoreFormat

    public init(
      version: Schema.Version, entityNames: [String], structure: StoreStructure,
      format: StoreFormat = .coredata
    ) {
      self.format = format
      self.version = version
      self.entityNames = entityNames
      self.structure = structure
    }
  }

  /// Matches a store to the versions of a plan.
  ///
  /// - Parameter candidates: the plan's versions, oldest first, at least one.
  public init(of identity: StoreIdentity, among candidates: [Candidate]) {
    guard candidates.contains(where: { $0.format == identity.format }) else {
      self.init(
        state: .unknown,
        reason: "the store is of the format \(identity.format.rawValue), and the plan is not")
      return
    }
    let last = candidates.last?.version
    let known = candidates.map(\.structure)
    /// What there is, as far as it counts, in the words of a version.
    func structure(asIn candidate: Candidate) -> StoreStructure {
      identity.format == .plain
        ? identity.structure.described(asIn: candidate.structure, among: known)
        : identity.structure
    }
    let equal = candidates.filter { $0.structure == structure(asIn: $0) }
    if let declared = identity.version,
      let named = candidates.first(where: { $0.version == declared })
    {
      let structure = structure(asIn: named)
      if declared == Self.unsaidVersion, named.structure != structure, equal.count == 1 {
        self.init(
          state: .unversioned, version: equal[0].version,
          reason:
            "the store declares \(declared), as one of models without a version does, and is built like \(equal[0].version)"
        )
      } else if named.structure == structure || Self.isAsLeft(identity, beside: named.structure) {
        self.init(state: declared == last ? .current : .behind, version: declared)
      } else {
        self.init(
          state: .unknown,
          reason:
            "the store declares version \(declared), but is built otherwise than that version",
          nearest: declared,
          differences: structure.differences(from: named.structure))
      }
      return
    }
    let entityNames = Set(identity.entityNames)
    if let declared = identity.version, let last, declared > last,
      candidates.contains(where: {
        !entityNames.isDisjoint(
          with: $0.format == .plain ? $0.structure.tables.map(\.name) : $0.entityNames)
      })
    {
      self.init(
        state: .ahead, reason: "the store is at \(declared), the plan ends at \(last)")
      return
    }
    if equal.count == 1 {
      self.init(
        state: .unversioned, version: equal[0].version,
        reason: identity.version.map {
          "the store declares version \($0), which the plan does not know, and is built like \(equal[0].version)"
        } ?? "the store declares no version, and is built like \(equal[0].version)")
      return
    }
    if equal.count > 1 {
      let versions = equal.map { "\($0.version)" }.joined(separator: ", ")
      self.init(
        state: .unknown, reason: "the store is built like several versions of the plan: \(versions)"
      )
      return
    }
    let ranked = candidates.map { ($0, structure(asIn: $0).differences(from: $0.structure)) }
    let best = ranked.min { $0.1.count < $1.1.count }
    self.init(
      state: .unknown, reason: "the store is built like no version of the plan",
      nearest: best?.0.version, differences: best?.1 ?? [])
  }

  /// What a store declares that was made of model types alone, whichever version they are of.
  private static let unsaidVersion = Schema.Version(1, 0, 0)

  /// Whether the store has all that the version has, and is built as it was when Instar put it back.
  private static func isAsLeft(
    _ identity: StoreIdentity, beside expected: StoreStructure
  ) -> Bool {
    guard identity.stampedFingerprint == identity.fingerprint else { return false }
    return StructureFit(of: identity.structure, to: expected).lacksNothing
  }
}
