public import InstarSchema

/// How a schema is laid out in ordinary tables: which table, columns and keys each entity, attribute and relationship has.
///
/// Computed from the schema alone, by what `@Table` and `@Column` say and by convention where they say nothing. Describes
/// what models speak of; a table may have more, which no statement of this layout touches.
public struct PlainLayout: Sendable {
  public let schema: Schema
  /// One for each entity, in the order of the schema, then those of links.
  public let tables: [Table]
  public let indexes: [Index]
  public let entityLayouts: [EntityLayout]

  public struct Table: Sendable, Hashable {
    public var name: String
    /// The entity whose rows it holds; `nil` for a table of links.
    public var entity: String?
    /// The relationships that a table of links belongs to, as "Entity.relationship"; two where both sides have one.
    public var relationships: [String] = []
    public var columns: [Column]
    /// The names of the columns of the primary key.
    public var primaryKey: [String]
    public var isStrict = false
    public var isWithoutRowID = false
    /// Behind the columns in `CREATE TABLE`.
    public var constraints: [String] = []

    /// What stands between the parentheses of `CREATE TABLE`, one each.
    public var definitions: [String] { columns.map(\.definition) + constraints }

    public var createStatement: String { createStatement(named: name) }

    func createStatement(named name: String) -> String {
      let options = [(isWithoutRowID, "WITHOUT ROWID"), (isStrict, "STRICT")]
        .filter(\.0).map(\.1).joined(separator: ", ")
      return "CREATE TABLE \(SQLIdentifier.sql(name)) (\n  "
        + definitions.joined(separator: ",\n  ") + "\n)" + (options.isEmpty ? "" : " \(options)")
    }
  }

  public struct Column: Sendable, Hashable {
    public var name: String
    public var type: String
    public var role: Role
    public var encoding: Schema.Column.Encoding?
    /// The column as it stands in `CREATE TABLE`, its name included.
    public var definition: String
    /// What is declared behind the name, but for a default that is only the property's initial value: where two versions
    /// differ in it, the column is another one.
    public var declaration: String
    public var isRequired: Bool
    public var isGenerated = false
    /// What follows `DEFAULT`.
    public var defaultValue: String?

    @frozen
    public enum Role: Sendable, Hashable {
      /// The key that no property shows.
      case hiddenKey
      case attribute(String)
      /// One of the columns of a to-one relationship.
      case reference(relationship: String, index: Int)
      /// One of the columns of a table of links.
      case link(isOwn: Bool, index: Int)
    }
  }

  public struct Index: Sendable, Hashable {
    public var name: String
    public var table: String
    /// Columns or expressions, as SQL.
    public var terms: [String]
    public var isUnique: Bool
    /// Which rows are in it, as SQL.
    public var condition: String?

    public var createStatement: String {
      "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLIdentifier.sql(name)) "
        + "ON \(SQLIdentifier.sql(table)) (\(terms.joined(separator: ", ")))"
        + (condition.map { " WHERE \($0)" } ?? "")
    }
  }

  /// Lays a schema out.
  ///
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property, where the schema cannot be laid out.
  public init(schema: Schema) throws(InstarError) {
    var builder = try PlainLayoutBuilder(schema: schema)
    try builder.build()
    self.schema = schema
    tables = builder.tables
    indexes = builder.indexes
    entityLayouts = builder.entityLayouts
  }

  /// The table of an entity.
  public func table(of entity: String) -> Table? { tables.first { $0.entity == entity } }

  /// What a store of this layout is made of, as far as models speak of it.
  public var structure: StoreStructure {
    StoreStructure(
      tables: tables.map { table in
        StoreStructure.Table(
          name: table.name,
          columns: table.columns.map { StoreStructure.Column(name: $0.name, type: $0.type) })
      },
      indexes: indexes.map {
        StoreStructure.Index(
          name: $0.name, table: $0.table, isUnique: $0.isUnique,
          columns: $0.terms.map { PlainLayout.columnName($0) })
      })
  }

  /// A term that is nothing but a column, by the column's name; any other as it is.
  private static func columnName(_ term: String) -> String {
    guard term.first == "\"", term.last == "\"", term.count > 2 else { return term }
    return term.dropFirst().dropLast().split(separator: "\"\"", omittingEmptySubsequences: false)
      .joined(separator: "\"")
  }

  /// The statements that make the tables and indexes of an empty store.
  public var createStatements: [String] {
    tables.map(\.createStatement) + indexes.map(\.createStatement)
  }
}
