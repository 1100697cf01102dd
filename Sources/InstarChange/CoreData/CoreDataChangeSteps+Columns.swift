import InstarSchema
import InstarStore

// MARK: Altering a table

extension CoreDataChangeSteps {
  mutating func changeColumns(_ pair: TablePair) {
    let (before, after) = (pair.before, pair.after)
    removeRows(pair)
    let sources = after.columns.map { source(of: $0, in: before) }
    let used = Set(sources.compactMap { $0?.name })
    for column in before.columns where !used.contains(column.name) {
      let property = column.role.property
      let entity = property.map { difference.newName(of: $0.entity) }
      let mapping = difference.entities.first { $0.new.name == entity }
      add(
        "ALTER TABLE \(after.name) DROP COLUMN \(column.name)", "drops column \(column.name)",
        .destructive, rowChange: .dropsColumn, table: after.name, column: column.name,
        entity: entity,
        property: property.map { mapping?.newName(of: $0.name) ?? $0.name })
    }
    rename(
      zip(sources, after.columns).compactMap { source, column in
        source.map { ($0.name, column.name) }
      }, in: after.name, after.columns)
    for (source, column) in zip(sources, after.columns) where source == nil {
      add(
        "ALTER TABLE \(after.name) ADD COLUMN \(column.name) \(column.declaration)",
        "adds column \(column.name)", .additive, rowChange: .none, table: after.name,
        column: column)
    }
    for column in after.columns {
      guard let source = sourceRoles[column.role]?.property,
        let rows = losingRows(column, pair)
      else { continue }
      add(
        "UPDATE \(after.name) SET \(column.name) = NULL "
          + "WHERE \(column.name) IS NOT NULL AND \(rows)",
        "removes the values of rows that no longer have the property", .destructive,
        rowChange: .writes, table: after.name, column: column.name,
        entity: difference.newName(of: source.entity),
        property: source.name)
    }
    for column in after.columns {
      guard let fill = fill(column, pair, table: after.name) else { continue }
      var condition = "\(column.name) IS NULL"
      if let rows = fill.rows { condition += " AND \(rows)" }
      if let guardCondition = fill.condition { condition += " AND \(guardCondition)" }
      add(
        "UPDATE \(after.name) SET \(column.name) = \(fill.literal) WHERE \(condition)",
        "fills empty values of column \(column.name)", .additive, rowChange: .writes,
        table: after.name, column: column)
    }
  }

  /// Deletes the rows of entities that the new version does not have from a table that it has.
  private mutating func removeRows(_ pair: TablePair) {
    guard let numbers = removedNumbers(pair) else { return }
    let removed = difference.removedEntities.map(\.name).filter {
      old.entity(named: $0)?.table == pair.before.name
    }
    add(
      "DELETE FROM \(pair.after.name) WHERE Z_ENT IN (\(numbers))",
      "deletes rows of removed entities",
      .destructive, rowChange: .writes, table: pair.after.name,
      entity: removed.count == 1 ? removed[0] : nil)
  }

  mutating func rename(
    _ moves: [(String, String)], in table: String, _ columns: [CoreDataLayout.Column] = []
  ) {
    for (from, to) in RenameOrder.of(moves, temporaryName: { _ in temporaryName() }) {
      let property = columns.first { $0.name == to }?.role.property
      add(
        "ALTER TABLE \(table) RENAME COLUMN \(from) TO \(to)", "renames column \(from) to \(to)",
        .rename, rowChange: .none, table: table, column: to, entity: property?.entity,
        property: property?.name)
    }
  }

  // MARK: Rows

  /// The condition for the rows of the old table that are kept, by their old numbers; `nil` where all are. Rows of no
  /// entity are kept, with any number or none.
  func rowCondition(_ pair: TablePair) -> String? {
    removedNumbers(pair).map { "ifnull(Z_ENT, 0) NOT IN (\($0))" }
  }

  /// The numbers of the entities of the old table whose rows are removed; `nil` where none are.
  private func removedNumbers(_ pair: TablePair) -> String? {
    let kept = Set(pair.numbers.map(\.before))
    let removed = old.entities.filter { $0.table == pair.before.name }.map(\.number)
      .filter { !kept.contains($0) }
    return removed.isEmpty ? nil : removed.map(String.init).joined(separator: ", ")
  }

  /// The condition, by old numbers, for the rows whose values the column takes over although their entity no longer
  /// has the attribute: it moved to an entity below. `nil` where no row can be one.
  ///
  /// Core Data's migration writes only the attributes of a row's own entity. A value that stayed would come back if the
  /// attribute moved up again, and a unique index, which covers all rows of the table, would count it.
  private func losingRows(_ column: CoreDataLayout.Column, _ pair: TablePair) -> String? {
    guard case .attribute(let entity, _) = column.role,
      let source = sourceRoles[column.role]?.property,
      let heir = new.entity(named: entity), let owner = old.entity(named: source.entity)
    else { return nil }
    let abstract = Set(
      difference.entities.filter { $0.old?.isAbstract == true }
        .compactMap { $0.old.flatMap { old.entity(named: $0.name)?.number } })
    let losing = pair.numbers.filter {
      owner.numbers.contains($0.before) && !heir.numbers.contains($0.after)
        && !abstract.contains($0.before)
    }
    guard !losing.isEmpty else { return nil }
    return "Z_ENT IN (\(losing.map { "\($0.before)" }.joined(separator: ", ")))"
  }

  /// The default that rows without a value get.
  struct Fill {
    var literal: String
    /// The condition for the rows, by their old numbers; `nil` for all.
    var rows: String?
    /// A further condition.
    var condition: String?
  }

  /// A required attribute gets its default in rows without a value, where their own entity may have had none: the
  /// attribute is new to it, was optional or had another type. Entities whose properties become one may differ in that.
  /// A column of a new composite, which may be NULL, gets its part of the initial value.
  func fill(_ column: CoreDataLayout.Column, _ pair: TablePair, table: String) -> Fill? {
    guard case .attribute(let entity, let name) = column.role,
      let mapping = difference.entities.first(where: { $0.new.name == entity }),
      let attribute = mapping.attributes.first(where: { $0.new.name == name }),
      let value = attribute.new.isOptional
        ? difference.initialValue(of: attribute.new, in: mapping) : attribute.new.storedDefault,
      let numbers = new.entity(named: entity)?.numbers
    else { return nil }
    let sources = pair.numbers.filter { numbers.contains($0.after) }.map { number, _ in
      (number: number, attribute: source(of: attribute, inRowsOf: number))
    }
    let affected = sources.filter { _, before in
      guard let before else { return true }
      return before.isOptional || before.isEphemeral
    }
    guard !affected.isEmpty else { return nil }
    // Apps on Apple's platforms read collections from archives only.
    let archived =
      attribute.new.type == .codable && !new.conventions.isMadeByInstar
      ? ArchivedCollection.archive(ofEmpty: value) : nil
    var fill = Fill(literal: Self.stored(archived ?? value, attribute))
    if affected.count != pair.numbers.count {
      // The rows still carry the old numbers here.
      fill.rows = "Z_ENT IN (\(affected.map { "\($0.number)" }.joined(separator: ", ")))"
    }
    let isNew = affected.contains { $0.attribute == nil }
    if isNew, mapping.new.uniquenessConstraints.contains([name]) {
      // One default for many rows would not be unique. The plan's code has to write the values.
      fill.condition = "(SELECT COUNT(*) FROM \(table)) = 1"
    }
    return fill
  }

  /// The value as the column of an attribute has it at this step, as SQL: `ExternalChange` later rewrites all values of
  /// a column, so the new value must have the form of its other values.
  private static func stored(
    _ value: AttributeValue, _ attribute: SchemaDifference.PropertyMapping<Schema.Attribute>
  ) -> String {
    switch (attribute.new.mayBeExternal, ExternalChange.rewrites(attribute)) {
    case (true, false): "\(ExternalValues.writeFunction)(\(value.literal))"
    // Never in a file, which nobody would reference after the next step.
    case (false, true): ExternalValues.inline(value).literal
    case (true, true), (false, false): value.literal
    }
  }

  /// The attribute whose values the rows of an entity keep without conversion; `nil` for none.
  private func source(
    of attribute: SchemaDifference.PropertyMapping<Schema.Attribute>, inRowsOf number: Int
  ) -> Schema.Attribute? {
    guard let name = attribute.old?.name else { return nil }
    let before = old.entities.first { $0.number == number }?.attributes
      .first { $0.attribute.name == name }?.attribute
    return before?.type.isStoredLike(attribute.new.type) == true ? before : nil
  }

  // MARK: Rebuilding a table

  /// Copies the rows that are kept, in the order of their keys, with final values and numbers.
  mutating func fillTable(_ pair: TablePair, from aside: String) {
    var columns: [String] = []
    var values: [String] = []
    for column in pair.after.columns {
      guard let value = value(of: column, pair, aside: aside) else { continue }
      columns.append(column.name)
      values.append(value)
    }
    let condition = rowCondition(pair).map { " WHERE \($0)" } ?? ""
    add(
      "INSERT INTO \(pair.after.name) (\(columns.joined(separator: ", "))) "
        + "SELECT \(values.joined(separator: ", ")) FROM \(aside)\(condition) ORDER BY Z_PK",
      "copies the rows", .rebuild, rowChange: .writes, table: pair.after.name,
      reason: rebuildReason(pair.before.name))
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
        + "\(Self.position(among: before, orderedBy: "Z_PK")) END"
    case .attribute:
      let source = source.map { source in
        losingRows(column, pair).map { "CASE WHEN \($0) THEN NULL ELSE \(source) END" } ?? source
      }
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
          ?? Self.position(among: pair.before.otherColumn, orderedBy: pair.before.column))
    }
    if let column = pair.after.otherOrderColumn {
      columns.append(column)
      values.append(
        pair.before.otherOrderColumn
          ?? Self.position(among: pair.before.column, orderedBy: pair.before.otherColumn))
    }
    add(
      "INSERT INTO \(pair.after.name) (\(columns.joined(separator: ", "))) "
        + "SELECT \(values.joined(separator: ", ")) FROM \(aside)",
      "copies the links", .rebuild, rowChange: .writes, table: pair.after.name,
      reason: rebuildReason(pair.before.name))
  }

  /// The first in an order has 2048, as Core Data counts (section 4.4).
  static func position(among owner: String, orderedBy key: String) -> String {
    "2048 * ROW_NUMBER() OVER (PARTITION BY \(owner) ORDER BY \(key))"
  }
}
