public import InstarSchema

/// How one run ended. As JSON this is the output of `instarctl migrate --json`, one object a store, and a line of
/// the ledger.
public struct RunReport: Sendable, Codable, Hashable {
  public enum Result: String, Sendable, Codable, Hashable {
    /// The store is at the plan's last version now.
    case migrated
    /// It was before: nothing was done.
    case current
    /// Refused before anything was touched.
    case refused
    /// Attempted and given up; the store is as it was.
    case failed
    /// Somebody else holds the store; to be tried again.
    case busy
  }

  public var run: String
  public var store: String
  public var result: Result
  public var plan: String?
  public var plugin: String?
  public var from: Schema.Version?
  public var to: Schema.Version?
  /// Seconds since 1970.
  public var startedAt: Double
  public var durationMicroseconds: Int64
  public var stages: [Stage]
  public var entities: [Entity]
  public var relationships: [Relationship]
  public var bytes: Int64?
  /// The path of the backup.
  public var backup: String?
  /// What a person should know although the run went well.
  public var notes: [String]
  public var error: InstarError?

  public init(run: String, store: String, result: Result, startedAt: Double) {
    self.run = run
    self.store = store
    self.result = result
    self.startedAt = startedAt
    self.durationMicroseconds = 0
    self.stages = []
    self.entities = []
    self.relationships = []
    self.notes = []
  }

  public struct Stage: Sendable, Codable, Hashable {
    public var from: Schema.Version
    public var to: Schema.Version
    public var kind: StageManifest.Kind
    public var durationMicroseconds: Int64

    public init(
      from: Schema.Version, to: Schema.Version, kind: StageManifest.Kind,
      durationMicroseconds: Int64
    ) {
      self.from = from
      self.to = to
      self.kind = kind
      self.durationMicroseconds = durationMicroseconds
    }
  }

  /// Rows of an entity before and after; `nil` where the entity is new, or gone.
  public struct Entity: Sendable, Codable, Hashable {
    public var name: String
    public var rowsBefore: Int?
    public var rowsAfter: Int?

    public init(name: String, rowsBefore: Int?, rowsAfter: Int?) {
      self.name = name
      self.rowsBefore = rowsBefore
      self.rowsAfter = rowsAfter
    }
  }

  /// Links of a relationship before and after; `nil` where the relationship is new, or gone.
  public struct Relationship: Sendable, Codable, Hashable {
    /// "Note.folder".
    public var name: String
    public var linksBefore: Int?
    public var linksAfter: Int?

    public init(name: String, linksBefore: Int?, linksAfter: Int?) {
      self.name = name
      self.linksBefore = linksBefore
      self.linksAfter = linksAfter
    }
  }
}
