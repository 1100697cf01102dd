internal import GRDB
internal import InstarSchema
internal import InstarStore

/// The statement that counts the links of a relationship, and those to rows that do not exist.
struct LinkStatement: Hashable {
  /// The condition for links to missing rows.
  private let broken: String
  /// The rows that hold a link.
  private let rows: KeyedRows
  /// The columns or the table with the links.
  let location: String
  /// What the links to missing rows depend on: one reference, or the two of a join table.
  let references: [RowReference]
  /// The rows at both ends of a link, where their tables hold several entities.
  private let ends: [End]

  /// The row at one end of a link.
  private struct End: Hashable {
    var table: String
    /// The column with the number of the row's entity.
    var entityColumn: String
    /// The condition that finds the row as `d`; `nil` for the row that holds the link, which is `s`.
    var match: String?

    /// - Parameter match: See `match`.
    init?(_ entity: EntityLayout, match: String?) {
      guard let column = entity.entityColumn else { return nil }
      table = entity.table
      entityColumn = column
      self.match = match
    }

    /// The condition for links whose row belongs to one of these entities; `nil` if none of them is in this table.
    func isRow(of numbers: [String: [Int]]) -> String? {
      guard let numbers = numbers[table] else { return nil }
      let list = numbers.map(String.init).joined(separator: ", ")
      guard let match else { return "s.\(entityColumn) IN (\(list))" }
      return
        "EXISTS (SELECT 1 FROM \(table) AS d WHERE \(match) AND d.\(entityColumn) IN (\(list)))"
    }
  }

  init(
    _ location: EntityLayout.RelationshipStorage.Location, of entity: EntityLayout,
    to destination: EntityLayout
  ) {
    switch location {
    case .column(let reference):
      self.init(reference, of: entity, to: destination)
    case .foreignKey(let reference):
      self.init(reference, of: destination, to: entity)
    case .joinTable(let table, let own, let other):
      // In one order for both ends of the relationship.
      let ends = [(own, entity), (other, destination)].map { key, entity in
        (
          missing: Self.missing(key, "j", in: entity),
          reference: RowReference(key, ofTable: table, to: entity),
          end: End(entity, match: key.condition("j", refersTo: "d"))
        )
      }.sorted { $0.missing < $1.missing }
      self.init(
        broken: ends.map(\.missing).joined(separator: " OR "),
        rows: KeyedRows(
          table: "\(table) AS j",
          keys: (own.columns + other.columns).sorted().map { "j.\($0)" }), location: table,
        references: ends.map(\.reference), ends: ends.compactMap(\.end))
    }
  }

  /// Returns the rows that hold the links. The key of a row of a join table begins with this end of the relationship.
  static func rows(
    _ location: EntityLayout.RelationshipStorage.Location, of entity: EntityLayout,
    to destination: EntityLayout
  ) -> KeyedRows {
    guard case .joinTable(let table, let own, let other) = location else {
      return LinkStatement(location, of: entity, to: destination).rows
    }
    return KeyedRows(table: table, keys: own.columns + other.columns)
  }

  /// Returns the condition on links of rows of some entities; `nil` where the table of the rows holds one entity. It
  /// holds for the statements of both ends of the relationship.
  static func owned(
    by entities: [EntityLayout], _ location: EntityLayout.RelationshipStorage.Location,
    of owner: EntityLayout
  ) -> String? {
    let match: String?
    switch location {
    case .column: match = nil
    case .foreignKey(let key): match = key.condition("s", refersTo: "d")
    case .joinTable(_, let own, _): match = own.condition("j", refersTo: "d")
    }
    return End(owner, match: match)?.isRow(of: [owner.table: entities.map(\.number)])
  }

  private init(_ reference: InstarStore.ForeignKey, of owner: EntityLayout, to other: EntityLayout)
  {
    self.init(
      broken: Self.missing(reference, "s", in: other),
      rows: KeyedRows(
        table: "\(owner.table) AS s",
        conditions: reference.columns.map { "s.\($0) IS NOT NULL" }
          + [Self.isRow("s", of: owner)].compactMap(\.self),
        keys: owner.key.columns.map { "s.\($0)" }),
      location: "\(owner.table).\(reference.columns.joined(separator: ","))",
      references: [RowReference(reference, of: owner, to: other)],
      ends: [
        End(owner, match: nil), End(other, match: reference.condition("s", refersTo: "d")),
      ].compactMap(\.self))
  }

  private init(
    broken: String, rows: KeyedRows, location: String, references: [RowReference], ends: [End]
  ) {
    self.broken = broken
    self.rows = rows
    self.location = location
    self.references = references
    self.ends = ends
  }

  private static func missing(
    _ reference: InstarStore.ForeignKey, _ alias: String, in entity: EntityLayout
  ) -> String {
    "NOT EXISTS (SELECT 1 FROM \(entity.table) AS d "
      + "WHERE \(reference.condition(alias, refersTo: "d"))"
      + "\(isRow("d", of: entity).map { " AND \($0)" } ?? ""))"
  }

  /// The condition for rows of an entity or of its subclasses; `nil` where a table holds one entity.
  private static func isRow(_ alias: String, of entity: EntityLayout) -> String? {
    entity.entityColumn.map { column in
      let numbers = entity.numbers.map(String.init).joined(separator: ", ")
      return "\(alias).\(column) IN (\(numbers))"
    }
  }

  /// - Parameters:
  ///   - findsBroken: Whether to count broken links too. Without, an index that has the keys is enough.
  ///   - removed: The numbers of the entities whose rows the stages delete, by table.
  ///   - losing: The conditions on links that rows lose (see `owned`).
  func count(
    _ db: Database, findsBroken: Bool, removing removed: [String: [Int]] = [:],
    losing: [String]
  ) throws -> StoreCensus.Links {
    let ending = losing + ends.compactMap { $0.isRow(of: removed) }
    let sums = [findsBroken ? [broken] : [], ending, losing].map {
      $0.isEmpty ? "0" : "coalesce(sum(\($0.joined(separator: " OR "))), 0)"
    }
    // Without GROUP BY there always is one row, with these four columns.
    let counts = try db.integers(
      "SELECT count(*), \(sums.joined(separator: ", ")) FROM \(rows.source)")
    return StoreCensus.Links(
      count: counts[0], broken: findsBroken ? counts[1] : nil, ending: counts[2],
      losing: counts[3], location: location)
  }

  /// Returns the number of links to rows that do not exist.
  func brokenCount(_ db: Database) throws -> Int {
    if try references.allSatisfy({ try $0.isResolved(db) }) { return 0 }
    return try db.integer("SELECT coalesce(sum(\(broken)), 0) FROM \(rows.source)") ?? 0
  }

  /// Returns the rows with a link to a row that does not exist; `nil` for none.
  func brokenRows(_ db: Database) throws -> AffectedRows? {
    try rows.affected(db, where: ["(\(broken))"])
  }
}

extension StoreLayout {
  func entity(named name: String) -> EntityLayout? { entityLayouts.first { $0.name == name } }

  /// The ends of a relationship, "Note.folder", and where its links are; `nil` where there is no such relationship.
  func link(
    _ path: String
  ) -> (
    location: EntityLayout.RelationshipStorage.Location, owner: EntityLayout, other: EntityLayout
  )? {
    let names = path.split(separator: ".", maxSplits: 1).map(String.init)
    guard names.count == 2, let owner = entity(named: names[0]),
      let storage = owner.relationships.first(where: { $0.relationship.name == names[1] }),
      let other = entity(named: storage.relationship.destination)
    else { return nil }
    return (storage.location, owner, other)
  }

  /// Returns the conditions on links of rows of some entities, by where the links are.
  ///
  /// - Parameter owners: Names of entities, by "Entity.relationship".
  func ownersOfLinks(_ owners: [String: [String]]) -> [String: [String]] {
    owners.reduce(into: [:]) { found, element in
      let (path, names) = element
      guard let link = link(path), let statement = linkStatement(path),
        let condition = LinkStatement.owned(
          by: entityLayouts.filter { names.contains($0.name) }, link.location, of: link.owner)
      else { return }
      found[statement.location, default: []].append(condition)
    }
  }

  /// The statement that counts the links of a relationship, "Note.folder".
  func linkStatement(_ path: String) -> LinkStatement? {
    link(path).map { LinkStatement($0.location, of: $0.owner, to: $0.other) }
  }
}
