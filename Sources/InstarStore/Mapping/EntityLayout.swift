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

/// An expression over the columns of one row, to be written for any alias of its table.
public struct RowExpression: Sendable, Hashable {
  /// The alias and a dot stand between each two.
  private let parts: [String]

  public init(parts: [String]) { self.parts = parts }

  /// The column itself.
  public init(column: String) { parts = ["", column] }

  public func sql(_ alias: String) -> String { parts.joined(separator: "\(alias).") }

  /// The expression as the argument of a function.
  public func passed(to function: String) -> RowExpression {
    guard let first = parts.first, let last = parts.last, parts.count > 1 else { return self }
    return RowExpression(
      parts: ["\(function)(\(first)"] + parts.dropFirst().dropLast() + ["\(last))"])
  }
}

/// A column that holds an attribute, or a field of one.
public struct StoredColumn: Sendable, Hashable {
  /// As it stands in SQL.
  public var name: String
  /// Gives the value as models keep it in memory.
  public var reading: RowExpression
  /// The parameter that a value as models keep it is bound to.
  public var parameter: String
  /// How values are written; `nil` where that is as models keep them.
  public var encoding: Schema.Column.Encoding?
  /// Whether SQLite computes the value: it is never written.
  public var isGenerated = false
  /// Whether a large value is kept in a file, and what the column holds is only its name (see `ExternalValues`).
  public var mayBeExternal = false

  /// A column that holds values as models keep them.
  public init(name: String) {
    self.name = name
    reading = RowExpression(column: name)
    parameter = "?"
  }
}

/// What tells a row of a table from all others, as one 64-bit key.
public struct RowKey: Sendable, Hashable {
  /// Gives the key of a row.
  public let reading: RowExpression
  /// As they stand in SQL: the rowid, or the primary key of a table that has no rowid.
  public let columns: [String]
  /// Whether the key is the value of the one column, by which SQLite finds and orders rows.
  public let isRowID: Bool
  /// The name by which `RowKeys` knows the table, where it is not.
  let table: String?
  private var tableLiteral: String? { table?.quoted(by: UInt8(ascii: "'")) }

  /// A key that is the value of a column: the rowid, by whatever name.
  public init(rowID column: String) {
    columns = [column]
    reading = RowExpression(column: column)
    isRowID = true
    table = nil
  }

  /// A key that `RowKeys` gives to each value of a primary key.
  public init(primaryKey columns: [String], ofTable table: String) {
    self.columns = columns
    reading = RowKeys.reading(table.quoted(by: UInt8(ascii: "'")), columns)
    isRowID = false
    self.table = table
  }

  /// The condition on the row that has a key.
  public func condition(_ alias: String, equals key: String) -> String {
    zip(columns, values(of: key)).map { "\(alias).\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// Gives the key that values of the primary key have, where the key is no rowid.
  public func statement(ofKeyOf values: [String]) -> String? {
    tableLiteral.map { "SELECT \(RowKeys.key)(\($0), \(values.joined(separator: ", ")))" }
  }

  /// Whether the key is a rowid that no column shows.
  public var isHidden: Bool { isRowID && ["rowid", "_rowid_", "oid"].contains(columns[0]) }

  /// What the columns hold in the row with a key.
  fileprivate func values(of key: String) -> [String] {
    guard let table = tableLiteral else { return [key] }
    return columns.indices.map { "\(RowKeys.part)(\(table), \($0), \(key))" }
  }

  fileprivate func reading(_ columns: [String]) -> RowExpression {
    tableLiteral.map { RowKeys.reading($0, columns) } ?? RowExpression(column: columns[0])
  }
}

/// Columns by which a row refers to a row of another table.
public struct ForeignKey: Sendable, Hashable {
  /// As they stand in SQL.
  public let columns: [String]
  /// The columns of the other table whose values they hold; `nil` where that is the other row's key itself.
  public let target: Target?
  private let key: RowKey

  public struct Target: Sendable, Hashable {
    public var table: String
    public var columns: [String]

    public init(table: String, columns: [String]) {
      self.table = table
      self.columns = columns
    }
  }

  /// Columns that hold the other row's key itself.
  public init(columns: [String], key: RowKey) {
    self.columns = columns
    self.key = key
    target = nil
  }

  /// Columns that hold values of others of the other row.
  public init(columns: [String], target: Target, key: RowKey) {
    self.columns = columns
    self.key = key
    self.target = target
  }

  /// The columns of the other table whose values these hold; `nil` where that is the other row's 64-bit key.
  public var referredColumns: [String]? { target?.columns ?? (key.isRowID ? nil : key.columns) }

  /// Gives the key of the row referred to, NULL for none.
  public var reading: RowExpression {
    guard let target else { return key.reading(columns) }
    // The other table's row has an alias of its own; what it is compared with is of the row that refers to it.
    let pairs = zip(target.columns, columns)
    var parts = ["(SELECT \(key.reading.sql("k")) FROM \(target.table) AS k WHERE "]
    for (index, (other, own)) in pairs.enumerated() {
      parts[parts.count - 1] += "\(index == 0 ? "" : " AND ")k.\(other) = "
      parts.append(own)
    }
    parts[parts.count - 1] += ")"
    return RowExpression(parts: parts)
  }

  /// The condition on a row that refers to the row with a key.
  public func condition(_ alias: String, equals key: String) -> String {
    zip(columns, values(of: key)).map { "\(alias).\($0) = \($1)" }.joined(separator: " AND ")
  }

  /// What the columns hold in a row that refers to the row with a key.
  public func values(of key: String) -> [String] {
    guard let target else { return self.key.values(of: key) }
    let found = "FROM \(target.table) AS k WHERE \(self.key.condition("k", equals: key))"
    return target.columns.map { "(SELECT k.\($0) \(found))" }
  }

  /// Lets a row refer to the row with a key.
  public func assignment(of key: String) -> String {
    zip(columns, values(of: key)).map { "\($0) = \($1)" }.joined(separator: ", ")
  }

  /// The condition on a row of the other table that a row refers to.
  public func condition(_ alias: String, refersTo other: String) -> String {
    zip(columns, target?.columns ?? key.columns).map { "\(other).\($1) = \(alias).\($0)" }
      .joined(separator: " AND ")
  }
}
