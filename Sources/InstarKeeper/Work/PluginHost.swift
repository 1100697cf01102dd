package import InstarChange
package import InstarSchema
package import InstarStore
package import InstarWire

/// Runs plugins for the keeper. The keeper shows what it reports to people, and trusts none of it.
package protocol PluginHost: Sendable {
  /// Loads a plugin, and returns the manifest that its code makes.
  ///
  /// - Throws: Why the plugin cannot be used.
  func describe(plugin: String) throws(InstarError) -> PluginManifest

  /// Returns what the plan would change from a version on, as found on an empty store. No store is opened.
  ///
  /// - Parameter store: The store whose statements are planned; `nil` for a store that Instar made.
  /// - Throws: Why the plan cannot be used.
  func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration

  /// Whether code of the plugin is in the process that runs these stages. If so, everything in the clone is verified.
  ///
  /// - Parameter schema: The schema of the clone before the first stage.
  func loadsPlugin(for stages: [SchemaStage], on schema: SchemaText) -> Bool

  /// Brings a clone to the last version of a plan.
  ///
  /// When the call returns or throws, every process that it started has ended.
  ///
  /// - Parameter onEvent: Called with each event. Where it throws, the work ends with that error.
  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError)
}

extension PluginHost {
  package func loadsPlugin(for stages: [SchemaStage], on schema: SchemaText) -> Bool { true }
}

/// A clone, and what to do with it.
package struct CloneWork: Sendable {
  /// The absolute path of the plugin.
  package var plugin: String
  /// The name of the plan in the plugin.
  package var plan: String
  /// The clone's version, at which the first stage starts.
  package var from: Schema.Version
  /// The stages to the plan's last version, in order, without the plan's code.
  package var stages: [SchemaStage]
  /// The schema of the clone before the first stage.
  package var schema: SchemaText
  /// The only folder that the worker may write.
  package var cloneFolder: String
  /// The path of the clone, the only store that the worker may write.
  package var clone: String
  /// The open transaction of the store that the stages change, in place of a clone; only where no stage loads the
  /// plugin.
  package var transaction: StoreTransaction?
  /// The path of the store that was cloned.
  package var store: String
  /// The folder with the external values of the store, which the worker may read; `nil` where the store has none.
  package var externalFolder: String?
  /// How much of each SQL statement is reported: 0 (nothing) to 4, as `SQLDebug.level`.
  package var sqlDebugLevel: Int
  /// The most memory that the worker may use.
  package var memoryBytes: Int64
  /// The longest file that the worker may write.
  package var fileSizeBytes: Int64
  /// The time limit for each stage, and for loading the plugin.
  package var stageTimeLimit: Duration
}

/// An event of the work on a clone.
package enum CloneWorkEvent: Sendable, Hashable {
  case stageStarted(StageManifest)
  case stageFinished(StageManifest)
  /// How far a long piece of work of the stage is.
  case progress(WorkProgress)
  /// Values that the stages lost.
  case valuesLost(LostValues)
  /// A closure fetched many rows at once.
  case fetchedWhole(WholeFetch)
  /// An SQL statement that the worker ran.
  case sql(String)
  /// Text that the plugin printed.
  case output(String)
}
