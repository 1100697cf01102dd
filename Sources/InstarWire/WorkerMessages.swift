public import InstarSchema

/// A request of a keeper to a worker: one line on the worker's descriptor 3.
public enum WorkerRequest: Sendable, Codable, Hashable {
  /// Asks for the plugin's manifest. Answered by `.described` or `.failed`.
  case describe
  /// Asks for the planned migration from a version to the last one of the plan. Answered by `.planned` or `.failed`.
  /// The worker opens no store; `store` describes the tables of the real one, and is left out if no store is given.
  case plan(plan: String, from: Schema.Version, store: StoreDDL?)
  /// Migrates the clone at the path `clone` to the last version of the plan. Answered by events of stages and
  /// statements, then `.migrated` or `.failed`.
  ///
  /// `store` is the path of the store that was cloned, for the configurations of a context; the worker can neither
  /// read nor write it. `externalFolder` holds the store's external values, which the worker reads; it creates new
  /// ones beside the clone. It is left out if the store has none. `sqlDebugLevel` is as in `MigrationRequest`.
  case migrate(
    plan: String, from: Schema.Version, clone: String, store: String, externalFolder: String?,
    sqlDebugLevel: Int)
}

/// A reply or event of a worker: one line on its descriptor 3. The keeper displays events, and verifies the clone
/// itself. Only the counts of lost values come from the worker alone: an event can add a reason to refuse a run, and
/// removes none, but what a worker leaves out is not counted.
public enum WorkerEvent: Sendable, Codable, Hashable {
  /// The plugin is loaded; the worker waits for requests.
  case ready
  /// The reply to `describe`.
  case described(PluginManifest)
  /// The reply to `plan`.
  case planned(PlannedMigration)
  /// A stage started or finished on the clone.
  case stageStarted(StageManifest)
  case stageFinished(StageManifest)
  /// How far a long piece of work of the stage is, as the worker sees it.
  case progress(WorkProgress)
  /// The stages left values behind that no closure replaced. The run is refused if nobody accepts the loss.
  case valuesLost(LostValues)
  /// A closure fetched many rows at once.
  case fetchedWhole(WholeFetch)
  /// A line about executed statements, in Core Data's form; with bound values only from `sqlDebugLevel` 3 on.
  case sql(String)
  /// All stages ran.
  case migrated
  /// The request failed.
  case failed(InstarError)
}

extension WorkerEvent {
  /// The exit status of a worker that reached its limit of memory.
  public static let exitStatusOverMemory: Int32 = 70
  /// The exit status of a worker that reached its limit of threads.
  public static let exitStatusOverThreads: Int32 = 71
  /// The exit status of a worker that could not interrupt a statement on the clone.
  public static let exitStatusOverBudget: Int32 = 72
}
