package import GRDB
internal import InstarSchema
package import InstarStore

/// The number of rows of each entity and of links of each relationship, which a migration must not lose.
package struct StoreCensus {
  /// Rows of exactly this entity, without those of subclasses, by its name.
  var rows: [String: Int] = [:]
  /// By "Entity.relationship".
  var links: [String: Links] = [:]
  /// Rows whose `Z_ENT` is not the number of an entity of their table, by table.
  private(set) var strayRows: [String: Int] = [:]

  /// Rows of a plain store's tables that no model describes, by table.
  var otherRows: [String: Int] = [:]
  /// Rows of a plain store that violate one of its foreign keys; `nil` where they cannot be checked.
  var violations: Int?

  struct Links: Hashable {
    var count: Int
    /// Links to rows that do not exist.
    var broken: Int
    /// The column or table with the links, which is the same for both ends of a relationship.
    var place: String
  }

  init() {}

  package init(_ db: Database, layout: StoreLayout) throws {
    switch layout {
    case .coreData(let layout): self = try StoreCensus(db, layout: layout)
    case .plain(let layout): self = try StoreCensus(db, tables: layout)
    }
  }

  private init(_ db: Database, layout: CoreDataLayout) throws {
    for table in layout.tables {
      var byNumber: [Int: Int] = [:]
      let counts = try Row.fetchAll(
        db, sql: "SELECT Z_ENT, count(*) FROM \(table.name) GROUP BY Z_ENT")
      for row in counts {
        byNumber[row.get(0) ?? 0, default: 0] += row.get(1) ?? 0
      }
      for entity in layout.entities where entity.table == table.name {
        rows[entity.name] = byNumber.removeValue(forKey: entity.number) ?? 0
      }
      let strays = byNumber.values.reduce(0, +)
      if strays > 0 { strayRows[table.name] = strays }
    }
    for entity in layout.entities {
      for storage in entity.relationships {
        guard let destination = layout.entity(named: storage.relationship.destination) else {
          continue
        }
        links["\(entity.name).\(storage.relationship.name)"] = try Self.links(
          db, storage.place, of: entity, to: destination)
      }
    }
  }

  private static func links(
    _ db: Database, _ place: CoreDataLayout.RelationshipStorage.Place,
    of entity: CoreDataLayout.Entity,
    to destination: CoreDataLayout.Entity
  ) throws -> Links {
    let sql: String
    let name: String
    switch place {
    case .column(let column):
      name = "\(entity.table).\(column)"
      sql = """
        SELECT count(*), coalesce(sum(NOT EXISTS (
          SELECT 1 FROM \(destination.table) AS d WHERE d.Z_PK = s.\(column) AND \(isOf(destination, "d")))), 0)
        FROM \(entity.table) AS s WHERE s.\(column) IS NOT NULL AND \(isOf(entity, "s"))
        """
    case .foreignKey(let column):
      name = "\(destination.table).\(column)"
      sql = """
        SELECT count(*), coalesce(sum(NOT EXISTS (
          SELECT 1 FROM \(entity.table) AS d WHERE d.Z_PK = s.\(column) AND \(isOf(entity, "d")))), 0)
        FROM \(destination.table) AS s WHERE s.\(column) IS NOT NULL AND \(isOf(destination, "s"))
        """
    case .joinTable(let table, let own, let other):
      name = table
      sql = """
        SELECT count(*), coalesce(sum(
          NOT EXISTS (SELECT 1 FROM \(entity.table) AS d WHERE d.Z_PK = j.\(own) AND \(isOf(entity, "d")))
          OR NOT EXISTS (
            SELECT 1 FROM \(destination.table) AS d WHERE d.Z_PK = j.\(other) AND \(isOf(destination, "d")))), 0)
        FROM \(table) AS j
        """
    }
    let row = try Row.fetchOne(db, sql: sql)
    return Links(count: row?.get(0) ?? 0, broken: row?.get(1) ?? 0, place: name)
  }

  /// The condition for rows of an entity or of its subclasses.
  private static func isOf(_ entity: CoreDataLayout.Entity, _ alias: String) -> String {
    "\(alias).Z_ENT IN (\(entity.numbers.map(String.init).joined(separator: ", ")))"
  }
}
