public import InstarSchema

/// What a probe found out about one file, without changing it.
///
/// As JSON this is the output of `instarctl probe --json`, one object a store. `store`, `format`, `state`, `version`
/// and `entities` are always there, `format` and `version` as null where they are not known; the others where they
/// apply.
public struct ProbeReport: Sendable, Codable, Hashable {
  public struct Entity: Sendable, Codable, Hashable {
    public var name: String
    /// Left out where rows were not counted.
    public var rows: Int?

    public init(name: String, rows: Int? = nil) {
      self.name = name
      self.rows = rows
    }
  }

  /// A process that has the store open.
  public struct Holder: Sendable, Codable, Hashable {
    public var pid: Int32
    /// What the kernel calls it: at most 15 characters.
    public var command: String

    public init(pid: Int32, command: String) {
      self.pid = pid
      self.command = command
    }
  }

  public var store: String
  /// `nil` where the file is no store.
  public var format: StoreFormat?
  public var state: StoreState
  /// Why the store is in that state; `nil` where the state says all.
  public var reason: String?
  /// Why nothing could be found out, whole; `nil` where something was.
  public var error: InstarError?
  public var version: Schema.Version?
  public var entities: [Entity]
  /// The plan that the state is seen from, and the plugin that carries it.
  public var plan: String?
  public var plugin: String?
  /// The last version of the plan.
  public var planVersion: Schema.Version?
  public var nearestVersion: Schema.Version?
  public var differences: [String]
  /// The store's `Z_UUID`.
  public var uuid: String?
  public var fingerprint: String?
  /// What the history tables of migration tools in a plain store say; left out where there are none.
  public var toolVersions: [ToolVersion]?
  /// Hashes of the entities, base64, as the store declares them.
  public var entityHashes: [String: String]?
  public var sizeBytes: Int64?
  public var pageSizeBytes: Int?
  /// "wal" or "delete", from the file's header.
  public var journalMode: String?
  /// What of the write-ahead log is not in the main file yet: the bytes of the frames, with their headers of 24 bytes,
  /// that the next checkpoint copies. 0 for a log that was checkpointed or is left from an earlier round, whatever its
  /// file takes; `nil` where there is no log.
  public var walBytes: Int64?
  /// Bytes in a rollback journal beside the store: a transaction is going on, or was cut off.
  public var journalBytes: Int64?
  /// How many large values lie in files in `.NAME_SUPPORT/_EXTERNAL_DATA`; counted up to 100,000. `nil` where there is
  /// no such folder, or it cannot be listed.
  public var externalFiles: Int?
  /// What these files take.
  public var externalBytes: Int64?
  /// Who has the store open, as far as this user may see; others than root see their own processes
  /// only.
  public var holders: [Holder] = []

  public init(
    store: String, format: StoreFormat? = nil, state: StoreState, reason: String? = nil,
    version: Schema.Version? = nil, entities: [Entity] = [], differences: [String] = []
  ) {
    self.store = store
    self.format = format
    self.state = state
    self.reason = reason
    self.version = version
    self.entities = entities
    self.differences = differences
  }

  private enum CodingKeys: String, CodingKey {
    case store, format, state, reason, error, version, entities, plan, plugin, planVersion
    case nearestVersion, differences, uuid, fingerprint, entityHashes, sizeBytes, pageSizeBytes
    case journalMode, walBytes, journalBytes, externalFiles, externalBytes, holders, toolVersions
  }

  /// As the compiler would write it, but for the two values that scripts find as null instead of not at all.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(store, forKey: .store)
    try container.encode(format, forKey: .format)
    try container.encode(state, forKey: .state)
    try container.encodeIfPresent(reason, forKey: .reason)
    try container.encodeIfPresent(error, forKey: .error)
    try container.encode(version, forKey: .version)
    try container.encode(entities, forKey: .entities)
    try container.encodeIfPresent(plan, forKey: .plan)
    try container.encodeIfPresent(plugin, forKey: .plugin)
    try container.encodeIfPresent(planVersion, forKey: .planVersion)
    try container.encodeIfPresent(nearestVersion, forKey: .nearestVersion)
    try container.encode(differences, forKey: .differences)
    try container.encodeIfPresent(uuid, forKey: .uuid)
    try container.encodeIfPresent(fingerprint, forKey: .fingerprint)
    try container.encodeIfPresent(toolVersions, forKey: .toolVersions)
    try container.encodeIfPresent(entityHashes, forKey: .entityHashes)
    try container.encodeIfPresent(sizeBytes, forKey: .sizeBytes)
    try container.encodeIfPresent(pageSizeBytes, forKey: .pageSizeBytes)
    try container.encodeIfPresent(journalMode, forKey: .journalMode)
    try container.encodeIfPresent(walBytes, forKey: .walBytes)
    try container.encodeIfPresent(journalBytes, forKey: .journalBytes)
    try container.encodeIfPresent(externalFiles, forKey: .externalFiles)
    try container.encodeIfPresent(externalBytes, forKey: .externalBytes)
    try container.encode(holders, forKey: .holders)
  }
}
