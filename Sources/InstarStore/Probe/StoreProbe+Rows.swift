internal import Foundation
internal import GRDB
internal import InstarSchema

extension StoreProbe {
  /// The processor time that `RowCounting.quick` takes.
  private static let quickSeconds = 0.2

  /// Where all rows are counted: the processor time that takes longer than any table does, because
  /// reading goes at this speed at least.
  private static let slowestBytesPerSecond = 10.0 * 1024 * 1024
  private static let shortestSeconds = 5.0

  /// Counts rows, and gives them to the entities.
  ///
  /// A table that is damaged, or that takes longer than it may, is left without a number, and so
  /// are those behind it.
  mutating func count(_ rows: RowCounting, _ db: Database) throws {
    let seconds: Double
    switch rows {
    case .none: return
    case .quick: seconds = Self.quickSeconds
    case .all:
      let bytes = Double(file.state.size) + Double(file.log?.size ?? 0)
      seconds = Self.shortestSeconds + bytes / Self.slowestBytesPerSecond
    }
    do {
      try WorkLimit.within(seconds, db) {
        switch identity.format {
        case .plain: try countTables(db)
        case .coredata: try countEntities(db)
        }
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
      guard rows == .quick else { throw error }
    }
  }

  private mutating func countTables(_ db: Database) throws {
    let tables = tablesWithColumns
    for index in entities.indices where tables.contains(entities[index].name) {
      entities[index].rows = try Self.countRows(db, of: entities[index].name)
    }
  }

  private var tablesWithColumns: Set<String> {
    Set(identity.structure.tables.lazy.filter { !$0.columns.isEmpty }.map(\.name))
  }

  /// All entities below one root share the root's table and are told apart by `Z_ENT`.
  private mutating func countEntities(_ db: Database) throws {
    let byNumber = Dictionary(
      entityList.map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
    var roots: [Int: ListedEntity] = [:]
    /// The list may hold a circle: then none of those in it has a root of its own.
    func root(of entity: ListedEntity) -> ListedEntity {
      var way: [Int] = []
      var current = entity
      var seen = Set<Int>()
      while seen.insert(current.number).inserted {
        if let known = roots[current.number] {
          current = known
          break
        }
        way.append(current.number)
        guard let above = byNumber[current.superNumber] else { break }
        current = above
      }
      for number in way { roots[number] = current }
      return current
    }
    let rootOfEach = entityList.map { root(of: $0) }
    var sharing: [Int: Int] = [:]
    for root in rootOfEach { sharing[root.number, default: 0] += 1 }
    let tables = tablesWithColumns
    var counts: [Int: [Int: Int]] = [:]
    for (index, (entity, root)) in zip(entityList, rootOfEach).enumerated() {
      let table = "Z" + root.name.uppercased()
      guard tables.contains(table), entities.indices.contains(index) else { continue }
      if sharing[root.number] == 1 {
        entities[index].rows = try Self.countRows(db, of: table)
        continue
      }
      if counts[root.number] == nil {
        counts[root.number] = try Self.countRows(db, ofEachEntityIn: table)
      }
      guard let ofTable = counts[root.number], !ofTable.isEmpty else { continue }
      entities[index].rows = ofTable[entity.number] ?? 0
    }
  }

  /// `nil` where the table cannot be read.
  private static func countRows(_ db: Database, of table: String) throws -> Int? {
    try whereReadable {
      try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.quotedDatabaseIdentifier)")
    }
  }

  /// By the entities' numbers; with the number 0 for none, so that an empty table differs from one
  /// that cannot be read.
  private static func countRows(
    _ db: Database, ofEachEntityIn table: String
  ) throws -> [Int: Int] {
    try whereReadable {
      let rows = try Row.fetchCursor(
        db,
        sql: """
          SELECT Z_ENT, count(*) FROM \(table.quotedDatabaseIdentifier)
          WHERE typeof(Z_ENT) = 'integer' GROUP BY Z_ENT LIMIT 16000
          """)
      var counts = [0: 0]
      while let row = try rows.next() {
        let columns = Array(row.databaseValues)
        guard let number = Int.fromDatabaseValue(columns[0]) else { continue }
        counts[number] = Int.fromDatabaseValue(columns[1])
      }
      return counts
    } ?? [:]
  }

  /// What is known of a store does not depend on whether each of its tables can be read.
  private static func whereReadable<T>(_ body: () throws -> T?) throws -> T? {
    do {
      return try body()
    } catch let error as DatabaseError
      where [.SQLITE_CORRUPT, .SQLITE_ERROR, .SQLITE_TOOBIG, .SQLITE_NOMEM]
      .contains(error.resultCode)
    {
      return nil
    }
  }
}
