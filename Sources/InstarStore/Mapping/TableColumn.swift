/// A column of a table, as it stands in SQL.
package struct TableColumn: Sendable, Hashable {
  package var table: String
  package var column: String
}
