/// What a worker needs to plan for a real store: its tables without its rows.
///
/// The worker creates an empty in-memory store with it.
public struct StoreDDL: Sendable, Codable, Hashable {
  /// The `CREATE` statements of tables, indexes, views and triggers, in this order. For a plain store also those of
  /// virtual tables, for the Core Data format also the statements that list the entities and the conventions. Empty if
  /// they are too long for a message.
  public var statements: [String]

  package init(statements: [String]) {
    self.statements = statements
  }
}
