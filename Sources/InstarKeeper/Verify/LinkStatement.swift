internal import GRDB
internal import InstarStore

/// The statement that counts the links of a relationship, and those to rows that do not exist.
struct LinkStatement: Hashable {
  /// The condition for links to missing rows.
  private let broken: String
  private let rows: String
  /// The columns or the table with the links.
  private let location: String

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
      let ends = [Self.missing(own, "j", in: entity), Self.missing(other, "j", in: destination)]
      self.init(
        broken: ends.sorted().joined(separator: " OR "), rows: "\(table) AS j", location: table)
    }
  }

  private init(_ reference: InstarStore.ForeignKey, of owner: EntityLayout, to other: EntityLayout)
  {
    let present = reference.columns.map { "s.\($0) IS NOT NULL" }.joined(separator: " AND ")
    self.init(
      broken: Self.missing(reference, "s", in: other),
      rows: "\(owner.table) AS s WHERE \(present)\(Self.isRow("s", of: owner))",
      location: "\(owner.table).\(reference.columns.joined(separator: ","))")
  }

  private init(broken: String, rows: String, location: String) {
    self.broken = broken
    self.rows = rows
    self.location = location
  }

  private static func missing(
    _ reference: InstarStore.ForeignKey, _ alias: String, in entity: EntityLayout
  ) -> String {
    "NOT EXISTS (SELECT 1 FROM \(entity.table) AS d "
      + "WHERE \(reference.condition(alias, refersTo: "d"))\(isRow("d", of: entity)))"
  }

  /// The condition for rows of an entity or of its subclasses, after others.
  private static func isRow(_ alias: String, of entity: EntityLayout) -> String {
    entity.entityColumn.map { column in
      let numbers = entity.numbers.map(String.init).joined(separator: ", ")
      return " AND \(alias).\(column) IN (\(numbers))"
    } ?? ""
  }

  /// - Parameter findsBroken: Whether to count broken links too. Without, an index that has the keys is enough.
  func count(_ db: Database, findsBroken: Bool) throws -> StoreCensus.Links {
    let sums = findsBroken ? ", coalesce(sum(\(broken)), 0)" : ""
    let row = try Row.fetchOne(db, sql: "SELECT count(*)\(sums) FROM \(rows)")
    return StoreCensus.Links(
      count: row?.get(0) ?? 0, broken: findsBroken ? row?.get(1) ?? 0 : nil, location: location)
  }
}
