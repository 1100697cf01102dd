internal import CDatabase
internal import InstarSchema

extension SQLSession {
  /// Fewer pages are read within tenths of a second.
  private static let measuredPages = 4096
  /// SQLite needs some twenty instructions for a row, and a millisecond for these.
  private static let instructionsPerCall: Int32 = 20_000
  /// A row that calls code may take a millisecond alone.
  private static let instructionsPerSlowCall: Int32 = 1000

  /// Runs a statement without parameters on a table. `meter` reports how many rows of the table that the statement
  /// reads are done, if the store is large or each row may take long.
  ///
  /// SQLite counts the rows of a full scan. `ALTER TABLE … DROP COLUMN` has no such count, but takes the same number of
  /// instructions for each row.
  ///
  /// - Parameter callsPlan: Whether the statement calls code of a plan, which may take any time for a row.
  package func run(_ sql: String, on table: String, callsPlan: Bool = false) throws {
    readCollector?.isPaused = true
    defer { readCollector?.isPaused = false }
    guard meter != nil, try callsPlan || integer("PRAGMA page_count") ?? 0 >= Self.measuredPages,
      let scan = try scan(of: sql, on: table)
    else { return try run(sql) }
    try measuring(scan, isSlow: callsPlan) { try run(sql) }
  }

  /// Runs a statement of a plan, which is prepared and has its arguments. `meter` reports how many rows of the table
  /// that it reads are done, if it reads all rows of one table, and no others again and again.
  package func run(_ prepared: PlanStatement.Prepared) throws {
    let statement = prepared.statement
    guard meter != nil, let scan = try onlyScan(of: statement.sql) else {
      return try statement.run()
    }
    try measuring(scan) { try statement.run() }
  }

  /// Reports the rows of a table while `body` runs a statement that reads all of them.
  ///
  /// - Parameter isSlow: Whether each row may take long.
  private func measuring(_ scan: Scan, isSlow: Bool = false, _ body: () throws -> Void) throws {
    // While the statement runs, nothing else can be asked.
    let total = try count(scan.table)
    guard let meter,
      let piece = meter.begin("rows of table '\(scan.table)'", total: { total })
    else { return try body() }
    defer { meter.end(piece) }
    let observer = ScanObserver(
      meter: meter, piece: piece, instructionsPerRow: scan.instructionsPerRow)
    try withExtendedLifetime(observer) {
      var progress = instar_progress_observer()
      progress.context = Unmanaged.passUnretained(observer).toOpaque()
      progress.report = { context, rows, instructions in
        guard let context else { return }
        Unmanaged<ScanObserver>.fromOpaque(context).takeUnretainedValue()
          .advance(rows: rows, instructions: instructions)
      }
      try withUnsafeMutablePointer(to: &progress) { progress in
        instar_progress_observe(
          connection, progress, isSlow ? Self.instructionsPerSlowCall : Self.instructionsPerCall)
        // The observer ends with this call.
        defer { instar_budget_observe(connection) }
        try body()
      }
    }
    if let total { meter.finish(piece, at: total) }
  }

  /// A table of which a statement reads all rows.
  private struct Scan {
    var table: String
    /// `nil` where SQLite counts the rows itself.
    var instructionsPerRow: Int64?
  }

  private func scan(of sql: String, on table: String) throws -> Scan? {
    let dropsColumn = sql.hasPrefix("ALTER TABLE ") && sql.contains(" DROP COLUMN ")
    let mayScan = dropsColumn || ["INSERT ", "UPDATE ", "DELETE "].contains(where: sql.hasPrefix)
    guard mayScan else { return nil }
    if dropsColumn {
      return Scan(table: table, instructionsPerRow: try instructionsToRewriteRow(of: table))
    }
    return try scans(of: sql).first.flatMap { try scannedTable(of: $0) }
  }

  /// The scan of a statement that has no other: the rows of several scans cannot be told apart.
  private func onlyScan(of sql: String) throws -> Scan? {
    let scans = try scans(of: sql)
    guard scans.count == 1, let line = scans.first else { return nil }
    return try scannedTable(of: line)
  }

  /// The lines "SCAN note" of SQLite's plan, with " USING …" behind it where an index serves.
  private func scans(of sql: String) throws -> [String] {
    try rows("EXPLAIN QUERY PLAN \(sql)") { $0.text(at: 3) }.filter { $0.hasPrefix("SCAN ") }
  }

  private func scannedTable(of line: String) throws -> Scan? {
    let scanned = line.dropFirst("SCAN ".count)
    let names = try rows("SELECT name FROM sqlite_schema WHERE type = 'table'") { $0.text(at: 0) }
    return names.filter { scanned == $0 || scanned.hasPrefix("\($0) USING ") }
      .max { $0.count < $1.count }.map { Scan(table: $0) }
  }

  /// SQLite rewrites a row with one instruction for each column, one more for each number with a fraction, and three
  /// for the record (https://www.sqlite.org/src/file/src/alter.c, `sqlite3AlterDropColumn`).
  private func instructionsToRewriteRow(of table: String) throws -> Int64 {
    let types = try rows("SELECT type FROM pragma_table_info(?1)", bind: table) { $0.text(at: 0) }
    let real = types.filter { ColumnAffinity($0) == .real }
    return Int64(types.count + real.count + 3)
  }

  private func count(_ table: String) throws -> Int? {
    try integer("SELECT count(*) FROM \(SQLIdentifier.sql(table))").map { Int($0) }
  }
}

/// Passes SQLite's counts of one statement on to a meter.
private final class ScanObserver {
  private let meter: WorkMeter
  private let piece: WorkMeter.Piece
  private let instructionsPerRow: Int64?

  init(meter: WorkMeter, piece: WorkMeter.Piece, instructionsPerRow: Int64?) {
    self.meter = meter
    self.piece = piece
    self.instructionsPerRow = instructionsPerRow
  }

  func advance(rows: Int64, instructions: Int64) {
    meter.advance(piece, to: Int(instructionsPerRow.map { instructions / $0 } ?? rows))
  }
}
