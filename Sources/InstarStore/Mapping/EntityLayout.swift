public import InstarSchema

/// How an entity maps to its table, in either format: the column of each property, the key of a row, and where
/// relationships are stored.
///
/// In memory a model has one 64-bit key. `key` says what the key is in the table, and each `ForeignKey` says how other
/// rows refer to it, so no statement of the SDK uses the names of one format.
public struct EntityLayout: Sendable {
  /// The entity's name in its schema.
  public var name: String
  /// The entity whose table and keys this one shares; its own name where it has no superentity.
  public var root: String
  /// As SQL, quoted where that is needed.
  public var table: String
  /// The entity's number in the store.
  public var number: Int
  /// The number of the superentity; 0 for a root entity.
  public var superNumber: Int
  /// The numbers of this entity and its subentities.
  public var numbers: [Int]
  /// How the table keeps the 64-bit key of a row.
  public var key: RowKey
  /// The columns of the primary key, as SQL; empty where `key` is the primary key.
  public var primaryKey: [String] = []
  /// The column with the number of the row's entity; `nil` where a table holds one entity.
  public var entityColumn: String?
  /// The column that counts the updates of a row; `nil` for none.
  public var lockColumn: String?
  /// In the order of the schema, inherited ones first.
  public var attributes: [AttributeColumn]
  /// In the order of the schema, inherited ones first.
  public var relationships: [RelationshipStorage]
  /// A statement for the highest key that was ever used, or NULL. A new row gets the next one.
  public var highestKeyStatement: String
  /// A statement that records the key bound to it as the highest one; `nil` where the table itself shows it.
  public var recordKeyStatement: String?

  /// An attribute, or one field of a composite, and its column.
  public struct AttributeColumn: Sendable {
    /// The attribute; a field of a composite has a dot in its name.
    public var attribute: Schema.Attribute
    /// The column, with how values are read and written.
    public var column: StoredColumn
  }

  /// A relationship, and where its links are stored.
  public struct RelationshipStorage: Sendable {
    /// The relationship as the schema declares it.
    public var relationship: Schema.Relationship
    /// The table of the rows at the other end, as SQL.
    public var destinationTable: String
    /// The columns or the table with the links.
    public var location: Location
    /// The column of the entity's own table with the number of the concrete entity at the other end; `nil` where the
    /// destination has no subentities.
    public var entityColumn: String?
    /// The column with the position of a link in an ordered relationship, in the table that holds the link. Also of a
    /// to-one relationship whose inverse is ordered.
    public var orderColumn: String?
    /// The same for the position among the links of the model at the other end, for a relationship with a join table.
    public var inverseOrderColumn: String?
    /// Whether the join table has a row for each direction of a link, as for a relationship that is its own inverse.
    public var keepsBothDirections = false

    /// Where the links of a relationship are.
    @frozen
    public enum Location: Sendable, Hashable {
      /// Columns of the entity's own table.
      case column(ForeignKey)
      /// The other end of a to-one relationship: columns of the destination's table that refer to this entity.
      case foreignKey(ForeignKey)
      /// A join table, with its columns that refer to this entity and to the destination.
      case joinTable(name: String, own: ForeignKey, other: ForeignKey)
    }
  }

  /// The attributes whose values the history keeps when a row is deleted, by name. Core Data keeps no large values.
  package var preservedAttributes: [AttributeColumn] {
    attributes.filter {
      $0.attribute.options.contains(.preserveValueOnDeletion) && !$0.column.mayBeExternal
        && !$0.attribute.isPartOfComposite
    }
    .sorted { $0.attribute.name.utf8.lexicographicallyPrecedes($1.attribute.name.utf8) }
  }

  /// The condition on rows of the entity itself, without those of its subentities.
  package var ownRowCondition: String { entityColumn.map { "\($0) = \(number)" } ?? "1" }

  /// The statement that counts these rows.
  package var ownRowCountStatement: String {
    "SELECT count(*) FROM \(table) WHERE \(ownRowCondition)"
  }

  /// The condition on rows of this entity and its subentities; `nil` where all rows of the table are.
  public var rowCondition: String? {
    guard let entityColumn, numbers.count > 1 || superNumber != 0 else { return nil }
    return "\(entityColumn) IN (\(numbers.map(String.init).joined(separator: ", ")))"
  }
}
