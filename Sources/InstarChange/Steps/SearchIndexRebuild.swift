import InstarSchema
import InstarStore

/// Keeps the app's search indexes equal to their rows where a change of schema writes these rows: the app's triggers
/// keep them so, and no trigger fires on a change of schema.
///
/// Before the first step that writes rows of its table, an index is
/// - equal to these rows: its module builds it again when all rows are written; or
/// - different, as when the app's triggers leave rows out. Only the app can build it. A change that leaves the indexed
///   values as they are leaves the index alone; any other is refused.
final class SearchIndexRebuild {
  private struct AffectedIndex {
    let index: SearchIndex
    let table: String
    /// `nil` for an index that is equal to its rows.
    let differentRows: IndexedRows?
  }

  /// What an index is made from.
  private struct IndexedRows {
    let query: String
    let digest: String
  }

  private let session: SQLSession
  /// In lower case.
  private let views: Set<String>
  private var unaffected: [SearchIndex]
  private var affected: [AffectedIndex] = []

  init(_ session: SQLSession) throws {
    self.session = session
    unaffected = try SearchIndex.all(session.database)
    views = Set(
      try session.texts("SELECT name FROM sqlite_schema WHERE type = 'view'").map {
        $0.lowercased()
      })
  }

  /// Must be called for each step before the step, or any other that moves its table, runs.
  func prepare(for step: ChangeStep) throws {
    guard !unaffected.isEmpty, step.writesRows else { return }
    for (position, index) in unaffected.enumerated().reversed() where mayRead(index, step) {
      unaffected.remove(at: position)
      let rows = isEqualToRows(index) ? nil : try indexedRows(index, table: step.table)
      affected.append(AffectedIndex(index: index, table: step.table, differentRows: rows))
    }
  }

  /// Must be called when all rows have their final values.
  ///
  /// - Returns: the statements that were executed.
  /// - Throws: `unexpectedStructure` where only the app can build an index whose rows have changed.
  func finish() throws -> [ChangeStep] {
    var steps: [ChangeStep] = []
    for affected in affected.reversed() {
      let (name, table) = (affected.index.name, affected.table)
      if let rows = affected.differentRows {
        guard try digest(rows.query) == rows.digest else { throw Self.failure(name, table) }
        continue
      }
      let sqlName = SQLIdentifier.sql(name)
      let step = ChangeStep(
        "INSERT INTO \(sqlName) (\(sqlName)) VALUES ('rebuild')", "rebuilds search index \(name)",
        .index, rowChange: .writes, table: table,
        reason: "rebuilds the app's search indexes over \(table)")
      try session.run(step.sql)
      steps.append(step)
    }
    return steps
  }

  /// Whether the index may be made from what the step writes.
  private func mayRead(_ index: SearchIndex, _ step: ChangeStep) -> Bool {
    // An index over a view does not name the tables of the view.
    guard index.words.isDisjoint(with: views) else { return true }
    guard index.words.contains(step.table.lowercased()) else { return false }
    return step.updatedColumn.map { index.words.contains($0.lowercased()) } ?? true
  }

  private func isEqualToRows(_ index: SearchIndex) -> Bool {
    let name = SQLIdentifier.sql(index.name)
    // FTS5 reads the rows of another table only if the rank is 1.
    let check =
      switch index.module {
      case .fts4: "INSERT INTO \(name) (\(name)) VALUES ('integrity-check')"
      case .fts5: "INSERT INTO \(name) (\(name), rank) VALUES ('integrity-check', 1)"
      }
    do {
      try session.run(check)
      return true
    } catch {
      // Whatever the reason, such as a tokenizer of the app: the module cannot build what it cannot check.
      return false
    }
  }

  /// The rows as the index itself reads them; where its module cannot, the columns of the table that it names.
  private func indexedRows(_ index: SearchIndex, table: String) throws -> IndexedRows {
    let query = "SELECT rowid, * FROM \(SQLIdentifier.sql(index.name))"
    do {
      return IndexedRows(query: query, digest: try digest(query))
    } catch {
      let columns = try columnNames(of: table).filter { index.words.contains($0.lowercased()) }
      let query =
        "SELECT \(columns.map { SQLIdentifier.sql($0) }.joined(separator: ", ")) "
        + "FROM \(SQLIdentifier.sql(table))"
      // Neither the index nor its table can be read without the app.
      guard !columns.isEmpty, let digest = try? digest(query) else {
        throw Self.failure(index.name, table)
      }
      return IndexedRows(query: query, digest: digest)
    }
  }

  private func columnNames(of table: String) throws -> [String] {
    try session.texts(
      "SELECT name FROM pragma_table_info(\(AttributeValue.text(table).literal))")
  }

  private func digest(_ query: String) throws -> String {
    try ContentDigest.ofRows(session.database, query: query)
  }

  private static func failure(_ name: String, _ table: String) -> InstarError {
    InstarError(
      .unexpectedStructure, "cannot change the schema",
      cause:
        "the stage changes rows of \(table), and only the app can rebuild search index '\(name)' over "
        + "them: it did not contain exactly these rows before",
      next: "let the app drop '\(name)' before the migration, and create it again afterwards")
  }
}

extension ChangeStep {
  private var verb: String {
    String(sql.prefix { !$0.isWhitespace }).uppercased()
  }

  /// Whether the statement writes rows of its table.
  fileprivate var writesRows: Bool { ["INSERT", "UPDATE", "DELETE"].contains(verb) }

  /// The only column of the table that the statement writes; `nil` where it may write several, or rowids.
  fileprivate var updatedColumn: String? { verb == "UPDATE" ? column : nil }
}
