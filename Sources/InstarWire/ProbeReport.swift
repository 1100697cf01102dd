public import InstarSchema

/// The result of probing one file, without changing it.
///
/// As JSON this is the output of `instarctl probe --json`, one object per store. `store`, `state`, `entities`,
/// `differences` and `holders` are always present, `format` and `version` too, as null if unknown. The others are left
/// out if they do not apply.
public struct ProbeReport: Sendable, Codable, Hashable {
  /// A process that has the store open.
  public struct Holder: Sendable, Codable, Hashable {
    /// The process id.
    public var pid: Int32
    /// The kernel's name of the process: at most 15 characters.
    public var command: String
    /// The systemd unit that the process belongs to, such as `app.service`; left out without one.
    public var unit: String?

    package init(pid: Int32, command: String, unit: String? = nil) {
      self.pid = pid
      self.command = command
      self.unit = unit
    }

    /// The process in words, such as "4211 (python3, app.service)".
    package var sentence: String {
      "\(pid) (\([command, unit].compactMap(\.self).joined(separator: ", ")))"
    }

    /// Whether it is a keeper of Instar, which must not be stopped.
    fileprivate var isKeeper: Bool { command == "instar-keeper" }
  }

  /// The path of the file.
  public var store: String
  /// How the schema maps to tables; null if the file is not a store.
  @NullableValue public var format: StoreFormat?
  /// The state in relation to the plans of the given plugins.
  public var state: StoreState
  /// The reason for the state, one sentence; left out if the state says everything.
  public var reason: String?
  /// The error that ended the probe, or the reason why no plan could be chosen; else left out.
  public var error: InstarError?
  /// The version that the store declares, or that its plan recognizes; null if unknown.
  @NullableValue public var version: Schema.Version?
  /// The entities, ordered by name.
  public var entities: [CountedEntity]
  /// The name of the plan that matches the store; left out without one.
  public var plan: String?
  /// The path of the plugin with that plan.
  public var plugin: String?
  /// The last version of that plan.
  public var planVersion: Schema.Version?
  /// The version of the plan with the fewest differences from the store; left out if the store has one of its versions.
  public var nearestVersion: Schema.Version?
  /// The versions that an unversioned store can be adopted as: those whose structure it has.
  public var fittingVersions: [Schema.Version]?
  /// The differences from `nearestVersion`, one sentence each.
  public var differences: [String]
  /// The store's `Z_UUID`; left out for plain stores.
  public var uuid: String?
  /// SHA-256 of the structure, in hexadecimal digits.
  public var fingerprint: String?
  /// The versions in the history tables of migration tools in a plain store; left out if there are none.
  public var toolVersions: [ToolVersion]?
  /// The hash of each entity as the store declares it, in base64, by the entity's name; left out for plain stores.
  public var entityHashes: [String: String]?
  /// The size of the main file, in bytes.
  public var sizeBytes: Int64?
  /// The size of a page, in bytes.
  public var pageSizeBytes: Int?
  /// "wal" or "delete", from the file's header.
  public var journalMode: String?
  /// The size of the frames in the `-wal` file that the next checkpoint copies to the main file, in bytes with their
  /// headers of 24 bytes. 0 if all frames were copied, whatever the size of the `-wal` file; left out if there is no
  /// such file.
  public var walBytes: Int64?
  /// The size of the rollback journal beside the store, in bytes: a transaction is in progress, or was cut off. Left
  /// out if there is none.
  public var journalBytes: Int64?
  /// The number of files with external values in `.NAME_SUPPORT/_EXTERNAL_DATA`, counted up to 100,000. Left out if
  /// there is no such folder, or it cannot be listed.
  public var externalFiles: Int?
  /// The size of these files, in bytes.
  public var externalBytes: Int64?
  /// The program that copies the store's write-ahead log to another place; left out without one.
  public var replicator: Replicator?
  /// The order to leave the store alone; left out without one.
  public var hold: Hold?
  /// The processes that have the store open, as far as this user can see. Those of other users are seen while they have
  /// a lock on the store.
  public var holders: [Holder] = []

  /// The processes that have the store open, in words; `nil` where none is known.
  package var holdersInWords: String? { Self.inWords(holders) }

  /// "the store is open in PROCESS, PROCESS and 3 more"; `nil` without holders.
  ///
  /// - Parameter file: What they have open.
  package static func inWords(_ holders: [Holder], of file: String = "the store") -> String? {
    guard !holders.isEmpty else { return nil }
    let named = holders.prefix(5).map(\.sentence).joined(separator: ", ")
    let others = holders.count - 5
    return "\(file) is open in \(named)\(others > 0 ? " and \(others) more" : "")"
  }

  /// What to do where another process has a store locked.
  ///
  /// - Parameter holders: The processes that have the store open, as far as they are known.
  package static func adviceOnLock(of store: String, _ holders: [Holder]) -> String {
    guard !holders.isEmpty else {
      // The system may hide the processes of others, as it does from a service with `ProtectProc=`.
      return "to see which process it is, run as root: \(CommandText.probe(store)); "
        + InstarError.adviceOnLock
    }
    let keepers = holders.filter(\.isKeeper).map(\.sentence).joined(separator: ", ")
    // Apps that have the store open wait for the run too.
    guard keepers.isEmpty else {
      return "wait until the run of Instar that works on the store ends: process \(keepers)"
    }
    let named = holders.prefix(5).map(\.sentence).joined(separator: ", ")
    return holders.count == 1
      ? "stop process \(named) or wait until it closes the store"
      : "stop these processes or wait until they close the store: \(named)"
  }

  /// A report without the fields that only a readable store has.
  public init(
    store: String, format: StoreFormat? = nil, state: StoreState, reason: String? = nil,
    version: Schema.Version? = nil, entities: [CountedEntity] = [], differences: [String] = []
  ) {
    self.store = store
    _format = NullableValue(wrappedValue: format)
    self.state = state
    self.reason = reason
    _version = NullableValue(wrappedValue: version)
    self.entities = entities
    self.differences = differences
  }
}
