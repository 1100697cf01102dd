public import InstarSchema

/// What the keeper asks of a worker: one line on the worker's descriptor 3.
public enum WorkerRequest: Sendable, Codable, Hashable {
  /// Answered by `.described` or `.failed`.
  case describe
  /// Answered by `.planned` or `.failed`. No store is opened; what is known of it is in `store`.
  case plan(plan: String, from: Schema.Version, store: StoreDDL?)
  /// Brings the clone at `clone` to the plan's last version. Answered by a series of stage events that ends in
  /// `.migrated` or `.failed`.
  ///
  /// `externalFolder` is where large values of the store lie in files; they are read, and new ones are made beside the
  /// clone.
  case migrate(
    plan: String, from: Schema.Version, clone: String, externalFolder: String?, sqlDebugLevel: Int)
}

/// What a worker answers: lines on its descriptor 3. The keeper believes none of it: it is shown, and the clone is
/// verified by the keeper itself.
public enum WorkerEvent: Sendable, Codable, Hashable {
  /// The plugin is loaded; the worker waits for requests.
  case ready
  case described(PluginManifest)
  case planned(PlannedMigration)
  case stageStarted(StageManifest)
  case stageFinished(StageManifest)
  /// A statement that was run, in Core Data's form, without bound values.
  case sql(String)
  case migrated
  case failed(InstarError)
}
