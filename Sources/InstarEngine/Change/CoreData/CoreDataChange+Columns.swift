import InstarSchema
import InstarStore

// MARK: Altering a table

extension CoreDataChangePlanner {
  mutating func changeColumns(_ pair: TablePair) {
    let (before, after) = (pair.before, pair.after)
    removeRows(pair)
    let sources = after.columns.map { source(of: $0, in: before) }
    let used = Set(sources.compactMap { $0?.name })
    for column in before.columns where !used.contains(column.name) {
      statements.append("ALTER TABLE \(after.name) DROP COLUMN \(column.name)")
    }
    rename(
      zip(sources, after.columns).compactMap { source, column in
        source.map { ($0.name, column.name) }
      }, in: after.name)
    for (source, column) in zip(sources, after.columns) where source == nil {
      statements.append(
        "ALTER TABLE \(after.name) ADD COLUMN \(column.name) \(column.declaration)")
    }
    for column in after.columns {
      guard let fill = fill(column, pair, table: after.name) else { continue }
      var condition = "\(column.name) IS NULL"
      if let rows = fill.rows { condition += " AND \(rows)" }
      if let guardCondition = fill.condition { condition += " AND \(guardCondition)" }
      statements.append(
        "UPDATE \(after.name) SET \(column.name) = \(fill.literal) WHERE \(condition)")
    }
  }

  /// Rows of entities that the new version does not have, in a table that it has.
  private mutating func removeRows(_ pair: TablePair) {
    guard let condition = rowCondition(pair) else { return }
    statements.append("DELETE FROM \(pair.after.name) WHERE NOT (\(condition))")
  }

  mutating func rename(_ moves: [(String, String)], in table: String) {
    for (from, to) in inOrder(moves) {
      statements.append("ALTER TABLE \(table) RENAME COLUMN \(from) TO \(to)")
    }
  }

  // MARK: Rows

  /// Which rows of the old table come along; `nil` where all do. They carry the old numbers.
  func rowCondition(_ pair: TablePair) -> String? {
    let all = old.entities.filter { $0.table == pair.before.name }
    guard all.count != pair.numbers.count else { return nil }
    return "Z_ENT IN (\(pair.numbers.map { "\($0.before)" }.joined(separator: ", ")))"
  }

  /// The default that rows without a value get.
  struct Fill {
    var literal: String
    /// Which rows, by the numbers they had before; `nil` for all.
    var rows: String?
    /// What must hold besides.
    var condition: String?
  }

  /// A required attribute that is new, was optional or had another type gets its default where rows have no value.
  func fill(_ column: CoreDataLayout.Column, _ pair: TablePair, table: String) -> Fill? {
    guard case .attribute(let entity, let name) = column.role,
      let mapping = difference.entities.first(where: { $0.new.name == entity }),
      let attribute = mapping.attributes.first(where: { $0.new.name == name }),
      !attribute.new.isOptional, let value = attribute.new.storedDefault,
      let numbers = new.entity(named: entity)?.numbers
    else { return nil }
    if let before = attribute.old, !before.isOptional, !before.isEphemeral,
      before.type.isStoredLike(attribute.new.type)
    {
      return nil
    }
    // An app of Apple's reads no collection but an archive.
    let archived =
      attribute.new.type == .codable && !new.conventions.isMadeByInstar
      ? ArchivedCollection.archive(ofEmpty: value) : nil
    var fill = Fill(literal: (archived ?? value).literal)
    let affected = pair.numbers.filter { numbers.contains($0.after) }
    if affected.count != pair.numbers.count {
      // The rows still carry the old numbers here.
      fill.rows = "Z_ENT IN (\(affected.map { "\($0.before)" }.joined(separator: ", ")))"
    }
    if attribute.old == nil, mapping.new.uniquenessConstraints.contains([name]) {
      // One default for many rows would not be unique: they wait for the plan's code.
      fill.condition = "(SELECT COUNT(*) FROM \(table)) = 1"
    }
    return fill
  }

  // MARK: Making a table anew

  /// All rows that come along, in the order of their keys, with final values and numbers.
  mutating func fillTable(_ pair: TablePair, from aside: String) {
    var columns: [String] = []
    var values: [String] = []
    for column in pair.after.columns {
      guard let value = value(of: column, pair, aside: aside) else { continue }
      columns.append(column.name)
      values.append(value)
    }
    let condition = rowCondition(pair).map { " WHERE \($0)" } ?? ""
    statements.append(
      "INSERT INTO \(pair.after.name) (\(columns.joined(separator: ", "))) "
        + "SELECT \(values.joined(separator: ", ")) FROM \(aside)\(condition) ORDER BY Z_PK")
  }

  /// `nil` where the column stays empty.
  private func value(
    of column: CoreDataLayout.Column, _ pair: TablePair, aside: String
  ) -> String? {
    let source = source(of: column, in: pair.before)?.name
    switch column.role {
    case .entityNumber:
      return Self.renumbered("Z_ENT", pair.numbers.filter { $0.before != $0.after })
    case .toOneEntityNumber:
      return source.map { Self.renumbered($0, movedNumbers) }
    case .toOneOrder(let entity, let name):
      if let source { return source }
      let role = CoreDataLayout.Column.Role.toOne(entity: entity, name: name)
      guard let key = pair.after.columns.first(where: { $0.role == role }),
        let before = self.source(of: key, in: pair.before)?.name
      else { return nil }
      return "CASE WHEN \(before) IS NOT NULL THEN "
        + "\(Self.place(among: before, orderedBy: "Z_PK")) END"
    case .attribute:
      guard let fill = fill(column, pair, table: aside) else { return source }
      var value = source.map { "ifnull(\($0), \(fill.literal))" } ?? fill.literal
      let conditions = [fill.rows, fill.condition].compactMap(\.self)
      if !conditions.isEmpty {
        value =
          "CASE WHEN \(conditions.joined(separator: " AND ")) THEN \(value) "
          + "ELSE \(source ?? "NULL") END"
      }
      return value
    case .primaryKey, .optimisticLock, .toOne, .ownerKey:
      return source
    }
  }

  mutating func fillJoinTable(_ pair: JoinPair, from aside: String) {
    var columns = [pair.after.column, pair.after.otherColumn]
    var values = [pair.before.column, pair.before.otherColumn]
    if let column = pair.after.orderColumn {
      columns.append(column)
      values.append(
        pair.before.orderColumn
          ?? Self.place(among: pair.before.otherColumn, orderedBy: pair.before.column))
    }
    if let column = pair.after.otherOrderColumn {
      columns.append(column)
      values.append(
        pair.before.otherOrderColumn
          ?? Self.place(among: pair.before.column, orderedBy: pair.before.otherColumn))
    }
    statements.append(
      "INSERT INTO \(pair.after.name) (\(columns.joined(separator: ", "))) "
        + "SELECT \(values.joined(separator: ", ")) FROM \(aside)")
  }

  /// The first in an order has 2048, as Core Data counts (section 4.4).
  static func place(among owner: String, orderedBy key: String) -> String {
    "2048 * ROW_NUMBER() OVER (PARTITION BY \(owner) ORDER BY \(key))"
  }
}
