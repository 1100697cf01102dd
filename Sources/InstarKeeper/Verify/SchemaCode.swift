package import GRDB
internal import InstarStore

/// The triggers, views and virtual tables of a store, which run in every process that uses it.
///
/// A schema describes none of them, so a clone may have none that the store did not have: a trigger of a plugin would
/// run in the app.
package struct SchemaCode {
  private let objects: Set<Object>
  /// The table that each trigger watches.
  private let tablesOfTriggers: [String: String]

  private struct Object: Hashable {
    var name: String
    var sql: String
  }

  /// Reads everything whose statement creates neither a table nor an index. The column `type` does not count: SQLite
  /// uses the statement, and a worker can write the column.
  package init(_ db: Database) throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT name, CAST(sql AS TEXT) FROM sqlite_master
        WHERE sql IS NOT NULL AND sql NOT GLOB 'CREATE TABLE *' AND sql NOT GLOB 'CREATE INDEX *'
          AND sql NOT GLOB 'CREATE UNIQUE INDEX *'
        """)
    objects = Set(
      rows.map { Object(name: $0.get(0) ?? "", sql: $0.get(1) ?? "") })
    let triggers = try Row.fetchAll(
      db, sql: "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'")
    tablesOfTriggers = Dictionary(
      triggers.map { ($0.get(0) ?? "", $0.get(1) ?? "") }, uniquingKeysWith: { first, _ in first })
  }

  /// Returns the name of a trigger, view or virtual table of the app that is gone although its table still exists.
  ///
  /// - Parameter tables: The tables after the run.
  func loss(since earlier: SchemaCode, tables: Set<String>) -> String? {
    let now = Set(objects.map(\.name))
    return earlier.objects.map(\.name).filter { name in
      guard !now.contains(name), !name.hasPrefix("Z_DA_") else { return false }
      return earlier.tablesOfTriggers[name].map { tables.contains($0) } ?? true
    }
    .min()
  }

  /// Returns the name of an object that is new or changed. Removed objects do not count.
  ///
  /// - Parameters:
  ///   - statements: The statements that may be new: those of Core Data's own triggers.
  ///   - renames: The old and new names of tables and columns. SQLite rewrites renamed ones in the statements of other
  ///     objects, so statements that differ only in these are equal.
  func addition(
    to earlier: SchemaCode, allowing statements: Set<String>,
    renames: (old: Set<String>, new: Set<String>)
  ) -> String? {
    let known = Dictionary(
      earlier.objects.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    return objects.subtracting(earlier.objects).filter { object in
      if statements.contains(object.sql) { return false }
      guard let before = known[object.name] else { return true }
      return !Self.isSame(before.sql, object.sql, renames)
    }
    .map(\.name).min()
  }

  private static func isSame(
    _ old: String, _ new: String, _ renames: (old: Set<String>, new: Set<String>)
  ) -> Bool {
    func tokens(_ sql: String) -> [SQLToken] {
      SQLToken.tokens(of: sql).filter { $0.kind != .space }
    }
    let (before, after) = (tokens(old), tokens(new))
    guard before.count == after.count else { return false }
    return zip(before, after).allSatisfy { one, other in
      if one.text == other.text { return true }
      // The contents of a string are a value.
      if one.kind == .text || other.kind == .text { return false }
      let (old, new) = (one.name.lowercased(), other.name.lowercased())
      return !old.isEmpty && (old == new || renames.old.contains(old) && renames.new.contains(new))
    }
  }

  /// Whether the store has a trigger of a derived attribute.
  var hasTriggers: Bool { objects.contains { $0.name.hasPrefix("Z_DA_") } }

  /// Whether the store has a trigger of a derived attribute whose name contains `part`.
  func hasObject(namedLike part: String) -> Bool {
    objects.contains { $0.name.hasPrefix("Z_DA_") && $0.name.contains(part) }
  }
}
