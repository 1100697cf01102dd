public import InstarSchema

/// How a schema is laid out in the tables of a store, in the schema's format.
public enum StoreLayout: Sendable {
  case coreData(CoreDataLayout)
  case plain(PlainLayout)

  /// Lays a schema out.
  ///
  /// - Parameter conventions: What of a store in the Core Data format its schema does not decide.
  /// - Throws: `invalidModel` or `incompleteSchema`, naming the entity and property.
  public init(
    schema: Schema, conventions: CoreDataConventions = CoreDataConventions()
  ) throws(InstarError) {
    switch schema.format {
    case .coredata: self = .coreData(try CoreDataLayout(schema: schema, conventions: conventions))
    case .plain: self = .plain(try PlainLayout(schema: schema))
    }
  }

  public var format: StoreFormat {
    switch self {
    case .coreData: .coredata
    case .plain: .plain
    }
  }

  /// What models have to know of the tables.
  public var entityLayouts: [EntityLayout] {
    switch self {
    case .coreData(let layout): layout.entityLayouts
    case .plain(let layout): layout.entityLayouts
    }
  }

  /// What a store of this layout is made of, as a probe of it reads.
  public var structure: StoreStructure {
    switch self {
    case .coreData(let layout): layout.structure
    case .plain(let layout): layout.structure
    }
  }

  /// The statements that make the tables and indexes of an empty store.
  public var createStatements: [String] {
    switch self {
    case .coreData(let layout): layout.createStatements
    case .plain(let layout): layout.createStatements
    }
  }

  /// The indexes, each with the statement that makes it.
  public var indexStatements: [(index: StoreStructure.Index, statement: String)] {
    switch self {
    case .coreData(let layout):
      layout.indexes.map {
        (
          StoreStructure.Index(
            name: $0.name, table: $0.table, isUnique: $0.isUnique, columns: $0.columns),
          $0.createStatement
        )
      }
    case .plain(let layout):
      zip(layout.structure.indexes, layout.indexes).map { ($0, $1.createStatement) }
    }
  }
}
