internal import GRDB
internal import Synchronization

/// Assigns 64-bit keys to the rows of tables that have no rowid.
///
/// Models have one 64-bit key in memory. Rows of a table `WITHOUT ROWID` have a primary key instead, so each primary
/// key that is read gets a number, which holds while the connection is open and is never stored. The statements of the
/// SDK call two functions:
///
/// - `instar_key(table, value…)` returns the number of a primary key, or NULL where one of the values is NULL;
/// - `instar_key_part(table, index, key)` returns one of the values.
///
/// Costs a few hundred bytes per row that was read.
final class RowKeys: Sendable {
  static let key = "instar_key"
  static let part = "instar_key_part"

  /// Returns the key of the columns of one row.
  static func reading(_ table: String, _ columns: [String]) -> RowExpression {
    var parts = ["\(key)(\(table), "] + columns.map { "\($0), " }
    parts[parts.count - 1] = "\(columns.last ?? ""))"
    return RowExpression(parts: parts)
  }

  private struct Table {
    var keys: [[DatabaseValue]: Int64] = [:]
    var values: [[DatabaseValue]] = []
  }

  private let tables = Mutex<[String: Table]>([:])

  func register(_ db: Database) {
    db.add(
      function: DatabaseFunction(Self.key) { [self] arguments in
        guard let name = arguments.first.flatMap(String.fromDatabaseValue) else { return nil }
        let values = Array(arguments.dropFirst())
        if values.contains(where: \.isNull) { return nil }
        return number(of: values, name)
      })
    db.add(
      function: DatabaseFunction(Self.part, argumentCount: 3) { [self] arguments in
        guard let name = String.fromDatabaseValue(arguments[0]),
          let index = Int.fromDatabaseValue(arguments[1]),
          let key = Int.fromDatabaseValue(arguments[2])
        else { return nil }
        return value(name, index, key)
      })
  }

  /// Moves the numbers of tables to their new names, all at once, because two tables may swap names.
  func rename(_ names: [(old: String, new: String)]) {
    tables.withLock { tables in
      let moved = names.map { (new: $0.new, table: tables.removeValue(forKey: $0.old)) }
      for (new, table) in moved { tables[new] = table }
    }
  }

  private func number(of values: [DatabaseValue], _ name: String) -> Int64 {
    tables.withLock { tables in
      if let known = tables[name]?.keys[values] { return known }
      var table = tables.removeValue(forKey: name) ?? Table()
      table.values.append(values)
      let key = Int64(table.values.count)
      table.keys[values] = key
      tables[name] = table
      return key
    }
  }

  private func value(_ name: String, _ index: Int, _ key: Int) -> DatabaseValue? {
    tables.withLock { tables in
      guard let values = tables[name]?.values, values.indices.contains(key - 1),
        values[key - 1].indices.contains(index)
      else { return nil }
      return values[key - 1][index]
    }
  }
}
