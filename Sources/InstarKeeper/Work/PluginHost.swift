public import InstarSchema
public import InstarWire

/// Runs plugins for the keeper. The keeper shows what it reports to people, and trusts none of it.
public protocol PluginHost: Sendable {
  func describe(plugin: String) throws(InstarError) -> PluginManifest

  /// - Parameter store: The store whose statements are planned; `nil` for a store that Instar made.
  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration

  /// Brings a clone to the last version of a plan.
  ///
  /// When the call returns or throws, every process that it started has ended.
  ///
  /// - Parameter onEvent: Called with each event. Where it throws, the work ends with that error.
  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError)
}

/// A clone, and what to do with it.
public struct CloneWork: Sendable, Hashable {
  public var plugin: String
  public var plan: String
  public var from: Schema.Version
  /// The only folder that the worker may write.
  public var cloneFolder: String
  public var clone: String
  /// The path of the store that was cloned.
  public var store: String
  /// The folder with the external values of the store, which the worker may read; `nil` where the store has none.
  public var externalFolder: String?
  public var sqlDebugLevel: Int
  /// The most memory that the worker may use.
  public var memoryBytes: Int64
  /// The longest file that the worker may write.
  public var fileSizeBytes: Int64
  /// The time limit for each stage, and for loading the plugin.
  public var stageTimeLimit: Duration
}

/// An event of the work on a clone.
public enum CloneWorkEvent: Sendable, Hashable {
  case stageStarted(StageManifest)
  case stageFinished(StageManifest)
  /// An SQL statement that the worker ran.
  case sql(String)
  /// Text that the plugin printed.
  case output(String)
}
