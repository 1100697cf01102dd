public import InstarSchema

/// One stage of a plan.
public struct StageManifest: Sendable, Codable, Hashable {
  /// What the plan does in the stage, besides the change of schema.
  public enum Kind: String, Sendable, Codable, Hashable {
    /// Nothing: no code of the plan runs.
    case lightweight
    /// Closures run before and after the change.
    case custom
    /// SQL statements run before and after the change.
    case sql
    /// Functions compute properties row by row.
    case transform
    /// A closure has the contexts of both versions.
    case bridge

    /// - Throws: `protocolViolation` for a kind that a later release has.
    public init(from decoder: any Decoder) throws {
      let name = try decoder.singleValueContainer().decode(String.self)
      guard let kind = Kind(rawValue: name) else {
        throw InstarError(
          .protocolViolation, "cannot read a stage",
          cause: "this release of Instar does not know stages of the kind '\(name)'",
          next: "install the release of Instar that wrote this, or a later one")
      }
      self = kind
    }
  }

  /// The version that the stage starts at.
  public var from: Schema.Version
  /// The version that the stage ends at.
  public var to: Schema.Version
  /// What the plan does in the stage.
  public var kind: Kind
  /// Whether the plan does not have the stage: Instar adds a lightweight one where a version has none.
  public var isImplicit: Bool
  /// The name that the plan gives the stage; left out for a stage without one.
  public var label: String?
  /// The properties of the later version that a transform computes, such as "Note.words"; left out if it computes none.
  public var computedProperties: [String]?

  package init(
    from: Schema.Version, to: Schema.Version, kind: Kind, isImplicit: Bool = false,
    label: String? = nil, computedProperties: [String]? = nil
  ) {
    self.from = from
    self.to = to
    self.kind = kind
    self.isImplicit = isImplicit
    self.computedProperties = computedProperties?.isEmpty == true ? nil : computedProperties
    // A label without a visible character names nothing.
    self.label = label.flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 }
  }

  /// Returns what errors, events and the journal call the stage: "AddTags (2 of 3)", or "1.0.0 → 2.0.0 (2 of 3)" for a
  /// stage without a label.
  ///
  /// - Parameter number: The place of the stage in its run, such as "2 of 3".
  package func title(_ number: String) -> String {
    "\(label ?? "\(from) → \(to)") (\(number))"
  }
}
