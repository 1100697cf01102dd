import InstarSchema
import InstarStore

/// SQL in the closures of a stage.
extension ModelContext {
  /// Runs an SQL statement on the clone that the stage migrates.
  ///
  /// ```swift
  /// let changed = try context.sql("UPDATE note SET title = trim(title) WHERE pages > \(10)")
  /// ```
  ///
  /// The context saves its pending changes first, so that the statement sees them. Models in memory then read their
  /// rows again. The app's triggers fire. A statement may read all tables, and write those of the app's models. It
  /// cannot change the schema, use PRAGMA or ATTACH, or control transactions.
  ///
  /// - Returns: The number of rows that the statement inserted, updated or deleted, without those of triggers.
  /// - Throws: `unsupported` outside the closures of a stage, or for a statement that a plan may not run; `sqlFailed`;
  ///   the errors of `save()`. The error names the statement. It ends the run, even if the closure catches it.
  @discardableResult
  public func sql(_ statement: SQL) throws -> Int {
    try failingStage {
      try perform(statement) { prepared, session in
        session.meter = meter
        defer { session.meter = nil }
        try session.run(prepared)
        return prepared.writtenTable == nil ? 0 : session.changedRowCount
      }
    }
  }

  /// Runs an SQL query on the clone that the stage migrates, as `sql(_:)` does, and returns its rows.
  ///
  /// ```swift
  /// for (title, pages) in try context.sql("SELECT title, pages FROM note", as: String.self, Int?.self) { … }
  /// ```
  ///
  /// - Parameter types: The types of the columns, in their order. All rows are in memory at once.
  /// - Throws: As `sql(_:)`; `unsupported` if the number of columns differs from that of the types; `stageFailed` if a
  ///   value is not of the type of its column.
  public func sql<each Value: PersistentAttribute>(
    _ query: SQL, as types: repeat (each Value).Type
  ) throws -> [(repeat each Value)] {
    try failingStage {
      try perform(query) { prepared, _ in
        let statement = prepared.statement
        var count: Int32 = 0
        for _ in repeat each types { count += 1 }
        guard statement.columnCount == count else {
          throw InstarError(
            .unsupported, "cannot read the rows of a query",
            cause: "\(statement.columnCount) columns for \(count) types - in `\(query.text)`",
            next: "pass one type for each column")
        }
        var rows: [(repeat each Value)] = []
        while try statement.step() {
          var column: Int32 = 0
          rows.append((repeat try Self.next(each types, &column, statement)))
        }
        return rows
      }
    }
  }

  private static func next<Value: PersistentAttribute>(
    _ type: Value.Type, _ column: inout Int32, _ statement: SQLStatement
  ) throws -> Value {
    defer { column += 1 }
    let slot = Slot(statement, at: column)
    if let value = Value(slot: slot) { return value }
    throw InstarError(
      .stageFailed, "cannot read the rows of a query",
      cause:
        "column \(column + 1) has \(slot.isNull ? "NULL" : "a value"), which is not a \(type) - in `\(statement.sql)`",
      next: "read it with its own type, or with an optional one")
  }

  private func perform<Result>(
    _ sql: SQL, _ body: (PlanStatement.Prepared, SQLSession) throws -> Result
  ) throws -> Result {
    let store = try storeForSQL(sql)
    try save()
    let statement = PlanStatement(sql.text, sql.arguments)
    if largeFetch != nil {
      // A statement that only reads leaves all rows as they were fetched.
      let written = try store.connection.perform { session in
        try statement.prepare(session, store.layout.format).allWrittenTables
      }
      readLargeFetches(in: written)
    }
    let (result, writes) = try store.connection.perform { session in
      let prepared = try statement.prepare(session, store.layout.format)
      guard prepared.writtenTable != nil else { return (try body(prepared, session), false) }
      guard store.allowsSave else { throw Self.readOnly() }
      return try session.watchingWrites(beforeWrite) {
        try session.beginLong()
        do {
          let result = try body(prepared, session)
          try session.commitLong()
          return (result, true)
        } catch {
          session.rollBackLong()
          throw error
        }
      }
    }
    if writes { try readAgain(store) }
    return result
  }

  private func storeForSQL(_ sql: SQL) throws -> ModelStore {
    guard closure != nil, stores.all.count == 1, let store = stores.all.first else {
      throw InstarError(
        .unsupported, "cannot run a statement of the plan",
        cause: closure == nil
          ? "only the contexts of a stage's closures run SQL - in `\(sql.text)`"
          : "the context has several stores - in `\(sql.text)`",
        next: "use models")
    }
    return store
  }
}

extension Slot {
  /// A value of the current row as SQLite stores it.
  init(_ statement: SQLStatement, at column: Int32) {
    switch statement.storageClass(at: column) {
    case .null: self = .null
    case .integer: self = .integer(statement.integer(at: column))
    case .real: self = .real(statement.real(at: column))
    case .text: self = .text(statement.text(at: column))
    case .blob: self = .blob(statement.data(at: column))
    }
  }
}
