/// What a change of schema does to rows of the app, from the least to the most.
package enum RowChange: Comparable, Sendable {
  /// Nothing: SQLite only writes the schema, and Instar the small tables that the format maintains.
  case none
  /// Nothing but the history: Instar updates or deletes rows of it.
  case updatesHistory
  /// No value of the app and no index: Instar updates or deletes what the format keeps in rows. A row grows by some
  /// bytes at most.
  case updatesBooks
  /// No value of the app: SQLite makes or removes indexes and tables, and Instar writes what the format keeps in rows.
  case keepsValues
  /// SQLite writes each row of a table without a column. Keys and all other values stay.
  case dropsColumn
  /// Statements of Instar write rows.
  case writes
}
