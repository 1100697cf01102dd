/// A fetch without a limit in the code of a stage. It had an object for each row in memory, where `enumerate` has
/// those of one batch.
public struct WholeFetch: Sendable, Codable, Hashable {
  /// The version that the stage starts at.
  public var from: Schema.Version
  /// The version that the stage ends at.
  public var to: Schema.Version
  /// The closure that fetched: willMigrate, didMigrate or bridge.
  public var closure: String
  /// The entity, by its name in the version of the closure's context.
  public var entity: String
  /// The rows that it fetched at once.
  public var rows: Int

  /// A fetch.
  public init(
    from: Schema.Version, to: Schema.Version, closure: String, entity: String, rows: Int
  ) {
    self.from = from
    self.to = to
    self.closure = closure
    self.entity = entity
    self.rows = rows
  }

  /// The number of models that `enumerate` has in memory at once, unless its caller chooses another one; and the number
  /// of models of a fetch that have their values in memory.
  public static let batchSize = 5_000

  /// "didMigrate of 1.0.0 → 2.0.0 fetches 12000 rows of Note at once".
  public var sentence: String {
    "\(closure) of \(from) → \(to) fetches \(rows) rows of \(entity) at once"
  }

  /// What to write instead.
  public var advice: String {
    "write: try context.enumerate(FetchDescriptor<…\(entity)>()) { … }, which has \(Self.batchSize) rows in memory at a time"
  }
}
