import Foundation
import InstarSchema
import InstarStore

/// Writes the history of one save, in its transaction: a row of `ATRANSACTION`, and one of `ACHANGE` for each row that
/// the save deletes, updates or inserts.
struct SaveHistory {
  private let tables: HistoryTables
  private let session: SQLSession
  let transaction: Int64
  private var lastChange: Int64
  private let insertion: SQLStatement
  /// Inserted rows that are not noted yet.
  private var insertedRows: Run?

  /// Rows of one entity with consecutive keys.
  private struct Run {
    let entity: ModelEntity
    let firstKey: Int64
    var lastKey: Int64
  }

  private static let processName = ProcessInfo.processInfo.processName

  /// Begins the transaction, or continues the open one of an earlier batch.
  ///
  /// - Returns: `nil` if the store keeps no history.
  init?(of store: ModelStore, author: String?, continuing open: Int64?, _ session: SQLSession)
    throws
  {
    guard let tables = try store.historyTables(session) else { return nil }
    self.tables = tables
    self.session = session
    transaction = try open ?? HistoryTables.lastKey(.transaction, session) + 1
    lastChange = try HistoryTables.lastKey(.change, session)
    insertion = try session.statement(Self.insertion + ", ZCOLUMNS) VALUES (?, ?, ?, ?, ?, ?, ?)")
    if open == nil { try insertTransaction(of: author) }
  }

  private func insertTransaction(of author: String?) throws {
    let texts: [(HistoryTables.Label, String?)] = [
      (.author, author), (.bundle, Bundle.main.bundleIdentifier ?? Self.processName),
      (.process, Self.processName),
    ]
    let columns = texts.map { tables.column($0.0).name }
    let statement = try session.statement(
      "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZTIMESTAMP, \(columns.joined(separator: ", "))) "
        + "VALUES (?, ?, ?, ?, ?, ?)")
    statement.bind(transaction, at: 1)
    statement.bind(HistoryTables.Kind.transaction.rawValue, at: 2)
    statement.bind(Date.now.timeIntervalSinceReferenceDate, at: 3)
    for (offset, (label, text)) in texts.enumerated() {
      guard let text else { continue }
      let index = Int32(offset + 4)
      if tables.column(label).isNumber {
        statement.bind(try number(of: text), at: index)
      } else {
        statement.bind(text, at: index)
      }
    }
    try statement.run()
    try HistoryTables.recordLastKey(transaction, .transaction, session)
  }

  /// Returns the number of a text in `ATRANSACTIONSTRING`.
  private func number(of text: String) throws -> Int64 {
    let known = try session.statement("SELECT Z_PK FROM ATRANSACTIONSTRING WHERE ZNAME = ?")
    known.bind(text, at: 1)
    defer { known.reset() }
    if try known.step() { return known.integer(at: 0) }
    let key = try HistoryTables.lastKey(.string, session) + 1
    let insertion = try session.statement(
      "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?, ?, ?)")
    insertion.bind(key, at: 1)
    insertion.bind(HistoryTables.Kind.string.rawValue, at: 2)
    insertion.bind(text, at: 3)
    try insertion.run()
    try HistoryTables.recordLastKey(key, .string, session)
    return key
  }

  private static let insertion =
    "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID"

  /// Notes the insertion of a row. Call it after the row is inserted.
  mutating func noteInsertion(of key: Int64, _ entity: ModelEntity) throws {
    if let run = insertedRows, run.entity.position == entity.position, run.lastKey + 1 == key {
      insertedRows?.lastKey = key
    } else {
      try noteInsertedRows()
      insertedRows = Run(entity: entity, firstKey: key, lastKey: key)
    }
  }

  /// Takes one statement for all rows of a run: one for each row would take twice the time.
  private mutating func noteInsertedRows() throws {
    guard let run = insertedRows else { return }
    insertedRows = nil
    guard run.lastKey > run.firstKey else {
      return try note(type: 0, run.firstKey, run.entity, columns: nil)
    }
    let statement = try session.statement(
      Self.insertion
        + ") SELECT ?1 + Z_PK - ?5, ?2, ?3, ?4, Z_PK, ?6 FROM \(run.entity.layout.table) "
        + "WHERE Z_PK BETWEEN ?5 AND ?7 ORDER BY Z_PK")
    bind(0, run.firstKey, run.entity, to: statement)
    statement.bind(run.lastKey, at: 7)
    try statement.run()
    lastChange += run.lastKey - run.firstKey
  }

  /// Notes a row whose properties in these slots are written.
  mutating func noteUpdate(
    of key: Int64, _ entity: ModelEntity, slots isWritten: (Int) -> Bool
  ) throws {
    var columns = Data(count: (entity.historySlots.count + 7) / 8)
    for (position, slot) in entity.historySlots.enumerated() where isWritten(slot) {
      columns[position / 8] |= 0x80 >> UInt8(position % 8)
    }
    try noteInsertedRows()
    try note(type: 1, key, entity, columns: columns)
  }

  private mutating func note(
    type: Int64, _ key: Int64, _ entity: ModelEntity, columns: Data?
  ) throws {
    bind(type, key, entity, to: insertion)
    if let columns { insertion.bind(columns, at: 7) }
    try insertion.run()
  }

  /// Notes the deletion of a row, with its preserved values. Call it before the row is deleted.
  mutating func noteDeletion(of key: Int64, _ entity: ModelEntity) throws {
    try noteInsertedRows()
    let preserved = entity.layout.preservedAttributes
    let columns = tables.tombstoneColumns(preserved.count)
    let values = zip(columns, preserved).map { ", t0.\($1.column.name)" }.joined()
    let statement = try session.statement(
      Self.insertion + columns.map { ", \($0)" }.joined()
        + ") SELECT ?, ?, ?, ?, ?, ?\(values) FROM \(entity.layout.table) AS t0 "
        + "WHERE \(entity.layout.key.condition("t0", equals: "?5"))")
    bind(2, key, entity, to: statement)
    try statement.run()
  }

  private mutating func bind(
    _ type: Int64, _ key: Int64, _ entity: ModelEntity, to statement: SQLStatement
  ) {
    lastChange += 1
    statement.bind(lastChange, at: 1)
    statement.bind(HistoryTables.Kind.change.rawValue, at: 2)
    statement.bind(type, at: 3)
    statement.bind(Int64(entity.layout.number), at: 4)
    statement.bind(key, at: 5)
    statement.bind(transaction, at: 6)
  }

  /// Ends the transaction of the history. Nothing can be noted after it.
  mutating func finish() throws {
    try noteInsertedRows()
    try HistoryTables.recordLastKey(lastChange, .change, session)
  }
}
