internal import CDatabase
package import GRDB
internal import GRDBSQLite
package import InstarSchema

/// A query of a plan's invariant. It reads a store and can do nothing else.
///
/// A plugin wrote the text. So it must be one statement that begins as a query does, and of which SQLite says that it
/// writes nothing: ATTACH, PRAGMA, VACUUM and all changes are refused. What it calls cannot write either
/// (`GuardedConnection.onlyReading`). A guarded connection has no functions of the plugin and loads no extensions.
package struct PlanQuery {
  package let sql: String
  /// The name of the invariant, for errors; `nil` where the caller names it.
  private let invariant: String?

  package init(_ sql: String, of invariant: String? = nil) {
    self.sql = sql
    self.invariant = invariant
  }

  /// Compiles the query, and runs nothing.
  ///
  /// - Throws: `invalidPlan` where the text is not one query without parameters, or does not compile on this store;
  ///   `timeLimit` where that takes too long.
  package func requireCompiles(_ db: Database) throws(InstarError) {
    try limited(db, nil) { _ in }
  }

  /// Runs the query, and keeps none of its rows but the first ones.
  ///
  /// - Parameter processorSeconds: The limit of processor time; `nil` for one that grows with the store.
  /// - Throws: `invalidPlan` as above, and where the query fails; `timeLimit` where it does not end within its limit;
  ///   `corruptStore` where it meets damage.
  package func answer(
    _ db: Database, processorSeconds: Double? = nil
  ) throws(InstarError) -> QueryAnswer {
    try limited(db, processorSeconds) { rows in
      var answer = QueryAnswer(
        columnCount: rows.columnCount, count: 0, digest: "", firstRows: [])
      answer.digest = try ContentDigest.digest { state in
        while try rows.next() {
          ContentDigest.addRow(of: rows, to: state)
          if answer.count < AffectedRows.keyLimit { answer.firstRows.append(Self.text(of: rows)) }
          answer.count += 1
        }
      }
      return answer
    }
  }

  /// Returns the digests of all rows: some 100 bytes for each row, however many columns it has.
  ///
  /// - Throws: As `answer`.
  package func rowDigests(_ db: Database) throws(InstarError) -> Set<String> {
    try limited(db, nil) { rows in
      var digests: Set<String> = []
      while try rows.next() { digests.insert(Self.digest(of: rows)) }
      return digests
    }
  }

  /// Returns the rows that have none of the digests; `nil` for none.
  ///
  /// - Throws: As `answer`.
  package func rows(
    _ db: Database, without digests: Set<String>
  ) throws(InstarError) -> AffectedRows? {
    try limited(db, nil) { rows in
      var found = AffectedRows(count: 0, keys: [])
      while try rows.next() {
        guard !digests.contains(Self.digest(of: rows)) else { continue }
        found.count += 1
        if found.keys.count < AffectedRows.keyLimit { found.keys.append(Self.text(of: rows)) }
      }
      return found.count > 0 ? found : nil
    }
  }

  private static func digest(of rows: StatementReader) -> String {
    ContentDigest.digest { ContentDigest.addRow(of: rows, to: $0) }
  }

  // MARK: Running it

  private static let what = "cannot run a query of the plan"
  private static let firstWords: Set<String> = ["SELECT", "VALUES", "WITH"]

  private func prepared(_ db: Database, _ limit: WorkLimit) throws(InstarError) -> StatementReader {
    // First: SQLite carries out some PRAGMA statements while it compiles them.
    let first = SQLToken.tokens(of: sql).first { $0.kind != .space }
    guard Self.firstWords.contains(first?.text.uppercased() ?? "") else { throw notAQuery }
    guard let connection = db.sqliteConnection else { throw failure("the connection is closed") }
    var statement: OpaquePointer?
    var rest: UnsafePointer<CChar>?
    var after = ""
    let code = sql.withCString { text in
      let code = instar_prepare_query(connection, text, &statement, &rest)
      after = rest.map { String(cString: $0) } ?? ""
      return code
    }
    guard code != SQLITE_INTERRUPT, !limit.isOver else {
      sqlite3_finalize(statement)
      throw tooSlow
    }
    guard code == SQLITE_OK else {
      let error = StatementReader.error(of: connection)
      throw failure("the query does not compile: \(error.message ?? "\(error.resultCode)")")
    }
    guard let statement else { throw notAQuery }
    let reader = StatementReader(statement, of: connection)
    let isAlone = SQLToken.tokens(of: after).allSatisfy { $0.kind == .space || $0.text == ";" }
    guard isAlone, sqlite3_stmt_readonly(statement) != 0, reader.columnCount > 0,
      sqlite3_bind_parameter_count(statement) == 0
    else { throw notAQuery }
    return reader
  }

  private var notAQuery: InstarError {
    failure("the query is not one SELECT statement without parameters")
  }

  private var tooSlow: InstarError {
    InstarError(
      .timeLimit, Self.what,
      cause: named("the query exceeded its limit of processor time: \(sql)"),
      next: "write a query that reads less, or add an index to the new version")
  }

  private func failure(_ cause: String) -> InstarError {
    InstarError(
      .invalidPlan, Self.what, cause: named("\(cause): \(sql)"),
      next: "correct the query in the plan's 'invariants', build the plugin again and install it")
  }

  private func named(_ cause: String) -> String {
    invariant.map { "invariant '\($0)': \(cause)" } ?? cause
  }

  private func limited<T>(
    _ db: Database, _ processorSeconds: Double?, _ body: (StatementReader) throws -> T
  ) throws(InstarError) -> T {
    do {
      let seconds = try processorSeconds ?? Self.seconds(for: db)
      return try GuardedConnection.onlyReading(db) {
        let limit = WorkLimit(of: db.sqliteConnection, processorSeconds: seconds)
        defer { limit.end() }
        return try body(prepared(db, limit))
      }
    } catch let error as DatabaseError {
      let cause = "the query failed: \(error.message ?? "\(error.extendedResultCode)")"
      switch error.resultCode {
      case .SQLITE_INTERRUPT: throw tooSlow
      case .SQLITE_NOMEM, .SQLITE_TOOBIG, .SQLITE_FULL:
        throw failure("the query needs more memory than it may use")
      case .SQLITE_CORRUPT:
        // No text of a query causes that: it met damage that the checks of soundness do not find.
        throw InstarError(
          .corruptStore, Self.what, cause: named("\(cause): \(sql)"),
          next: InstarError.adviceOnDisk)
      case .SQLITE_IOERR:
        throw InstarError(
          .unreadableStore, Self.what, cause: named("\(cause): \(sql)"),
          next: InstarError.adviceOnDisk)
      default: throw failure(cause)
      }
    } catch {
      throw InstarError(error, what: Self.what)
    }
  }

  private static let baseSeconds = 5.0
  private static let secondsPerMiB = 0.5

  /// Half of what all work on the store may use (`WorkBudget`): so the error names the query.
  private static func seconds(for db: Database) throws -> Double {
    let pages = try Double.fetchOne(db, sql: "PRAGMA page_count") ?? 0
    let size = try Double.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    return baseSeconds + secondsPerMiB * pages * size / 1_048_576
  }

  // MARK: Rows as text

  private static let longestText = 40
  private static let longestBlobBytes = 20

  private static func text(of rows: StatementReader) -> String {
    let values = (0..<rows.columnCount).map { rows.withValue($0, text(of:)) }
    return values.count == 1 ? values[0] : "(\(values.joined(separator: ", ")))"
  }

  private static func text(of value: RowValue) -> String {
    switch value {
    case .null: return "NULL"
    case .integer(let number): return "\(number)"
    case .real(let number):
      // SQL has no word for infinity: a number that is too large is read as it.
      return number.isFinite ? "\(number)" : number < 0 ? "-9e999" : "9e999"
    case .text(let bytes):
      let start = String(decoding: bytes.prefix(longestText * 4), as: UTF8.self)
      let isWhole = bytes.count <= longestText * 4 && start.count <= longestText
      let text = start.prefix(longestText).replacing("'", with: "''")
      return "'\(text)\(isWhole ? "" : "…")'"
    case .blob(let bytes):
      let isWhole = bytes.count <= longestBlobBytes
      return "X'\(Digest.hexadecimal(bytes.prefix(longestBlobBytes)))\(isWhole ? "" : "…")'"
    }
  }
}

/// What a query returned, as far as two answers are compared.
package struct QueryAnswer: Sendable, Hashable {
  /// How many values a row has.
  fileprivate let columnCount: Int
  /// How many rows.
  package fileprivate(set) var count: Int
  /// The digest of all values, in their order.
  fileprivate var digest: String
  /// The first rows as texts, at most `AffectedRows.keyLimit`.
  package fileprivate(set) var firstRows: [String]

  /// The value, where there is one row of one column.
  package var onlyValue: String? { count == 1 && columnCount == 1 ? firstRows.first : nil }
}
