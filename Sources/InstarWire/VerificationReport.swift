public import InstarSchema

/// What `instarctl verify` found in one store: the keeper's reply to `.verify`.
public struct VerificationReport: Sendable, Codable, Hashable {
  /// How a verification ended.
  public enum State: String, Sendable, Codable, Hashable {
    /// All checks passed.
    case sound
    /// At least one check failed; `errors` has one error for each.
    case damaged
    /// The store could not be read as a whole; `errors` says why.
    case unverified
  }

  /// The path of the store.
  public var store: String
  /// How the verification ended.
  public var state: State
  /// How the store maps models to tables; left out if it could not be read.
  public var format: StoreFormat?
  /// The version whose structure and required values were checked; left out if no plan knows the store's version.
  public var version: Schema.Version?
  /// The plan that has this version.
  public var plan: String?
  /// The rows of all entities; left out if they could not be counted.
  public var rows: Int?
  /// The indexes that were compared with their tables.
  public var indexes: Int?
  /// The time that the verification took, in microseconds.
  public var durationMicroseconds: Int64
  /// What the checks found, or why there were none; empty for a sound store.
  public var errors: [InstarError]

  /// A report without optional fields.
  public init(
    store: String, state: State, durationMicroseconds: Int64 = 0, errors: [InstarError] = []
  ) {
    self.store = store
    self.state = state
    self.durationMicroseconds = durationMicroseconds
    self.errors = errors
  }

  /// A report on a store that was not verified.
  public init(store: String, unverified error: InstarError) {
    self.init(
      store: store, state: .unverified,
      errors: [
        error.about(
          "cannot verify '\(store)'", store: store,
          state: error.code == .missingStore ? nil : "unchanged")
      ])
  }
}
