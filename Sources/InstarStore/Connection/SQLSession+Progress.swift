internal import CDatabase
internal import InstarSchema

extension SQLSession {
  /// Fewer pages are read within tenths of a second.
  private static let measuredPages = 4096

  /// Runs a statement without parameters on a table. `meter` reports how many rows of the table that the statement
  /// reads are done, if the store is large or each row may take long.
  ///
  /// SQLite counts the rows of a full scan. `ALTER TABLE … DROP COLUMN` has no such count, but takes the same number of
  /// instructions for each row.
  ///
  /// - Parameter callsPlan: Whether the statement calls code of a plan, which may take any time for a row.
  package func run(_ sql: String, on table: String, callsPlan: Bool = false) throws {
    guard let meter, try callsPlan || integer("PRAGMA page_count") ?? 0 >= Self.measuredPages,
      let scan = try scan(of: sql, on: table)
    else { return try run(sql) }
    // While the statement runs, nothing else can be asked.
    let total = try count(scan.table)
    guard let piece = meter.begin("rows of table '\(scan.table)'", total: { total }) else {
      return try run(sql)
    }
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
        instar_progress_observe(connection, progress)
        // The observer ends with this call.
        defer { instar_budget_observe(connection) }
        try run(sql)
      }
    }
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
    let plan = try rows("EXPLAIN QUERY PLAN \(sql)") { $0.text(at: 3) }
    // "SCAN note", with " USING …" behind it where an index serves.
    guard let line = plan.first(where: { $0.hasPrefix("SCAN ") }) else { return nil }
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
