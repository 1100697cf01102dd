internal import Foundation
internal import GRDBSQLite
package import InstarSchema

/// Logs the statements of one connection as Core Data does:
///
/// ```text
/// CoreData: sql: SELECT t0.Z_PK, t0.ZTITLE FROM ZNOTE AS t0 WHERE t0.ZFOLDER = ?1
/// CoreData: details: SQLite bind[0] = (int64)3
/// CoreData: annotation: sql connection fetch time: 0.0003s
/// CoreData: annotation: total fetch execution time: 0.0005s for 3 rows.
/// ```
///
/// A statement is logged when it begins, its time when it ends. Unless values are logged, a statement that runs many
/// times in a row is logged once, with the count and total time. A log with a repetition limit logs every statement a
/// few times and counts its further runs. Without a log nothing is paid, because SQLite calls this code.
///
/// Sendable because only the connection's queue uses it.
public final class SQLLog: @unchecked Sendable {
  private let debug: SQLDebug
  private let write: @Sendable (String) -> Void
  private var running: [OpaquePointer: Run] = [:]
  private var last: Repetition?
  /// How often each statement was logged, if `repetitionLimit` limits it.
  private var shownCounts: [String: Int] = [:]
  /// The runs that were not logged, in the order of the first of each statement.
  private var counted: [Repetition] = []
  private var countedPositions: [String: Int] = [:]
  private let repetitionLimit: Int?
  /// Statements whose query plan is not logged yet.
  private var unexplained: [String] = []
  private var isExplaining = false

  private struct Run {
    var start: ContinuousClock.Instant
    var isShown: Bool
    var rows = 0
  }

  /// Consecutive runs of one statement.
  private struct Repetition {
    var sql: String
    var isFetch: Bool
    var count = 0
    var rows = 0
    var fetchSeconds = 0.0
    var seconds = 0.0
  }

  /// The number of statements that a log with a repetition limit counts separately. Further ones, such as statements
  /// with literals, are counted as one.
  private static let statementLimit = 1000

  /// - Parameters:
  ///   - repetitionLimit: How often a statement is logged before its runs are only counted; `nil` for always.
  ///   - write: Called with each line, on the connection's queue.
  package init(
    _ debug: SQLDebug, repetitionLimit: Int? = nil, write: @escaping @Sendable (String) -> Void
  ) {
    self.debug = debug
    self.repetitionLimit = repetitionLimit
    self.write = write
  }

  /// Returns a log on standard error if the launch arguments or `INSTAR_SQL_DEBUG` ask for one, else `nil`.
  package static func ofThisProcess() -> SQLLog? {
    guard levelOfThisProcess > 0 else { return nil }
    return SQLLog(SQLDebug(level: levelOfThisProcess)) { line in
      FileHandle.standardError.write(Data("\(line)\n".utf8))
    }
  }

  /// The level that this process was started with.
  package static let levelOfThisProcess = SQLDebug.read(
    CommandLine.arguments.dropFirst(),
    variable: ProcessInfo.processInfo.environment["INSTAR_SQL_DEBUG"]
  ).debug.level

  /// Makes SQLite call the log as long as the connection is open.
  func attach(to connection: OpaquePointer) {
    let kinds = UInt32(SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE | SQLITE_TRACE_ROW)
    sqlite3_trace_v2(
      connection, kinds,
      { kind, context, statement, detail in
        guard let context, let statement else { return 0 }
        Unmanaged<SQLLog>.fromOpaque(context).takeUnretainedValue()
          .note(Int32(kind), OpaquePointer(statement), detail)
        return 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func note(_ kind: Int32, _ statement: OpaquePointer, _ detail: UnsafeMutableRawPointer?) {
    guard !isExplaining else { return }
    switch kind {
    case SQLITE_TRACE_STMT:
      guard let detail else { return }
      let sql = String(cString: detail.assumingMemoryBound(to: CChar.self))
      // SQLite reports the statements of triggers as comments.
      if !sql.hasPrefix("--") { begin(statement, sql) }
    case SQLITE_TRACE_ROW:
      running[statement]?.rows += 1
    case SQLITE_TRACE_PROFILE:
      let nanoseconds = detail?.loadUnaligned(as: Int64.self) ?? 0
      end(statement, fetchSeconds: Double(nanoseconds) / 1e9)
    default: break
    }
  }

  private func begin(_ statement: OpaquePointer, _ sql: String) {
    let isShown = isShown(sql)
    running[statement] = Run(start: .now, isShown: isShown)
    guard isShown else { return flush() }
    if debug.showsValues || last?.sql != sql {
      flush()
      write("CoreData: sql: \(sql)")
      if debug.showsPlans, !unexplained.contains(sql) { unexplained.append(sql) }
    }
    guard debug.showsValues, let expanded = sqlite3_expanded_sql(statement) else { return }
    defer { sqlite3_free(expanded) }
    let values = BoundValues(template: sql, expanded: String(cString: expanded))
    for (index, value) in values.inOrder.enumerated() {
      write("CoreData: details: SQLite bind[\(index)] = \(value)")
    }
  }

  /// Whether a run of a statement is shown, or only counted.
  private func isShown(_ sql: String) -> Bool {
    guard let repetitionLimit else { return true }
    // It costs no line.
    if last?.sql == sql, !debug.showsValues { return true }
    let count = shownCounts[sql] ?? 0
    guard count < repetitionLimit, count > 0 || shownCounts.count < Self.statementLimit else {
      return false
    }
    shownCounts[sql] = count + 1
    return true
  }

  private func end(_ statement: OpaquePointer, fetchSeconds: Double) {
    guard let run = running.removeValue(forKey: statement), let text = sqlite3_sql(statement) else {
      return
    }
    let sql = String(cString: text)
    func add(to repetition: inout Repetition) {
      repetition.count += 1
      repetition.rows += run.rows
      repetition.fetchSeconds += fetchSeconds
      repetition.seconds += run.start.duration(to: .now).inSeconds
    }
    let isFetch = sqlite3_column_count(statement) > 0
    guard run.isShown else {
      let key = shownCounts[sql] == nil ? "other statements" : sql
      let position = countedPositions[key] ?? counted.count
      if position == counted.count {
        countedPositions[key] = position
        counted.append(Repetition(sql: key, isFetch: isFetch))
      }
      add(to: &counted[position])
      return
    }
    if last?.sql != sql { flush() }
    var repetition = last ?? Repetition(sql: sql, isFetch: isFetch)
    add(to: &repetition)
    last = repetition
    if debug.showsValues { flush() }
  }

  /// Writes one line for each statement with runs that were not logged. To be called while no statement runs.
  package func writeCounts() {
    flush()
    for done in counted {
      let rows = done.isFetch ? " for \(done.rows) rows" : ""
      write(
        "CoreData: annotation: executed \(done.count) more times, \(Self.text(done.seconds))\(rows): \(done.sql)"
      )
    }
    counted.removeAll()
    countedPositions.removeAll()
  }

  private static func text(_ seconds: Double) -> String { String(format: "%.4fs", seconds) }

  /// Logs the time of the last statement.
  private func flush() {
    guard let done = last else { return }
    last = nil
    let times = done.count == 1 ? "" : ", executed \(done.count) times"
    if done.isFetch {
      write("CoreData: annotation: sql connection fetch time: \(Self.text(done.fetchSeconds))")
      write(
        "CoreData: annotation: total fetch execution time: \(Self.text(done.seconds)) for \(done.rows) rows\(times)."
      )
    } else {
      write("CoreData: annotation: sql execution time: \(Self.text(done.seconds))\(times)")
    }
  }

  /// Logs what is pending when the connection is released.
  func finish(_ session: SQLSession) {
    flush()
    isExplaining = true
    defer { isExplaining = false }
    for sql in unexplained where Self.hasPlan(sql) {
      write("CoreData: details: SQLite: EXPLAIN QUERY PLAN \(sql)")
      for line in session.queryPlan(of: sql) { write("\t\(line)") }
    }
    unexplained.removeAll()
  }

  private static func hasPlan(_ sql: String) -> Bool {
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE"].contains { sql.hasPrefix($0) }
  }
}

extension SQLSession {
  /// Returns each step as Core Data prints it: its number, its parent's number, and its text. Empty for a statement
  /// that no longer compiles.
  fileprivate func queryPlan(of sql: String) -> [String] {
    do {
      return try rows("EXPLAIN QUERY PLAN \(sql)") {
        "\($0.integer(at: 0)) \($0.integer(at: 1)) 0 \($0.text(at: 3))"
      }
    } catch {
      return []
    }
  }
}
