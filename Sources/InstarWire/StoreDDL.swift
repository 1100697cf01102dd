public import InstarSchema

/// What a worker needs to plan for a real store: its tables without its rows.
///
/// The worker creates an empty in-memory store with it.
public struct StoreDDL: Sendable, Codable, Hashable {
  /// How the schema maps to tables.
  public var format: StoreFormat
  /// The `CREATE` statements of tables, indexes, views and triggers, in this order; for a plain store also of virtual
  /// tables. Empty if they are too long for a message.
  public var statements: [String]
  /// The rows of `Z_PRIMARYKEY`; empty for a plain store.
  public var entities: [Entity]
  /// `NSPersistenceFrameworkVersion`; left out if the store does not declare it.
  public var frameworkVersion: Int?
  /// Whether Instar created the store.
  public var isMadeByInstar: Bool

  /// A row of `Z_PRIMARYKEY`.
  public struct Entity: Sendable, Codable, Hashable {
    /// `Z_ENT`: the entity's number in rows.
    public var number: Int
    /// `Z_NAME`: the entity's name.
    public var name: String
    /// `Z_SUPER`: the number of the superentity; 0 for none.
    public var superNumber: Int

    /// A row.
    public init(number: Int, name: String, superNumber: Int) {
      self.number = number
      self.name = name
      self.superNumber = superNumber
    }
  }

  /// The description of a store.
  public init(
    format: StoreFormat, statements: [String], entities: [Entity] = [],
    frameworkVersion: Int? = nil, isMadeByInstar: Bool = false
  ) {
    self.format = format
    self.statements = statements
    self.entities = entities
    self.frameworkVersion = frameworkVersion
    self.isMadeByInstar = isMadeByInstar
  }
}
