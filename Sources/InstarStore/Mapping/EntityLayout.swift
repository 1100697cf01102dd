public import InstarSchema

/// What models have to know of the table of an entity, whatever the format: which column each property has, how a row is
/// told from others, and how relationships are kept.
///
/// A model is known in memory by one 64-bit key. What that key is in the table is `key`'s business, and how other rows
/// refer to it is that of each `ForeignKey`: no statement of the SDK goes by the names of one format.
public struct EntityLayout: Sendable {
  public var name: String
  /// The entity whose table and keys it shares; its own name where it inherits from none.
  public var root: String
  /// As it stands in SQL, quoted where that is needed.
  public var table: String
  /// Tells the entities of a store apart.
  public var number: Int
  /// The number of the entity above; 0 for a root entity.
  public var superNumber: Int
  /// The numbers of this entity and of all below it.
  public var numbers: [Int]
  public var key: RowKey
  /// The columns of the primary key, as they stand in SQL; empty where only `key` is one.
  public var primaryKey: [String] = []
  /// The column with the number of the row's entity; `nil` where a table holds one entity.
  public var entityColumn: String?
  /// The column that counts the updates of a row; `nil` for none.
  public var lockColumn: String?
  /// In the order of the schema; those that the entity inherits stand first.
  public var attributes: [AttributeColumn]
  public var relationships: [RelationshipStorage]
  /// Gives the highest key that was ever handed out, or NULL; a new row gets the next one.
  public var highestKeyStatement: String
  /// Keeps the key bound to it as the highest one; `nil` where the table itself is all there is to know.
  public var recordKeyStatement: String?

  public struct AttributeColumn: Sendable {
    public var attribute: Schema.Attribute
    public var column: StoredColumn

    public init(attribute: Schema.Attribute, column: StoredColumn) {
      self.attribute = attribute
      self.column = column
    }
  }

  public struct RelationshipStorage: Sendable {
    public var relationship: Schema.Relationship
    public var destinationTable: String
    public var place: Place
    /// Where the entity's own table keeps the number of the concrete entity at the other end; `nil` where that needs no
    /// telling, because no entity is below the destination.
    public var entityColumn: String?
    /// The column with the place of a link in an order, in the table that holds the link: of an ordered relationship, and of
    /// a to-one relationship that is the inverse of one.
    public var orderColumn: String?
    /// Of a relationship with a table of links: the same for the place among the links of the model at the other end.
    public var inverseOrderColumn: String?
    /// Whether the table of links has a row for each direction of a link: that of a relationship that is its own inverse.
    public var keepsBothDirections = false

    @frozen
    public enum Place: Sendable, Hashable {
      /// Columns of the entity's own table.
      case column(ForeignKey)
      /// The other side of a to-one relationship: columns of the destination's table, which refer to this entity.
      case foreignKey(ForeignKey)
      /// A table of links: which of its columns refer to this entity, which to the destination.
      case joinTable(name: String, own: ForeignKey, other: ForeignKey)
    }
  }

  /// The condition on rows that are of this entity or one below it; `nil` where all rows of the table are.
  public var rowCondition: String? {
    guard let entityColumn, numbers.count > 1 || superNumber != 0 else { return nil }
    return "\(entityColumn) IN (\(numbers.map(String.init).joined(separator: ", ")))"
  }
}
