package import GRDB
internal import InstarSchema
package import InstarStore

/// The number of rows of each entity and of links of each relationship, which a migration must not lose, and the
/// answers to the queries of the plan's invariants.
package struct StoreCensus {
  /// Rows of exactly this entity, without those of subclasses, by its name.
  var rows: [String: Int] = [:]
  /// By "Entity.relationship".
  var links: [String: Links] = [:]
  /// Rows whose entity number belongs to no entity of their table, by table.
  private(set) var strayRows: [String: Int] = [:]

  /// Rows of tables that no model describes, by table, where the format allows such tables.
  var otherRows: [String: Int] = [:]
  /// Sums over the columns that decide about broken links, where they were taken.
  let sums: ColumnSums
  /// What queries of the plan's invariants returned, by their texts.
  private(set) var answers: [String: QueryAnswer] = [:]

  struct Links: Hashable {
    var count: Int
    /// Links to rows that do not exist; `nil` where they were not counted.
    var broken: Int?
    /// Links that the stages end: those of and to rows that they delete because they remove the rows' entity, and not
    /// the whole table; and those of rows that lose the relationship.
    var ending = 0
    /// Those of rows that lose the relationship.
    var losing = 0
    /// The columns or the table with the links, which are the same for both ends of a relationship.
    var location: String
  }

  /// - Parameters:
  ///   - findsBroken: Whether to count broken links, which reads each key.
  ///   - removed: The entities whose rows the stages delete, by name: how many links end with them is counted.
  ///   - losers: The entities whose rows lose a relationship that others keep, by "Entity.relationship": their links
  ///     are counted too.
  ///   - queries: Those of the plan's invariants.
  ///   - sums: Those that were taken before.
  package init(
    _ db: Database, layout: any StoreLayout, findsBroken: Bool = false,
    removing removed: Set<String> = [], losing losers: [String: [String]] = [:],
    queries: [PlanQuery] = [], sums: ColumnSums = ColumnSums()
  ) throws {
    self.sums = sums
    let entities = layout.entityLayouts
    let byName = entities.keyed(by: \.name)
    let removedNumbers = Self.numbers(of: removed, among: entities)
    let losing = layout.ownersOfLinks(losers)
    for (table, members) in Dictionary(grouping: entities, by: \.table) {
      try countRows(db, of: members, in: table)
    }
    // Both ends of a relationship need the same count, which may read a million rows: each is counted once.
    var known: [LinkStatement: Links] = [:]
    for entity in entities {
      // Links of an inherited relationship are counted with those of the superentity.
      let inherited = entities.first { $0.number == entity.superNumber }?.relationships.count ?? 0
      for storage in entity.relationships.dropFirst(inherited) {
        guard let destination = byName[storage.relationship.destination] else { continue }
        let statement = LinkStatement(storage.location, of: entity, to: destination)
        let counted =
          try known[statement]
          ?? statement.count(
            db, findsBroken: findsBroken, removing: removedNumbers,
            losing: losing[statement.location] ?? [])
        known[statement] = counted
        links["\(entity.name).\(storage.relationship.name)"] = counted
      }
    }
    if layout.format.allowsOtherTables { try countOtherRows(db, layout) }
    for query in queries { answers[query.sql] = try query.answer(db) }
  }

  /// The numbers of removed entities by table. Tables that are removed completely are left out, because their links are
  /// not counted.
  private static func numbers(
    of removed: Set<String>, among entities: [EntityLayout]
  ) -> [String: [Int]] {
    if removed.isEmpty { return [:] }
    return Dictionary(grouping: entities, by: \.table).compactMapValues { members in
      let gone = members.filter { removed.contains($0.name) }
      return gone.isEmpty || gone.count == members.count ? nil : gone.map(\.number)
    }
  }

  /// SQLite limits the columns of a statement.
  private static let countsAtOnce = 500

  private mutating func countRows(
    _ db: Database, of entities: [EntityLayout], in table: String
  ) throws {
    guard let column = entities.compactMap(\.entityColumn).first else {
      for entity in entities {
        rows[entity.name] = try db.integer("SELECT count(*) FROM \(table)") ?? 0
      }
      return
    }
    // Not GROUP BY, which sorts all rows of the table in memory.
    var strays = try db.integer("SELECT count(*) FROM \(table)") ?? 0
    for start in stride(from: 0, to: entities.count, by: Self.countsAtOnce) {
      let counted = entities[start..<min(start + Self.countsAtOnce, entities.count)]
      let sums = counted.map { "coalesce(sum(\(column) IS \($0.number)), 0)" }
      let counts = try db.integers("SELECT \(sums.joined(separator: ", ")) FROM \(table)")
      for (entity, count) in zip(counted, counts) {
        rows[entity.name] = count
        strays -= count
      }
    }
    if strays > 0 { strayRows[table] = strays }
  }

  private mutating func countOtherRows(_ db: Database, _ layout: any StoreLayout) throws {
    let described = Set(layout.structure.tables.map { $0.name.lowercased() })
    // A change of schema rebuilds a search index, and its module decides how many rows its tables get.
    let ofSearchIndexes = Set(try SearchIndex.all(db).flatMap(\.ownTables))
    for table in try StoreStructure.read(db, format: layout.format).tables
    where !table.columns.isEmpty && !described.contains(table.name.lowercased())
      && !ofSearchIndexes.contains(table.name)
    {
      otherRows[table.name] = try db.integer(
        "SELECT count(*) FROM \(SQLIdentifier.sql(table.name))")
    }
  }
}
