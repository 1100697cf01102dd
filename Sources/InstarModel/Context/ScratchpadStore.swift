import InstarSchema
import InstarStore

/// The storage of a run's scratchpad: a temporary SQLite database, which is in a file only if it gets large, and which
/// SQLite deletes with its connection (sqlite.org/inmemorydb.html, "Temporary Databases"). Created at the first use.
package final class ScratchpadStore {
  static let table = "scratchpad"
  private var connection: StoreConnection?

  package init() {}

  func perform<Value>(_ body: (SQLSession) throws -> Value) throws -> Value {
    if let connection { return try connection.perform(body) }
    let made = try StoreConnection(path: "", durability: .clone)
    try made.perform { session in
      try session.run(
        "CREATE TABLE \(Self.table) (name TEXT, entity TEXT, key INTEGER, value BLOB, "
          + "PRIMARY KEY (name, entity, key)) WITHOUT ROWID")
    }
    connection = made
    return try made.perform(body)
  }

  /// What happens to the rows of an entity in a stage's change of schema.
  package struct Change {
    let old: String
    /// `nil` if the entity is removed.
    let new: String?
    /// Whether its rows keep their keys.
    let keepsKeys: Bool

    package init(old: String, new: String?, keepsKeys: Bool) {
      self.old = old
      self.new = new
      self.keepsKeys = keepsKeys
    }
  }

  /// Moves the values of models to the new names of their entities after a change of schema, and removes the values of
  /// removed entities, whose names another entity may get.
  ///
  /// - Parameter changes: The changes of all entities in one stage, in all stores.
  /// - Throws: `unsupported` if values were kept for models whose rows change their keys. Nothing is then changed.
  package func follow(_ changes: [Change]) throws {
    guard let connection else { return }
    try connection.perform { session in
      for change in changes where !change.keepsKeys {
        guard let new = change.new else { continue }
        try requireNoValues(of: change.old, becoming: new, session)
      }
      for change in changes where change.new == nil {
        let statement = try session.statement("DELETE FROM \(Self.table) WHERE entity = ?1")
        statement.bind(change.old, at: 1)
        try statement.run()
      }
      let renamed = changes.filter { $0.new != nil && $0.new != $0.old }
      // Two entities may have exchanged their names, so all get temporary names first.
      for (position, change) in renamed.enumerated() {
        try rename(change.old, to: "\(position)", session)
      }
      for (position, change) in renamed.enumerated() {
        try rename("\(position)", to: change.new ?? change.old, session)
      }
    }
  }

  private func requireNoValues(
    of old: String, becoming new: String, _ session: SQLSession
  ) throws {
    let name = AttributeValue.text(old).literal
    guard
      try session.integer("SELECT 1 FROM \(Self.table) WHERE entity = \(name) LIMIT 1") != nil
    else { return }
    throw InstarError(
      .unsupported, "cannot keep values of \(new) in the scratchpad",
      cause: "this stage changes the primary key, so rows cannot be matched to their old values",
      next: "change the key in a stage of its own, before or after this one")
  }

  private func rename(_ old: String, to new: String, _ session: SQLSession) throws {
    let statement = try session.statement(
      "UPDATE \(Self.table) SET entity = ?1 WHERE entity = ?2")
    statement.bind(new, at: 1)
    statement.bind(old, at: 2)
    try statement.run()
  }
}
