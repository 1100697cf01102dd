import InstarSchema
import InstarStore

/// Changes a store from one plain layout to another, on an open connection.
///
/// Statements depend on how the app wrote its tables: a table is altered from its own text, and everything that no
/// model describes stays.
///
/// `ADD`, `RENAME` and `DROP COLUMN` are preferred, because their cost does not depend on the number of rows. A table
/// is rebuilt only where SQLite cannot alter it (see `TableRebuild`). Order, and why:
/// 1. Drop tables without a successor, which frees their names.
/// 2. Rename tables, then columns, by `ALTER TABLE`: SQLite then rewrites the triggers, views, indexes and foreign
///    keys that name them. Columns that will be dropped get a temporary name first where another column takes theirs.
/// 3. Drop indexes that the new version does not have, and those over columns that will be dropped.
/// 4. Drop, add and change columns, in place or by a rebuild. A column that changes its type is changed, so that
///    everything of the app that names it stays.
/// 5. Create new tables, then indexes, over the final values: those that the version describes, and those that no model
///    describes and that were dropped with a column whose name another column has now.
struct PlainSchemaChange {
  let old: PlainLayout
  let new: PlainLayout
  let difference: SchemaDifference
  let carriedValues: CarriedValues

  /// Runs the change in the open transaction. Foreign keys must be off.
  ///
  /// - Returns: the statements that were executed, and what each temporary name in them stands for.
  func run(
    _ session: SQLSession, _ searchIndexes: SearchIndexRebuild
  ) throws -> (steps: [ChangeStep], asideNames: [String: String]) {
    var work = PlainChangeSteps(change: self, session: session, searchIndexes: searchIndexes)
    do {
      try work.run()
    } catch let error as InstarError {
      throw error.naming(work.asideNames)
    }
    return (work.steps, work.asideNames)
  }
}

extension InstarError {
  /// Returns the error with the names that people know, in place of temporary ones.
  func naming(_ asideNames: [String: String]) -> InstarError {
    var error = self
    // Longer names first: one may begin like another.
    for (name, original) in asideNames.sorted(by: { $0.key.count > $1.key.count }) {
      error.cause = error.cause.replacing(name, with: original)
    }
    return error
  }
}

extension PlainSchemaChange {
  /// A table of the old version, the table it becomes, and the source of each column.
  struct TablePair {
    let old: PlainLayout.Table
    let new: PlainLayout.Table
    /// For each column of the new table, the column of the old table that it gets its values from; `nil` for none.
    let sources: [PlainLayout.Column?]
    /// The columns of the new table whose values have to be converted, by name.
    var converted: Set<String> = []

    var removed: [PlainLayout.Column] {
      let used = Set(sources.compactMap { $0?.name })
      return old.columns.filter { !used.contains($0.name) }
    }

    var kept: [(old: PlainLayout.Column, new: PlainLayout.Column)] {
      zip(sources, new.columns).compactMap { source, column in source.map { ($0, column) } }
    }

    var added: [PlainLayout.Column] {
      zip(sources, new.columns).filter { $0.0 == nil }.map(\.1)
    }
  }
}
