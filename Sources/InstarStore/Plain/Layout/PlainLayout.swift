public import InstarSchema

/// How a schema maps to ordinary tables: the table, columns and keys of each entity, attribute and relationship.
///
/// Computed from the schema alone, by `@Table` and `@Column` and otherwise by convention. A table may have more than
/// models describe; no statement of this layout touches that.
public struct PlainLayout: Sendable {
  /// The schema that is laid out.
  public let schema: Schema
  /// One for each entity, in the order of the schema, then the join tables.
  public let tables: [Table]
  /// The indexes that have a statement of their own.
  public let indexes: [Index]
  /// The tables as models see them, in the order of the schema.
  public let entityLayouts: [EntityLayout]

  /// A table as a new store has it. The table of a store may have more.
  public struct Table: Sendable, Hashable {
    /// The name, not quoted.
    public var name: String
    /// The entity of its rows; `nil` for a join table.
    public var entity: String?
    /// The relationships of a join table, as "Entity.relationship"; two where both ends have one.
    public var relationships: [String] = []
    /// The columns that models describe, in the order of a new store.
    public var columns: [Column]
    /// The names of the columns of the primary key.
    public var primaryKey: [String]
    /// Whether the table is declared `STRICT`.
    public var isStrict = false
    /// Whether the table is declared `WITHOUT ROWID`.
    public var isWithoutRowID = false
    /// After the columns in `CREATE TABLE`.
    public var constraints: [String] = []

    /// The items between the parentheses of `CREATE TABLE`.
    public var definitions: [String] { columns.map(\.definition) + constraints }

    /// The statement that creates the table.
    public var createStatement: String { createStatement(named: name) }

    func createStatement(named name: String) -> String {
      let options = [(isWithoutRowID, "WITHOUT ROWID"), (isStrict, "STRICT")]
        .filter(\.0).map(\.1).joined(separator: ", ")
      return "CREATE TABLE \(SQLIdentifier.sql(name)) (\n  "
        + definitions.joined(separator: ",\n  ") + "\n)" + (options.isEmpty ? "" : " \(options)")
    }
  }

  /// A column that models describe.
  public struct Column: Sendable, Hashable {
    /// The name, not quoted.
    public var name: String
    /// The declared type.
    public var type: String
    /// What the column holds.
    public var role: Role
    /// How values are stored; `nil` where they are stored as models hold them.
    public var encoding: Schema.Column.Encoding?
    /// The definition in `CREATE TABLE`, with the name.
    public var definition: String
    /// The declaration after the name, without a default that is only the property's initial value. A column whose
    /// declaration differs between two versions is a changed column.
    public var declaration: String
    /// Whether each row needs a value.
    public var isRequired: Bool
    /// Whether SQLite computes the value.
    public var isGenerated = false
    /// The text after `DEFAULT`.
    public var defaultValue: String?

    /// What a column of an ordinary table holds.
    @frozen
    public enum Role: Sendable, Hashable {
      /// The key without a property.
      case hiddenKey
      case attribute(String)
      /// One of the columns of a to-one relationship.
      case reference(relationship: String, index: Int)
      /// One of the columns of a join table.
      case link(isOwn: Bool, index: Int)

      /// The property that the column is of; `nil` for hidden keys and links.
      package var property: String? {
        switch self {
        case .attribute(let name), .reference(relationship: let name, index: _): name
        case .hiddenKey, .link: nil
        }
      }
    }
  }

  /// An index that has a statement of its own.
  public struct Index: Sendable, Hashable {
    /// The name, not quoted.
    public var name: String
    /// The name of the table, not quoted.
    public var table: String
    /// Columns or expressions, as SQL.
    public var terms: [String]
    /// Whether SQLite refuses equal values.
    public var isUnique: Bool
    /// The condition on its rows, as SQL.
    public var condition: String?

    /// The statement that creates the index.
    public var createStatement: String {
      "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(SQLIdentifier.sql(name)) "
        + "ON \(SQLIdentifier.sql(table)) (\(terms.joined(separator: ", ")))"
        + (condition.map { " WHERE \($0)" } ?? "")
    }
  }

  /// Lays a schema out.
  ///
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property, where the schema cannot be laid
  ///   out.
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

  /// The structure of a store of this layout, as far as models describe it.
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

  /// Returns the name of a term that is a single column, and any other term unchanged.
  private static func columnName(_ term: String) -> String {
    guard term.first == "\"", term.last == "\"", term.count > 2 else { return term }
    return term.dropFirst().dropLast().split(separator: "\"\"", omittingEmptySubsequences: false)
      .joined(separator: "\"")
  }

  /// The statements that create the tables and indexes of an empty store.
  public var createStatements: [String] {
    tables.map(\.createStatement) + indexes.map(\.createStatement)
  }
}
