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
    let statement = try statement(sql)
    defer { statement.reset() }
    var texts: [String] = []
    while try statement.step() { texts.append(statement.text(at: 0)) }
    return texts
  }

  /// A table, its indexes and its triggers, in the order of their creation.
  func objects(of table: String) throws(InstarError) -> [SchemaObject] {
    let statement = try statement(
      "SELECT type, name, sql FROM sqlite_schema WHERE lower(tbl_name) = lower(?) ORDER BY rowid")
    statement.bind(table, at: 1)
    var objects: [SchemaObject] = []
    while try statement.step() {
      objects.append(
        SchemaObject(
          type: statement.text(at: 0), name: statement.text(at: 1),
          sql: statement.storageClass(at: 2) == .null ? nil : statement.text(at: 2)))
    }
    statement.reset()
    return objects
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
