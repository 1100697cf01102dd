/// An entity that a store lists, or a table of a plain store.
public struct CountedEntity: Sendable, Codable, Hashable {
  /// The name of the entity or table.
  public var name: String
  /// The number of rows; left out if they were not counted.
  public var rows: Int?

  /// An entity or table; without a number, one whose rows were not counted.
  public init(name: String, rows: Int? = nil) {
    self.name = name
    self.rows = rows
  }
}
