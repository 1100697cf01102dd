public import InstarSchema

/// What of a store decides by which statements its schema is changed: what it is made of, and none of its rows.
///
/// A worker makes an empty store of it to plan on.
public struct StoreDDL: Sendable, Codable, Hashable {
  public var format: StoreFormat
  /// The statements that made its tables, indexes and triggers, in the order in which it lists them; of a plain store
  /// its views and virtual tables, too. None where they are too many to be sent.
  public var statements: [String]
  /// The entities as `Z_PRIMARYKEY` numbers them; none of a plain store.
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
