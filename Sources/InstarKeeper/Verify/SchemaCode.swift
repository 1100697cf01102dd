package import GRDB
internal import InstarStore

/// What of a store is run by whoever uses it: its triggers, views and virtual tables.
///
/// A schema speaks of none of them, so none may come with a clone that the store did not have: a
/// plugin's trigger would go on working in the app.
package struct SchemaCode {
  private let objects: Set<Object>
  /// The table that each trigger watches.
  private let tablesOfTriggers: [String: String]

  private struct Object: Hashable {
    var name: String
    var sql: String
  }

  /// Everything that is neither a table nor an index by its statement. What the list calls it does
  /// not count: SQLite itself goes by the statement, and a worker can write the list.
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

  /// The name of a trigger, view or virtual table of the app's that is gone although what it speaks of is still there;
  /// `nil` where none is.
  ///
  /// - Parameter tables: those that there are now.
  func loss(since earlier: SchemaCode, tables: Set<String>) -> String? {
    let now = Set(objects.map(\.name))
    return earlier.objects.map(\.name).filter { name in
      guard !now.contains(name), !name.hasPrefix("Z_DA_") else { return false }
      return earlier.tablesOfTriggers[name].map { tables.contains($0) } ?? true
    }
    .min()
  }

  /// The name of what is new or changed since; `nil` where nothing is. What is gone is none.
  ///
  /// - Parameters:
  ///   - statements: what may be new: the triggers of Core Data's own making.
  ///   - renames: the names that tables and columns had and have. SQLite writes those that are
  ///     renamed anew wherever they stand, so that a text that differs in them alone is the same.
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
      // What is in a string is a value.
      if one.kind == .text || other.kind == .text { return false }
      let (old, new) = (one.name.lowercased(), other.name.lowercased())
      return !old.isEmpty && (old == new || renames.old.contains(old) && renames.new.contains(new))
    }
  }

  /// Whether there is a trigger of a derived attribute.
  var hasTriggers: Bool { objects.contains { $0.name.hasPrefix("Z_DA_") } }

  /// Whether there is a trigger of a derived attribute with this in its name.
  func hasObject(namedLike part: String) -> Bool {
    objects.contains { $0.name.hasPrefix("Z_DA_") && $0.name.contains(part) }
  }
}
