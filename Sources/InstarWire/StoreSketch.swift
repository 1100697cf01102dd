/// What of a store decides by which statements its schema is changed: what it is made of, and none of its rows.
///
/// A worker makes an empty store of it to plan on.
public struct StoreSketch: Sendable, Codable, Hashable {
  /// The statements that made its tables, indexes and triggers, in the order in which it lists them.
  public var statements: [String]
  /// The entities as `Z_PRIMARYKEY` numbers them.
  public var entities: [Entity]
  /// `NSPersistenceFrameworkVersion`; `nil` where the store does not say.
  public var frameworkVersion: Int?
  /// Whether the store was made by Instar.
  public var isMadeByInstar: Bool

  public struct Entity: Sendable, Codable, Hashable {
    public var number: Int
    public var name: String
    public var superNumber: Int

    public init(number: Int, name: String, superNumber: Int) {
      self.number = number
      self.name = name
      self.superNumber = superNumber
    }
  }

  public init(
    statements: [String], entities: [Entity], frameworkVersion: Int?, isMadeByInstar: Bool
  ) {
    self.statements = statements
    self.entities = entities
    self.frameworkVersion = frameworkVersion
    self.isMadeByInstar = isMadeByInstar
  }
}
