import Foundation
import InstarSchema
import InstarStore
import Synchronization

/// One open store of a container, which is built as its part of the container's schema says.
final class ModelStore: Sendable {
  let connection: StoreConnection
  /// With the models that are in this store, and no others.
  let schema: Schema
  let layout: StoreLayout
  /// What tells the store's rows from those of others: its `Z_UUID`, where it has one.
  let uuid: String
  /// How errors call the store.
  let place: String
  /// Whether contexts may save.
  let allowsSave: Bool
  /// When the structure was known to be the schema's: how many commits of others had been met, and SQLite's count of
  /// structural changes, where that was asked for.
  let knownStructure: Mutex<(commits: Int, version: Int64?)>
  /// By "TABLE.COLUMN", whether collections are archives there.
  private let archiveColumns = Mutex<[String: Bool]>([:])

  /// Maps a store whose structure must be that of the schema. A store that was adopted with more than
  /// that may have it still.
  ///
  /// - Parameter creatingWhereEmpty: makes the schema's tables in a database that has none.
  init(
    schema: Schema, connection: StoreConnection, place: String, allowsSave: Bool = true,
    creatingWhereEmpty: Bool
  ) throws {
    if let problem = schema.modelProblems().first { throw problem }
    self.schema = schema
    self.connection = connection
    self.place = place
    self.allowsSave = allowsSave
    layout = try Self.layout(of: schema, connection)
    // Counted before: what is committed while the store is looked at is looked at again.
    knownStructure = Mutex((commits: connection.commitCountOfOthers, version: nil))
    uuid = try Self.open(
      schema, layout, connection, creatingWhereEmpty: creatingWhereEmpty)
  }

  /// The layout that the schema has in this store: which name a join table has is not always the schema's to say.
  private static func layout(
    of schema: Schema, _ connection: StoreConnection
  ) throws -> StoreLayout {
    guard schema.format == .coredata else { return try StoreLayout(schema: schema) }
    return try connection.perform { session in
      guard try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") != nil else {
        return try StoreLayout(schema: schema)
      }
      return try StoreLayout(
        schema: schema, conventions: CoreDataConventions(of: session.database))
    }
  }

  private static func open(
    _ schema: Schema, _ layout: StoreLayout, _ connection: StoreConnection,
    creatingWhereEmpty: Bool
  ) throws -> String {
    try connection.perform { session in
      try PredicateFunctions.register(session)
      if case .plain(let layout) = layout {
        return try openTables(
          schema, layout, session, creatingWhereEmpty: creatingWhereEmpty)
      }
      if creatingWhereEmpty, try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil {
        return try session.transaction {
          for statement in layout.createStatements { try session.run(statement) }
          var metadata = CoreDataMetadata(newStoreFor: schema)
          metadata.stamp(
            schema: schema, unchangedEntities: [], fingerprint: layout.structure.fingerprint)
          try metadata.write(session.database)
          return metadata.uuid
        }
      }
      let structure = try StoreStructure.read(session.database, format: .coredata)
      let fit = StructureFit(of: structure, to: layout.structure)
      // A store is used by its tables; one that lost its metadata can still be adopted.
      let metadata = try CoreDataMetadata.readIfSound(session.database)
      // What a stage works on was matched to its version before; a store is believed as it was left.
      let mayHaveMore =
        !creatingWhereEmpty
        || metadata?.version == schema.version && metadata?.fingerprint == structure.fingerprint
      if !(fit.lacksNothing && mayHaveMore) {
        try requireStructure(structure, of: layout.structure, schema)
      }
      return metadata?.uuid ?? ""
    }
  }

  /// Plain stores have no identifier of their own: that of the file stands for it.
  private static func openTables(
    _ schema: Schema, _ layout: PlainLayout, _ session: SQLSession, creatingWhereEmpty: Bool
  ) throws -> String {
    try session.useOrdinaryTables()
    if creatingWhereEmpty, try session.integer("SELECT 1 FROM sqlite_schema LIMIT 1") == nil {
      try session.transaction {
        for statement in layout.createStatements { try session.run(statement) }
        try PlainVersion.stamp(schema.version, at: .userVersion, session.database)
      }
    }
    let structure = try StoreStructure.read(session.database, format: .plain)
      .described(asIn: layout.structure, among: [layout.structure])
    try requireStructure(structure, of: layout.structure, schema)
    let file = try session.text("SELECT file FROM pragma_database_list WHERE name = 'main'")
    return file.flatMap { $0.isEmpty ? nil : "file:\($0)" } ?? UUID().uuidString
  }

  private static func requireStructure(
    _ structure: StoreStructure, of expected: StoreStructure, _ schema: Schema
  ) throws {
    let differences = structure.differences(from: expected)
    guard !differences.isEmpty else { return }
    throw InstarError(
      .unknownVersion, "cannot open the store with schema \(schema.version)",
      cause: "the store is built otherwise:\n" + differences.joined(separator: "\n"),
      next: "open the container with a migration plan that knows this version of the store")
  }

  /// Whether collections in a column are kept as archives, as SwiftData does, and not as JSON: an app of Apple's reads no
  /// other form than it wrote.
  func keepsArchives(
    in column: StoredColumn, of table: String, _ session: SQLSession
  ) throws -> Bool {
    guard case .coreData(let layout) = layout else { return false }
    let key = "\(table).\(column.name)"
    if let known = archiveColumns.withLock({ $0[key] }) { return known }
    var samples = "SELECT \(column.name) FROM \(table) WHERE \(column.name) IS NOT NULL LIMIT 100"
    if column.mayBeExternal {
      // A value that lies in a file is read only where there is no other.
      samples =
        "SELECT \(column.name) FROM (\(samples)) ORDER BY substr(\(column.name), 1, 1) = x'02' LIMIT 1"
    }
    let archives = try session.integer(
      "SELECT max(substr(\(column.reading.sql("t0")), 1, 8) = x'62706C6973743030') "
        + "FROM (\(samples)) AS t0")
    let keeps = archives.map { $0 != 0 } ?? !layout.conventions.isMadeByInstar
    archiveColumns.withLock { $0[key] = keeps }
    return keeps
  }
}

/// One model class mapped to its table: which slot is which column, and the statements that read and write rows.
final class ModelEntity: Sendable {
  let descriptor: ModelDescriptor
  /// With the properties that the entity inherits.
  let layout: EntityLayout
  /// The store that has its rows.
  let store: ModelStore
  /// Index among the entities of all stores of the container.
  let position: Int
  /// What each slot is in the store.
  let slots: [SlotPlace]
  /// The slots that have a column in the own table, in the order of the columns of every statement.
  let columnSlots: [Int]
  /// What each slot is written to: nothing, a column, one for each field of a composite, or those of a foreign key; behind the
  /// latter the number of the concrete entity, where there is a column for it.
  let columnsBySlot: [[StoredColumn]]
  /// What each slot is read from: nothing, one expression, or one for each field of a composite.
  let readingsBySlot: [[RowExpression]]
  /// The relationships whose last column is the number of the concrete entity at the other end.
  let numberedSlots: Set<Int>
  /// The slots that hold arrays, sets or dictionaries of plain values, which some stores keep as archives.
  let collectionSlots: Set<Int>
  /// The slots for which the storage class does not tell whether a stored value is one of the property's type.
  let checkedSlots: [Bool]
  let insertStatement: String
  let deleteStatement: String
  /// Whether a statement that inserts a row binds its key apart from the slots.
  let insertsKey: Bool
  /// The slot that is the key itself: an integer primary key.
  let keySlot: Int?
  /// The slots that are the key of a table without rowid, in its order.
  let keySlots: [Int]
  /// The slots whose values SQLite computes.
  let generatedSlots: [Int]
  /// The slots whose large values lie in files.
  let externalSlots: [Int]
  /// Whether links of the entity have places in an order.
  let hasOrderedLinks: Bool
  /// Groups of slots whose values may occur only once together.
  let uniqueSlots: [[Int]]
  let schemaEntityName: String

  /// The to-many relationships that must have a certain number of members.
  let countLimits: [CountLimit]

  struct CountLimit: Sendable {
    let slot: Int
    let minimum: Int
    /// `nil` for no limit.
    let maximum: Int?
  }

  enum SlotPlace: Sendable {
    case attribute(column: StoredColumn, isOptional: Bool)
    /// A value with several columns.
    case composite(columns: [StoredColumn], isOptional: Bool)
    case toOne(ForeignKey, destination: String, isOptional: Bool)
    case toMany(EntityLayout.RelationshipStorage)
    /// Kept in memory only.
    case none
  }

  init(
    descriptor: ModelDescriptor, layout: EntityLayout, store: ModelStore, position: Int
  ) {
    self.descriptor = descriptor
    self.layout = layout
    self.store = store
    self.position = position
    schemaEntityName = layout.name
    let attributes = Dictionary(
      layout.attributes.map { ($0.attribute.name, $0) }, uniquingKeysWith: { first, _ in first })
    let relationships = Dictionary(
      layout.relationships.map { ($0.relationship.name, $0) },
      uniquingKeysWith: { first, _ in first })
    var slots: [SlotPlace] = []
    var columnsBySlot: [[StoredColumn]] = []
    var readingsBySlot: [[RowExpression]] = []
    var numberedSlots: Set<Int> = []
    for property in descriptor.properties {
      if let attribute = attributes[property.name] {
        slots.append(
          .attribute(column: attribute.column, isOptional: attribute.attribute.isOptional))
        columnsBySlot.append(attribute.column.isGenerated ? [] : [attribute.column])
        // Files are read when their values are asked for.
        readingsBySlot.append(
          attribute.column.mayBeExternal
            ? [RowExpression(column: attribute.column.name)] : [attribute.column.reading])
      } else if let relationship = relationships[property.name] {
        if case .column(let reference) = relationship.place {
          slots.append(
            .toOne(
              reference, destination: relationship.relationship.destination,
              isOptional: relationship.relationship.isOptional))
          if relationship.entityColumn != nil { numberedSlots.insert(columnsBySlot.count) }
          columnsBySlot.append(
            (reference.columns + [relationship.entityColumn].compactMap { $0 })
              .map { StoredColumn(name: $0) })
          readingsBySlot.append([reference.reading])
        } else {
          slots.append(.toMany(relationship))
          columnsBySlot.append([])
          readingsBySlot.append([])
        }
      } else if case .attribute(let kind) = property.kind, let leaves = kind.leaves,
        case let columns = leaves.compactMap({ attributes["\(property.name).\($0.name)"]?.column }),
        columns.count == leaves.count
      {
        slots.append(.composite(columns: columns, isOptional: kind.isOptional))
        columnsBySlot.append(columns)
        readingsBySlot.append(columns.map(\.reading))
      } else {
        slots.append(.none)
        columnsBySlot.append([])
        readingsBySlot.append([])
      }
    }
    countLimits = descriptor.properties.enumerated().compactMap { slot, property in
      guard case .relationship(let kind) = property.kind, !kind.isToOne else { return nil }
      let (minimum, maximum) = (kind.metadata.minimumModelCount, kind.metadata.maximumModelCount)
      return minimum > 0 || maximum > 0
        ? CountLimit(slot: slot, minimum: minimum, maximum: maximum > 0 ? maximum : nil) : nil
    }
    columnSlots = readingsBySlot.indices.filter { !readingsBySlot[$0].isEmpty }
    let generated = columnSlots.filter { columnsBySlot[$0].isEmpty }
    generatedSlots = generated
    externalSlots = slots.indices.filter {
      if case .attribute(let column, _) = slots[$0] { column.mayBeExternal } else { false }
    }
    hasOrderedLinks = layout.relationships.contains {
      $0.orderColumn != nil || $0.inverseOrderColumn != nil
    }
    func slot(ofColumn name: String) -> Int? {
      columnsBySlot.firstIndex { $0.contains { $0.name == name } }
    }
    let key = layout.key
    keySlots = key.isRowID ? [] : key.columns.compactMap { slot(ofColumn: $0) }
    keySlot = key.isRowID ? slot(ofColumn: key.columns[0]) : nil
    insertsKey = key.isRowID && keySlot == nil
    self.columnsBySlot = columnsBySlot
    self.readingsBySlot = readingsBySlot
    self.numberedSlots = numberedSlots
    collectionSlots = Set(
      descriptor.properties.indices.filter {
        descriptor.properties[$0].collectionType.map(ArchivedCollection.canArchive) ?? false
      })
    checkedSlots = descriptor.properties.map { property in
      if case .attribute(let kind) = property.kind { kind.accepts != nil } else { false }
    }
    self.slots = slots
    // A primary key is unique, too.
    let primaryKey = layout.primaryKey.compactMap { slot(ofColumn: $0) }
    uniqueSlots =
      descriptor.uniqueSlots.filter { $0.allSatisfy { !columnsBySlot[$0].isEmpty } }
      + (primaryKey.isEmpty || primaryKey.count < layout.primaryKey.count ? [] : [primaryKey])
    // The system columns first, then those of the slots.
    var columns = insertsKey ? layout.key.columns.map { ($0, "?") } : []
    if let column = layout.entityColumn { columns.append((column, "\(layout.number)")) }
    if let column = layout.lockColumn { columns.append((column, "1")) }
    columns += columnsBySlot.flatMap { $0 }.map { ($0.name, $0.parameter) }
    insertStatement =
      "INSERT INTO \(layout.table) (\(columns.map(\.0).joined(separator: ", "))) "
      + "VALUES (\(columns.map(\.1).joined(separator: ", ")))"
    deleteStatement =
      "DELETE FROM \(layout.table) AS t0 WHERE \(layout.key.condition("t0", equals: "?1"))"
  }

  /// The column of each slot of a group that has to be unique. Each holds one value: a schema in which one does not is
  /// refused.
  func columns(ofGroup group: [Int]) -> [StoredColumn] {
    group.compactMap { columnsBySlot[$0].first }
  }

  /// Whether other entities have their rows in the same table.
  var sharesTable: Bool { layout.numbers.count > 1 || layout.superNumber != 0 }

  /// The slot that is written to a column, and which of its columns that is.
  func place(ofColumn name: String) -> (slot: Int, index: Int)? {
    for (slot, columns) in columnsBySlot.enumerated() {
      if let index = columns.firstIndex(where: { $0.name == name }) { return (slot, index) }
    }
    return nil
  }

  /// Whether a stored value, which is not NULL, is one of the type of the slot's property.
  func accepts(_ value: Slot, at slot: Int) -> Bool {
    guard checkedSlots[slot], case .attribute(let kind) = descriptor.properties[slot].kind,
      let accepts = kind.accepts
    else { return true }
    return accepts(value)
  }
}
