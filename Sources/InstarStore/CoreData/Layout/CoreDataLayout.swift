public import InstarSchema

/// How a schema maps to a Core Data store: the table, column, join table and index of each entity, attribute and
/// relationship.
///
/// Computed from the schema alone, by the rules observed in real stores ("Core Data layout", sections 2 to 6). Names in
/// a layout can be used unquoted in SQL: the initializer refuses all others.
public struct CoreDataLayout: Sendable {
  /// In the order of their numbers, each with its own properties only.
  public let entities: [EntityLayout]
  /// In the order in which a new store creates them.
  public let tables: [Table]
  /// The tables of many-to-many relationships, each once.
  public let joinTables: [JoinTable]
  /// All indexes but those that a constraint of a table makes.
  public let indexes: [Index]

  /// What the store decides about its layout.
  public let conventions: CoreDataConventions

  private let entityIndexesByName: [String: Int]

  /// The table of a root entity and its subentities.
  public struct Table: Sendable, Hashable {
    /// The table's name, "Z" and the root entity in upper case.
    public var name: String
    /// The name of the entity at the top of the inheritance tree.
    public var rootEntity: String
    /// In the order of a new store, the system columns included.
    public var columns: [Column]
    /// Groups of columns with a `UNIQUE` constraint: frameworks before 2017 have no unique indexes.
    public var uniqueColumns: [[String]] = []

    /// The statement that creates the table, spelled as Core Data does.
    public var createStatement: String {
      let list = columns.map { "\($0.name) \($0.declaration)" }.joined(separator: ", ")
      guard !uniqueColumns.isEmpty else { return "CREATE TABLE \(name) ( \(list) )" }
      // Without a space at the end, as those frameworks write it.
      let constraints = uniqueColumns.map {
        "CONSTRAINT \($0.joined(separator: "_")) UNIQUE (\($0.joined(separator: ", ")))"
      }
      return "CREATE TABLE \(name) ( \(list), \(constraints.joined(separator: ", ")))"
    }
  }

  /// A column of an entity's table.
  public struct Column: Sendable, Hashable {
    /// The column's name, unique in its table.
    public var name: String
    /// The declared type, such as "VARCHAR".
    public var type: String
    /// What the column holds.
    public var role: Role

    /// The declaration after the name in `CREATE TABLE` and `ADD COLUMN`.
    public var declaration: String { role == .primaryKey ? "\(type) PRIMARY KEY" : type }

    /// What a column holds: a system column, or a part of a property by the entity that declares it.
    @frozen
    public enum Role: Sendable, Hashable {
      case primaryKey, entityNumber, optimisticLock
      case attribute(entity: String, name: String)
      /// The key of the row at the other end of a to-one relationship.
      case toOne(entity: String, name: String)
      /// The entity number of that row, where the destination has sub-entities.
      case toOneEntityNumber(entity: String, name: String)
      /// The position of the row in an ordered relationship of the row at the other end of a to-one relationship.
      case toOneOrder(entity: String, name: String)
      /// The key of the owner of a to-many relationship without inverse, in the destination's table.
      case ownerKey(entity: String, name: String)
    }
  }

  /// The table of a many-to-many relationship. The first column refers to rows of `entity`, the second to rows of the
  /// destination of `relationship`.
  public struct JoinTable: Sendable, Hashable {
    /// The table's name, such as "Z_1TAGS".
    public var name: String
    /// The entity that the table is named after.
    public var entity: String
    /// Its relationship, after which the table is named too.
    public var relationship: String
    /// The entity at the other end.
    public var otherEntity: String
    /// The inverse, by which the other end refers to `entity`.
    public var otherRelationship: String
    /// The column with keys of `entity`.
    public var column: String
    /// The column with keys of `otherEntity`.
    public var otherColumn: String
    /// The position of the link among those of the row in `otherColumn`, where that row's relationship is ordered.
    public var orderColumn: String?
    /// The position of the link among those of the row in `column`, where that row's relationship is ordered.
    public var otherOrderColumn: String?

    /// The same table, described from its other side.
    public var turned: JoinTable {
      JoinTable(
        name: name, entity: otherEntity, relationship: otherRelationship, otherEntity: entity,
        otherRelationship: relationship, column: otherColumn, otherColumn: column,
        orderColumn: otherOrderColumn, otherOrderColumn: orderColumn)
    }

    /// In the order of a new store.
    public var columns: [String] {
      [column, otherColumn] + [orderColumn, otherOrderColumn].compactMap(\.self)
    }

    /// The statement that creates the table, spelled as Core Data does.
    public var createStatement: String {
      "CREATE TABLE \(name) ( \(columns.map { "\($0) INTEGER" }.joined(separator: ", ")), "
        + "PRIMARY KEY (\(column), \(otherColumn)) )"
    }
  }

  /// An index that has a statement of its own.
  public struct Index: Sendable, Hashable {
    /// The index's name, unique in the store.
    public var name: String
    /// The table that it covers.
    public var table: String
    /// The indexed columns, in order.
    public var columns: [String]
    /// The descending columns.
    public var descendingColumns: Set<String> = []
    /// Whether SQLite refuses equal values.
    public var isUnique: Bool
    /// Whether the statement spells out `COLLATE BINARY ASC`, as fetch and uniqueness indexes do and those of foreign
    /// keys do not (section 6.1).
    public var spellsCollation: Bool
    /// Whether it covers some rows only.
    public var isPartial = false
    /// The condition on its rows, as SQL. `nil` for a partial index whose condition is unknown, because only Apple's
    /// frameworks can translate its predicate: such an index can be kept, not created.
    public var condition: String?

    /// The statement that creates the index, spelled as Core Data does.
    public var createStatement: String {
      var list = ""
      for column in columns {
        if !list.isEmpty { list += ", " }
        list += column
        if spellsCollation {
          list +=
            descendingColumns.contains(column) ? " COLLATE BINARY DESC" : " COLLATE BINARY ASC"
        }
      }
      return "CREATE \(isUnique ? "UNIQUE " : "")INDEX \(name) ON \(table) (\(list))"
        + (condition.map { " WHERE \($0)" } ?? "")
    }
  }

  /// The entity of that name, or `nil`.
  public func entity(named name: String) -> EntityLayout? {
    entityIndexesByName[name].map { entities[$0] }
  }

  /// The entity with the properties of those above it too, as its rows have them; theirs come first.
  public func entityWithInheritedProperties(_ entity: EntityLayout) -> EntityLayout {
    guard entity.superNumber != 0,
      let above = entities.first(where: { $0.number == entity.superNumber })
    else { return entity }
    let inherited = entityWithInheritedProperties(above)
    var entity = entity
    entity.attributes = inherited.attributes + entity.attributes
    entity.relationships = inherited.relationships + entity.relationships
    return entity
  }

  /// Lays out a schema.
  ///
  /// - Parameter conventions: The store's conventions; the current ones for a new store.
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property, where the destination of a
  ///   relationship or an inverse is missing, or a name cannot be a column's.
  public init(
    schema: Schema, conventions: CoreDataConventions = CoreDataConventions()
  ) throws(InstarError) {
    var builder = try CoreDataLayoutBuilder(schema: schema, conventions: conventions)
    try builder.build()
    self.conventions = conventions
    entities = builder.entities
    tables = builder.tables
    joinTables = builder.joinTables
    indexes = builder.indexes
    entityIndexesByName = Dictionary(firstOf: builder.entities.enumerated().map { ($1.name, $0) })
  }

  /// The structure of a store of this layout, as a probe reads it.
  public var structure: StoreStructure {
    var all: [StoreStructure.Table] = []
    var covered: [StoreStructure.Index] = []
    for table in tables {
      all.append(
        StoreStructure.Table(
          name: table.name,
          columns: table.columns.map { StoreStructure.Column(name: $0.name, type: $0.type) }))
      for columns in table.uniqueColumns {
        covered.append(
          StoreStructure.Index(name: "", table: table.name, isUnique: true, columns: columns))
      }
    }
    for table in joinTables {
      all.append(
        StoreStructure.Table(
          name: table.name,
          columns: table.columns.map { StoreStructure.Column(name: $0, type: "INTEGER") }))
    }
    for index in indexes {
      var columns: [String] = []
      for column in index.columns {
        let prefix = index.isPartial && columns.isEmpty ? "(partial) " : ""
        let suffix = index.descendingColumns.contains(column) ? " DESC" : ""
        columns.append(prefix + column + suffix)
      }
      covered.append(
        StoreStructure.Index(
          name: index.name, table: index.table, isUnique: index.isUnique, columns: columns))
    }
    return StoreStructure(tables: all, indexes: covered).withoutCoreDataConventions
  }

  /// The statements that create the tables and indexes of an empty store, in the order of section 1.
  public var createStatements: [String] {
    var statements: [String] = []
    for table in tables {
      statements.append(table.createStatement)
      statements += joinTables.filter { entity(named: $0.entity)?.table == table.name }
        .map(\.createStatement)
    }
    return statements + indexes.map(\.createStatement) + CoreDataLayout.systemTableStatements
      + entities.map {
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) "
          + "VALUES (\($0.number), '\($0.name)', \($0.superNumber), 0)"
      }
  }

  /// The name of a fetch index in a store (section 6.1).
  static func fetchIndexName(_ name: String, of entity: String) -> String { "Z_\(entity)_\(name)" }

  /// SwiftData's prefix of the names of `#Index`, before the names of its properties.
  static let swiftDataIndexPrefix = "SwiftDataIndexOnBinary"

  /// The tables that the format reserves (section 2).
  static let systemTableStatements = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]
}

extension Schema.Attribute {
  /// Columns are grouped by type, in this order (section 3.2).
  var columnGroup: Int { isTransformable ? 6 : type.columnGroup }
}

extension Schema.AttributeType {
  fileprivate var columnGroup: Int {
    switch self {
    case .bool, .int16, .int32, .int64: 1
    case .date, .double, .float: 2
    case .decimal: 3
    case .string: 4
    case .uuid, .url: 5
    case .data, .codable: 7
    }
  }
}
