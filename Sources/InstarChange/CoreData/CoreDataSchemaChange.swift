import InstarSchema
import InstarStore

/// The SQL that changes a store from one layout to another. It keeps every row that both versions have, and no
/// statement depends on the content of rows.
///
/// `ADD COLUMN` and `RENAME COLUMN` are preferred, because their cost does not depend on the number of rows. Where the
/// columns would end in another order than in a new store and that matters (see `TableStyle`), the table is rebuilt, as
/// Core Data rebuilds its own (Core Data layout, section 10). Each table is rebuilt once, by one `INSERT … SELECT`.
///
/// Order, and why:
/// 0. End links to rows of removed entities, while these rows still exist.
/// 1. Drop indexes that do not stay: SQLite refuses to drop a column that an index uses.
/// 2. Move tables that are rebuilt aside and drop tables without a successor, which frees their names.
/// 3. Rename tables, then columns, after dropping columns, which frees their names. A name that another rename still
///    holds is reached through a temporary name.
/// 4. Add columns and tables, and fill required values. Rebuilt tables get their rows, with the numbers of step 5.
/// 5. Rewrite entity numbers wherever a row has one (Core Data layout, section 5), and write them where a destination
///    got its first sub-entity.
/// 6. Store the links of to-one relationships that became to-many. They were copied before step 2.
/// 7. Create new indexes last, over the final values.
struct CoreDataSchemaChange {
  let steps: [ChangeStep]
  /// The old names of the tables that are rebuilt.
  let rebuiltTables: Set<String>

  /// How a table gets other columns.
  enum TableStyle: Sendable {
    /// By the cheapest statements. Added columns come last.
    case altered
    /// In the column order and with the SQL text of a new store.
    case fresh
  }

  /// - Parameter statementsOfStore: The statements that created the store's objects, by name. A partial index whose
  ///   condition the model does not know is created by its own.
  init(
    from old: CoreDataLayout, to new: CoreDataLayout, _ difference: SchemaDifference,
    style: TableStyle = .altered, statementsOfStore: [String: String] = [:]
  ) {
    var collected = CoreDataChangeSteps(
      old: old, new: new, difference: difference, style: style,
      statementsOfStore: statementsOfStore)
    collected.plan()
    steps = collected.steps
    rebuiltTables = collected.rebuiltTables
  }
}
