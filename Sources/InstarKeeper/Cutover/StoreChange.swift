internal import GRDB
internal import InstarStore

/// The change that made the clone, as it can be made in the store itself.
///
/// Where the stages write no value of the app, and the schema decides all their statements
/// (`ExpectedSchema.statements`), the same statements turn the store into the clone. SQLite then writes a few pages. To
/// copy the clone into the store, it writes every page twice.
struct StoreChange {
  /// The statements of all stages, in order.
  let statements: [String]
  let stamp: StoreStamp
  /// The tables in which the format keeps its books, by their names in the schema.
  let tables: [String]

  /// Makes the change in the open transaction of a locked store, which has the content that was cloned.
  ///
  /// - Returns: Whether the store is as the clone then. Else the transaction must be rolled back.
  /// - Throws: The error of a statement.
  func make(in store: Database, like clone: Database) throws -> Bool {
    for statement in statements { try store.runFirstStatement(of: statement) }
    try stamp.apply(store)
    return try questions.allSatisfy { try hasEqualRows($0, store, clone) }
  }

  /// Reads one row at a time: a hostile store may have many in the tables of the format.
  private func hasEqualRows(_ question: String, _ store: Database, _ clone: Database) throws -> Bool
  {
    do {
      let left = try Row.fetchCursor(store, sql: question)
      let right = try Row.fetchCursor(clone, sql: question)
      while let row = try left.next() {
        guard try right.next() == row else { return false }
      }
      return try right.next() == nil
    } catch let error as DatabaseError where error.resultCode == .SQLITE_TOOBIG {
      return false
    }
  }

  /// What is compared. The same statements wrote all else in both.
  private var questions: [String] {
    [
      "SELECT type, name, tbl_name, sql FROM sqlite_schema", "PRAGMA user_version",
    ] + tables.map { "SELECT * FROM \(SQLIdentifier.sql($0))" }
  }
}
