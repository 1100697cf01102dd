/// How a change of schema orders the columns of a table. In stores that Instar created it always adds columns at the
/// end.
@frozen
public enum ColumnOrder: String, Sendable, Codable, Hashable {
  /// The order of a new store, as Core Data's migration leaves it. A table whose columns change is rebuilt, which
  /// takes time in proportion to its rows.
  case asNew
  /// New columns are last. Adding and renaming columns takes the same time for any number of rows. Apps that read
  /// columns by name, as Core Data does, see no difference.
  case asAdded
}
