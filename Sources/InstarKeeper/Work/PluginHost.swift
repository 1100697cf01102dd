public import InstarSchema
public import InstarWire

/// What runs plugins for the keeper. Whatever it says is shown to people and believed by nobody.
public protocol PluginHost: Sendable {
  func describe(plugin: String) throws(InstarError) -> PluginManifest

  /// - Parameter store: What the statements are worked out for; where it is left out, a store that Instar made.
  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration

  /// Brings a clone to the last version of a plan.
  ///
  /// When the call returns or throws, nothing that it started runs any more.
  ///
  /// - Parameter onEvent: Called with each event. If it throws, the work ends with that error.
  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError)
}

/// One clone to be worked on.
public struct CloneWork: Sendable, Hashable {
  public var plugin: String
  public var plan: String
  public var from: Schema.Version
  /// The only folder that the work may write.
  public var cloneFolder: String
  public var clone: String
  /// The path of the store that was cloned.
  public var store: String
  /// Where large values of the store lie in files, which the work may read; `nil` where there are none.
  public var externalFolder: String?
  public var sqlDebugLevel: Int
  /// How long one stage may take, and how long until the first one begins.
  public var stageTimeLimit: Duration
}

/// Something that happened while a clone was worked on.
public enum CloneWorkEvent: Sendable, Hashable {
  case stageStarted(StageManifest)
  case stageFinished(StageManifest)
  /// A statement that was run.
  case sql(String)
  /// What the plugin printed.
  case output(String)
}
