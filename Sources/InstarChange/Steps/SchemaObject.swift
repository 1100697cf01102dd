import InstarSchema
import InstarStore

/// A row of `sqlite_schema`.
struct SchemaObject {
  var type: String
  var name: String
  var sql: String?
}

extension SQLSession {
  /// The first column of all rows.
  func texts(_ sql: String) throws(InstarError) -> [String] {
    try rows(sql) { $0.text(at: 0) }
  }

  /// A table, its indexes and its triggers, in the order of their creation.
  func objects(of table: String) throws(InstarError) -> [SchemaObject] {
    try rows(
      "SELECT type, name, sql FROM sqlite_schema WHERE lower(tbl_name) = lower(?) ORDER BY rowid",
      bind: table
    ) {
      SchemaObject(
        type: $0.text(at: 0), name: $0.text(at: 1),
        sql: $0.storageClass(at: 2) == .null ? nil : $0.text(at: 2))
    }
  }

  /// The name, with a number appended where an object of the store has it already.
  func freeName(_ name: String) throws(InstarError) -> String {
    var candidate = name
    var number = 1
    while try integer(
      "SELECT 1 FROM sqlite_schema "
        + "WHERE lower(name) = lower(\(AttributeValue.text(candidate).literal))") != nil
    {
      number += 1
      candidate = "\(name)_\(number)"
    }
    return candidate
  }
}
