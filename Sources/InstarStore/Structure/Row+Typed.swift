package import GRDB

extension Row {
  /// Returns the value of a column, or `nil` where it is NULL or not of the type.
  ///
  /// A store may hold any value in any column. GRDB's subscripts trap on a value that does not convert.
  package func get<Value: DatabaseValueConvertible>(_ index: Int) -> Value? {
    Value.fromDatabaseValue(self[index] as DatabaseValue)
  }
}
