internal import GRDB
internal import InstarChange
internal import InstarSchema
internal import InstarStore

/// Finds out whether code of a plan gave a new attribute a value in each row that lost that of the attribute of the
/// same name. Schemas do not tell it, so the clone is compared with the store, row by row.
struct ReplacedValues {
  let path: MigrationPath
  let clone: Database
  /// Of the last version.
  let layout: any StoreLayout
  let store: EarlierStore

  /// Returns what became of removed values, one sentence each.
  func sentences(_ removed: RemovedValues) throws -> [String] {
    try removed.values.map { try sentence($0) ?? $0.sentence(along: path) }
  }

  /// - Returns: `nil` where no code can have written values, or where nobody can tell which it wrote.
  private func sentence(_ values: RemovedValues.Values) throws -> String? {
    let ending = values.ending
    guard !path.isLightweight, ending.retyped == nil,
      let name = path.successor(of: ending), let new = layout.entity(named: name),
      let column = new.attributes.first(where: { $0.attribute.name == ending.attribute }),
      let empty = Self.emptyCondition(column),
      let old = store.layout.entity(named: ending.entity)
    else { return nil }
    let rows = try count(clone, of: new)
    var earlier = 0
    try store.read { earlier = try count($0, of: old) }
    guard rows >= earlier, path.keepsKeys(of: ending.entity) else {
      let filled = try count(clone, of: new, where: ["NOT (\(empty))"])
      return
        "drops \(values.text); the new attribute of this name in version \(path.to) has values "
        + "in \(filled) of \(rows) rows"
    }
    let replaced = try countOfRows(with: values, of: old, where: "NOT (\(empty))", in: new)
    let left = try countOfRows(with: values, of: old, where: empty, in: new)
    let gone = values.count - replaced - left
    if left == 0 {
      let part = gone == 0 ? "" : "\(replaced) of "
      let rest = gone == 0 ? "" : "; the rows of the other \(gone) are gone"
      return "replaces \(part)\(values.text) with values of the plan's code\(rest)"
    }
    let absence = column.attribute.storedDefault == nil ? "no value" : "no value, or its default"
    return
      "drops \(values.text); in \(left) of these rows the new attribute of this name in version "
      + "\(path.to) has \(absence)" + (gone == 0 ? "" : ", and \(gone) of these rows are gone")
  }

  /// The condition for rows in which no code wrote the attribute; `nil` where its default may be stored in several
  /// ways.
  private static func emptyCondition(_ column: EntityLayout.AttributeColumn) -> String? {
    let name = column.column.name
    guard let value = column.attribute.storedDefault else { return "\(name) IS NULL" }
    guard column.attribute.type != .codable, !column.attribute.mayBeExternal else { return nil }
    let literal = (column.column.encoding?.written(value) ?? value).literal
    return "\(name) IS NULL OR \(name) IS \(literal)"
  }

  private func count(
    _ db: Database, of entity: EntityLayout, where more: [String] = []
  ) throws -> Int {
    let conditions = [entity.rowCondition].compactMap(\.self) + more
    return try db.integer(
      "SELECT count(*) FROM \(entity.table)"
        + (conditions.isEmpty ? "" : " WHERE \(conditions.joined(separator: " AND "))")) ?? 0
  }

  /// How many rows had a value, are still there, and meet a condition in the clone.
  private func countOfRows(
    with values: RemovedValues.Values, of old: EntityLayout, where condition: String,
    in new: EntityLayout
  ) throws -> Int {
    let conditions = [new.rowCondition, "(\(condition))"].compactMap(\.self)
    let literals = new.key.columns.map { "quote(\($0))" }.joined(separator: " || ', ' || ")
    let keys = try String.fetchCursor(
      clone,
      sql: "SELECT \(literals) FROM \(new.table) WHERE \(conditions.joined(separator: " AND "))")
    var count = 0
    try store.read { db in
      var some: [String] = []
      func look() throws {
        guard !some.isEmpty else { return }
        let own =
          "(\(old.key.columns.joined(separator: ", "))) IN (VALUES \(some.joined(separator: ", ")))"
        count +=
          try db.integer(
            "SELECT count(*) FROM \(old.table) WHERE "
              + (values.conditions + [own]).joined(separator: " AND ")) ?? 0
        some = []
      }
      while let key = try keys.next() {
        some.append("(\(key))")
        if some.count == Self.keysAtOnce { try look() }
      }
      try look()
    }
    return count
  }

  private static let keysAtOnce = 500
}

extension MigrationPath {
  /// Whether the rows of an entity of the first version keep their keys in all stages.
  fileprivate func keepsKeys(of entity: String) -> Bool {
    var name = entity
    for (stage, difference) in zip(schemaStages, differences) {
      guard
        let pair = stage.entityLayoutPairs(difference).first(where: { $0.old.name == name }),
        pair.keepsKeys, let new = pair.new, new.key.columns.count == pair.old.key.columns.count
      else { return false }
      name = new.name
    }
    return true
  }
}
