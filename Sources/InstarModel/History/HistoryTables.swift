import InstarSchema
import InstarStore
import Synchronization

/// The tables of persistent history that one store has (Core Data layout, section 9).
///
/// Two facts come from an open-source reader, whose author checked it against `NSPersistentHistoryChangeRequest`. The
/// bits of `ZCOLUMNS` begin with the most significant one and count the properties of the row's entity, attributes and
/// relationships together, by name. `ZTOMBSTONE<n>` holds the preserved attributes by name, as their own columns do.
///
/// No store that Apple's frameworks wrote has proven the order of the bits: in those at hand every change is an
/// insertion, which has no `ZCOLUMNS`. If the order is another one, `updatedAttributes` names wrong properties; no
/// value depends on it.
struct HistoryTables: Sendable {
  /// `ACHANGE`, `ATRANSACTION` and `ATRANSACTIONSTRING` in `Z_PRIMARYKEY`.
  enum Kind: Int64 {
    case change = 16001
    case transaction = 16002
    case string = 16003

    var table: String {
      switch self {
      case .change: "ACHANGE"
      case .transaction: "ATRANSACTION"
      case .string: "ATRANSACTIONSTRING"
      }
    }

    var entityName: String { String(table.dropFirst()) }
  }

  /// `Z` and these name the columns of a transaction's texts; with `TS` those of their numbers.
  enum Label: String, CaseIterable {
    case author = "AUTHOR"
    case bundle = "BUNDLEID"
    case process = "PROCESSID"
  }

  /// How many values of a deleted row can be kept.
  let tombstoneCount: Int
  /// The texts that are kept as numbers of `ATRANSACTIONSTRING`, as frameworks since 2017 do.
  private let numbered: Set<Label>

  /// Returns `nil` if the store keeps no history.
  init?(_ session: SQLSession) throws {
    func columns(_ table: String) throws -> Set<String> {
      Set(try session.rows("SELECT name FROM pragma_table_info(?)", bind: table) { $0.text(at: 0) })
    }
    let (changes, transactions) = (try columns("ACHANGE"), try columns("ATRANSACTION"))
    guard changes.isSuperset(of: ["ZCHANGETYPE", "ZENTITY", "ZENTITYPK", "ZTRANSACTIONID"]),
      changes.contains("ZCOLUMNS"), transactions.contains("ZTIMESTAMP")
    else { return nil }
    var count = 0
    while changes.contains("ZTOMBSTONE\(count)") { count += 1 }
    tombstoneCount = count
    let hasStrings = try columns("ATRANSACTIONSTRING").contains("ZNAME")
    numbered = Set(
      Label.allCases.filter { hasStrings && transactions.contains("Z\($0.rawValue)TS") })
  }

  /// The columns of the tombstones of an entity, after a comma each.
  func tombstoneColumns(_ count: Int) -> [String] {
    (0..<Swift.min(count, tombstoneCount)).map { "ZTOMBSTONE\($0)" }
  }

  /// Returns the column for a label, and whether it holds a number.
  func column(_ label: Label) -> (name: String, isNumber: Bool) {
    let isNumber = numbered.contains(label)
    return ("Z\(label.rawValue)\(isNumber ? "TS" : "")", isNumber)
  }

  /// Returns the expression for the text of a label in a row of `ATRANSACTION AS t`.
  func text(_ label: Label) -> String {
    let text = "t.Z\(label.rawValue)"
    guard numbered.contains(label) else { return text }
    return
      "ifnull((SELECT ZNAME FROM ATRANSACTIONSTRING AS s WHERE s.Z_PK = \(text)TS), \(text))"
  }

  /// Returns the highest key that was ever used.
  static func lastKey(_ kind: Kind, _ session: SQLSession) throws -> Int64 {
    let statement = try session.statement(
      "SELECT max(ifnull((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(kind.rawValue)), 0), "
        + "ifnull((SELECT max(Z_PK) FROM \(kind.table)), 0))")
    defer { statement.reset() }
    return try statement.step() ? statement.integer(at: 0) : 0
  }

  /// Records the highest key. The row exists only once history has been written (section 2.1).
  static func recordLastKey(_ key: Int64, _ kind: Kind, _ session: SQLSession) throws {
    let statement = try session.statement(
      "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, 0, ?3) "
        + "ON CONFLICT (Z_ENT) DO UPDATE SET Z_MAX = ?3")
    statement.bind(kind.rawValue, at: 1)
    statement.bind(kind.entityName, at: 2)
    statement.bind(key, at: 3)
    try statement.run()
  }
}

extension ModelStore {
  /// Returns the tables of the store's history; `nil` if it keeps none.
  func historyTables(_ session: SQLSession) throws -> HistoryTables? {
    guard !layout.historyTables.isEmpty else { return nil }
    if let known = knownHistory.withLock({ $0 }) { return known }
    let tables = try HistoryTables(session)
    knownHistory.withLock { $0 = .some(tables) }
    return tables
  }
}

extension ModelEntity {
  /// The slots of the stored properties in the order of their names, which `ZCOLUMNS` counts.
  static func historySlots(of descriptor: ModelDescriptor, _ slots: [SlotStorage]) -> [Int] {
    slots.indices.filter { !slots[$0].isInMemory }.sorted {
      descriptor.properties[$0].name.utf8
        .lexicographicallyPrecedes(descriptor.properties[$1].name.utf8)
    }
  }
}
