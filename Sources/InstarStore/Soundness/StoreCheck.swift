internal import CDatabase
package import GRDB
internal import InstarSchema

/// Checks whether a store is sound: what SQLite's `integrity_check` finds, for an eighth of its time, and what it
/// leaves out on a connection that only reads.
///
/// - `quick_check` reads every page and row, but not what the indexes contain.
/// - `IndexCheck` compares each index with its table.
/// - `ConstraintCheck` evaluates CHECK constraints and stored generated columns.
package enum StoreCheck {
  /// The most findings that an error lists.
  static let findingLimit = 5

  /// - Parameters:
  ///   - subject: "the store", "the clone".
  ///   - path: The store's path, for what to do next. With it, an error about pages or indexes proves that the store
  ///     is damaged. `nil` for a clone, which is thrown away.
  ///   - lists: Columns to sum while their tables are read.
  ///   - checksIndexes: Called after `quick_check`. Returns `false` where the indexes are checked in another file with
  ///     the same pages, or by another thread.
  /// - Returns: The sums; none where `checksIndexes` returned `false`.
  /// - Throws: `corruptStore` with the first findings; `unsupported` where an index has a collation that only the app
  ///   has; the database's error, or that of `checksIndexes`. Nothing is written.
  @discardableResult
  package static func requireSound(
    _ db: Database, _ subject: String, path: String? = nil, summing lists: Set<ColumnList> = [],
    checksIndexes: () throws -> Bool = { true }
  ) throws -> ColumnSums {
    // First: SQLite's check fails where it does not know a collation.
    let tables = try proving(path) { try IndexedTable.all(db) }
    try requireQuickCheck(db, subject, path: path)
    let sums =
      try checksIndexes()
      ? requireIndexes(db, tables, subject, path: path, summing: lists) : ColumnSums()
    try requireConstraints(db, subject, path: path)
    return sums
  }

  /// The tables whose indexes a check reads, by name.
  package enum Tables {
    case all
    case only([String])
    case except([String])

    fileprivate func contains(_ table: IndexedTable) -> Bool {
      switch self {
      case .all: true
      case .only(let names): names.contains(table.name)
      case .except(let names): !names.contains(table.name)
      }
    }
  }

  /// Compares each index with its table, and checks its order.
  ///
  /// - Parameters:
  ///   - tables: Those with the indexes to check.
  ///   - lists: Columns to sum while their tables are read.
  /// - Throws: as `requireSound`.
  @discardableResult
  package static func requireIndexes(
    _ db: Database, _ subject: String, path: String?, of tables: Tables = .all,
    summing lists: Set<ColumnList> = []
  ) throws -> ColumnSums {
    try requireIndexes(
      db, IndexedTable.all(db).filter(tables.contains), subject, path: path, summing: lists)
  }

  private static func requireIndexes(
    _ db: Database, _ tables: [IndexedTable], _ subject: String, path: String?,
    summing lists: Set<ColumnList>
  ) throws -> ColumnSums {
    var sums = ColumnSums()
    try proving(path) {
      try require(
        IndexCheck.findings(db, tables, summing: lists, into: &sums),
        "the indexes of \(subject) do not match its tables", subject,
        next: path.map {
          "stop the app, then rebuild the indexes: sqlite3 \(CommandText.quoted($0)) REINDEX"
        })
    }
    return sums
  }

  /// Whether no index has a condition, an expression or a column that SQLite computes. Then the same bytes are the same
  /// entries under any schema.
  package static func indexesStoredValues(_ db: Database) -> Bool {
    // Where the indexes cannot be read, nothing is known of them, and their check says why.
    guard let tables = try? IndexedTable.all(db) else { return false }
    return tables.allSatisfy { $0.tree != nil && $0.indexes.allSatisfy(\.hasStoredValues) }
  }

  /// Evaluates the CHECK constraints and stored generated columns of all rows.
  ///
  /// - Throws: as `requireSound`.
  package static func requireConstraints(
    _ db: Database, _ subject: String, path: String? = nil
  ) throws {
    try require(
      ConstraintCheck.findings(db), "rows of \(subject) violate constraints of their tables",
      subject, next: path == nil ? nil : "correct these rows in the app")
  }

  /// Reads every page and row, but neither indexes nor CHECK constraints: those may need functions of the app, and rows
  /// that violate them are not damage.
  ///
  /// - Parameter table: Read only this table; with `sqlite_schema` also the list of free pages.
  /// - Throws: `corruptStore` with SQLite's first findings.
  package static func requireQuickCheck(
    _ db: Database, _ subject: String, path: String? = nil, of table: String? = nil
  ) throws {
    let argument = table.map(SQLIdentifier.sql) ?? String(findingLimit)
    try requireCheck(db, "quick_check", argument, subject, path: path)
  }

  /// Has SQLite seek every row in every index, which `requireSound` replaces by a comparison of sums.
  ///
  /// - Throws: as `requireSound`.
  package static func requireIntegrity(
    _ db: Database, _ subject: String, path: String? = nil
  ) throws {
    try requireCheck(db, "integrity_check", String(findingLimit), subject, path: path)
  }

  private static func requireCheck(
    _ db: Database, _ pragma: String, _ argument: String, _ subject: String, path: String?
  ) throws {
    // On a connection that only reads SQLite evaluates none in any case.
    try db.runWithoutRows("PRAGMA ignore_check_constraints = ON")
    // It fails for no open connection.
    defer { try? db.runWithoutRows("PRAGMA ignore_check_constraints = OFF") }
    try proving(path) {
      try require(
        findings(db, pragma, argument), "SQLite's \(pragma) reports damage", subject,
        next: path.map { CommandText.restoring($0) })
    }
  }

  /// What SQLite's check of the pages finds.
  ///
  /// - Throws: `SQLITE_IOERR_READ` or `SQLITE_NOMEM` where SQLite could not read a page. SQLite lists such a page, and
  ///   what it then misses, as if the file were damaged.
  static func findings(
    _ db: Database, _ pragma: String, _ argument: String
  ) throws -> [String] {
    let failedReads = instar_failed_reads()
    let findings = try db.texts("PRAGMA \(pragma)(\(argument))")
    if findings == ["ok"] { return [] }
    guard instar_failed_reads() == failedReads else {
      throw DatabaseError(resultCode: .SQLITE_IOERR_READ, message: "disk I/O error")
    }
    let lacksMemory = findings.contains { finding in
      [ResultCode.SQLITE_NOMEM, .SQLITE_IOERR_NOMEM].contains {
        finding.hasSuffix("unable to get the page. error code=\($0.rawValue)")
      }
    }
    guard !lacksMemory else {
      throw DatabaseError(resultCode: .SQLITE_NOMEM, message: "out of memory")
    }
    return findings
  }

  /// Calls `check`, whose errors prove that the store is damaged if it finds damage, or if SQLite meets any.
  ///
  /// - Parameter path: The store's path; `nil` for a clone, whose damage proves nothing.
  private static func proving<T>(_ path: String?, _ check: () throws -> T) throws -> T {
    do {
      return try check()
    } catch let error as InstarError where path != nil && error.code == .corruptStore {
      throw error.provingDamage()
    } catch let error as DatabaseError where path != nil && error.provesDamage {
      throw InstarError(error, what: "cannot verify the store", store: path).provingDamage()
    }
  }

  private static func require(
    _ findings: [String], _ cause: String, _ subject: String, next: String?
  ) throws(InstarError) {
    guard !findings.isEmpty else { return }
    // SQLite puts a headline before its first finding.
    let lines = findings.flatMap { $0.split(separator: "\n") }
      .filter { !$0.hasPrefix("*** in database") }
    throw InstarError(
      .corruptStore, "cannot verify \(subject)",
      cause: "\(cause): " + lines.prefix(findingLimit).joined(separator: "; "),
      next: next)
  }
}

extension DatabaseError {
  /// Whether SQLite met pages that no SQLite writes. A schema that it cannot parse has the same code, and a later
  /// version may have written that.
  var provesDamage: Bool {
    resultCode == .SQLITE_CORRUPT && extendedResultCode != .SQLITE_CORRUPT_VTAB
      && message?.hasPrefix("malformed database schema") != true
  }
}
