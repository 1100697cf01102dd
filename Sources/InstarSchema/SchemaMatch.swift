/// The version of a plan that a store has, and the state that follows from it.
///
/// A store is matched by declared version *and* structure, else by structure alone. A declared version with a different
/// structure is not trusted: migrating from it would change the wrong columns. The exception is 1.0.0, the default of
/// schemas without a version. A store adopted with additional tables or columns matches as long as its structure is the
/// one that Instar stamped.
public struct SchemaMatch: Sendable, Codable, Hashable {
  /// Where the store stands, seen from the plan.
  public var state: StoreState
  /// The version of the plan that the store has; `nil` if it has none of them, or if several have its structure.
  public var version: Schema.Version?
  /// The versions whose structure an unversioned store has: it can be adopted as one of them.
  public var fitting: [Schema.Version] = []
  /// The reason for the state, one sentence; empty for `current` and `behind`.
  public var reason: String
  /// The version with the fewest differences; `nil` if the store has a version of the plan.
  public var nearest: Schema.Version?
  /// The differences from the nearest version, one sentence each.
  public var differences: [String]

  /// A match with these findings.
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

  /// Matches a store to the versions of a plan.
  ///
  /// - Parameter candidates: The plan's versions, oldest first, at least one.
  public init(of identity: StoreIdentity, among candidates: [VersionManifest]) {
    guard candidates.contains(where: { $0.schema.format == identity.format }) else {
      self.init(
        state: .unknown,
        reason:
          "the store has the format \(identity.format.rawValue); the plan has no version of that format"
      )
      return
    }
    let last = candidates.last?.schema.version
    let known = candidates.map(\.structure)
    func structure(asIn candidate: VersionManifest) -> StoreStructure {
      identity.structure.described(
        asIn: candidate.structure, among: known, format: identity.format)
    }
    let equal = candidates.filter { $0.structure == structure(asIn: $0) }
    if let declared = identity.version,
      let named = candidates.first(where: { $0.schema.version == declared })
    {
      self.init(
        of: identity, declaring: named, structure: structure(asIn: named),
        isLast: declared == last, equal: equal.map(\.schema.version))
      return
    }
    let entityNames = Set(identity.entityNames)
    if let declared = identity.version, let last, declared > last,
      candidates.contains(where: { !entityNames.isDisjoint(with: $0.listedNames) })
    {
      self.init(
        state: .ahead, reason: "the store is at \(declared), the plan ends at \(last)")
      return
    }
    if !equal.isEmpty {
      self.init(
        unversioned: identity.version.map {
          "the store declares version \($0), which is not in the plan"
        } ?? "the store declares no version", fitting: equal.map(\.schema.version))
      return
    }
    let ranked = candidates.map { ($0, structure(asIn: $0).differences(from: $0.structure)) }
    let best = ranked.min { $0.1.count < $1.1.count }
    self.init(
      state: .unknown, reason: Self.matchesNoVersion,
      nearest: best?.0.schema.version, differences: best?.1 ?? [])
  }

  /// Matches a store to the version of the plan that it declares.
  ///
  /// - Parameters:
  ///   - structure: The store's structure, described as that of the version.
  ///   - isLast: Whether the plan ends at this version.
  ///   - equal: The versions with the store's structure.
  private init(
    of identity: StoreIdentity, declaring candidate: VersionManifest, structure: StoreStructure,
    isLast: Bool, equal: [Schema.Version]
  ) {
    let declared = candidate.schema.version
    let expected = candidate.structure
    if declared == Self.unsaidVersion, expected != structure, !equal.isEmpty {
      self.init(
        unversioned: "the store declares \(declared), the default of schemas without a version",
        fitting: equal)
    } else if expected == structure || Self.isAsLeft(identity, beside: expected) {
      self.init(state: isLast ? .current : .behind, version: declared)
    } else {
      self.init(
        state: .unknown,
        reason:
          "the store declares version \(declared), but its structure does not match that version",
        nearest: declared, differences: structure.differences(from: expected))
    }
  }

  /// - Parameter fitting: The versions with the store's structure, at least one.
  private init(unversioned reason: String, fitting: [Schema.Version]) {
    let versions = fitting.map { "\($0)" }.joined(separator: ", ")
    self.init(
      state: .unversioned, version: fitting.count == 1 ? fitting[0] : nil,
      reason:
        "\(reason); its structure matches \(fitting.count == 1 ? "" : "versions ")\(versions)")
    self.fitting = fitting
  }

  /// The reason of a store with another structure than each version of the plan.
  package static let matchesNoVersion = "the store's structure matches no version of the plan"

  /// The version that a store declares if it was created from model types without a `VersionedSchema`.
  private static let unsaidVersion = Schema.Version(1, 0, 0)

  /// Whether the store has everything of the version, and still the structure that Instar stamped.
  private static func isAsLeft(
    _ identity: StoreIdentity, beside expected: StoreStructure
  ) -> Bool {
    guard identity.stampedFingerprint == identity.fingerprint else { return false }
    return StructureFit(of: identity.structure, to: expected).lacksNothing
  }
}
