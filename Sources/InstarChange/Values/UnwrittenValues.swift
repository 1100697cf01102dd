import InstarSchema
package import InstarStore
package import InstarWire

/// The values that a change of schema neither kept nor converted, and that no closure has replaced yet.
///
/// Nothing is guessed from values. The temporary table of each property holds the keys of these rows (see
/// `CarriedValues`), and temporary triggers on the new column, table of links or row remove the keys that a statement
/// writes or deletes. SQLite runs temporary triggers also while the app's triggers are disabled. What is left after the
/// last stage is the loss: a later stage may still write what an earlier one left.
///
/// Limits:
/// - A save writes all fields of a composite. So for a field, only another value than that of the change of schema
///   counts as written.
/// - One written link of a to-many relationship counts for all links that its row had: code may merge links on purpose.
/// - If rows do not keep their keys, every row of the new table counts as one that had a value.
/// - Rows that lost their table have no keys to follow: as many new rows of their entity count for them.
package struct UnwrittenValues {
  private struct Entry {
    var property: CarriedValues.Property
    let count: Int64
    /// The version whose names the property has.
    let version: Schema.Version
  }

  private var entries: [Entry] = []

  /// No values.
  package init() {}

  /// - Throws: an error of SQLite. Call it before the change of schema, when the tables are filled.
  init(
    _ properties: [CarriedValues.Property], of version: Schema.Version, _ session: SQLSession
  ) throws {
    entries = try properties.map {
      Entry(property: $0, count: try $0.count(session), version: version)
    }
  }

  /// Whether every value came along.
  package var isEmpty: Bool { entries.isEmpty }

  /// Begins to watch the rows that have no new value. Call it after the change of schema.
  mutating func watch(_ session: SQLSession) throws {
    var waiting: [Entry] = []
    for entry in entries {
      let property = entry.property
      if property.isOfRows {
        if entry.count > 0 { waiting.append(entry) }
        continue
      }
      if entry.count > 0 { try property.keepUnconverted(session) }
      if entry.count > 0, try property.hasRows(session) {
        for statement in property.triggers { try session.run(statement) }
        waiting.append(entry)
      } else {
        try session.run("DROP TABLE temp.\(property.table)")
      }
    }
    entries = waiting
  }

  /// Ends the watch before the next change of schema, which may drop the columns and tables that are watched.
  func pause(_ session: SQLSession) throws {
    for entry in entries where !entry.property.isOfRows {
      try entry.property.dropTriggers(session)
    }
  }

  /// Watches on, after the next change of schema, the rows of earlier stages: a later closure may write them too. Those
  /// whose property is gone, or whose keys changed, stay as they are. A property that the change computes is written.
  mutating func follow(
    _ earlier: UnwrittenValues, over stage: SchemaStage, _ difference: SchemaDifference,
    _ computed: TransformedValues, _ session: SQLSession
  ) throws {
    let pairs = stage.entityLayoutPairs(difference)
    for var entry in earlier.entries {
      if let property = entry.property.following(pairs, difference) {
        if computed.sets(property.newName, of: property.new.name) {
          try session.run("DROP TABLE temp.\(property.table)")
          continue
        }
        entry.property = property
        for statement in property.triggers { try session.run(statement) }
      } else if entry.property.isOfRows {
        // The plan removes the entity.
        continue
      }
      entries.append(entry)
    }
  }

  /// Ends the watch.
  ///
  /// - Returns: what no closure replaced, with the names of the version before the stage that lost it.
  package func finish(_ session: SQLSession) throws -> [LostValues] {
    try pause(session)
    return try entries.compactMap { entry in
      let property = entry.property
      let left =
        property.isOfRows
        ? entry.count - (try property.countOfNewRows(session)) : try property.takeRest(session)
      guard left > 0 else { return nil }
      return LostValues(
        version: entry.version, entity: property.name.entity, property: property.name.property,
        count: Int(clamping: min(left, entry.count)))
    }
  }
}

extension CarriedValues.Property {
  fileprivate func dropTriggers(_ session: SQLSession) throws {
    for name in triggerNames { try session.run("DROP TRIGGER IF EXISTS temp.\(name)") }
  }

  /// The rows that closures inserted: those of the old version were all lost.
  fileprivate func countOfNewRows(_ session: SQLSession) throws -> Int64 {
    try session.integer(new.ownRowCountStatement) ?? 0
  }

  /// How many values wait for a closure. Removes the temporary table.
  fileprivate func takeRest(_ session: SQLSession) throws -> Int64 {
    let left = try session.integer("SELECT sum(instar_n) FROM temp.\(table)") ?? 0
    try session.run("DROP TABLE temp.\(table)")
    return left
  }

  /// The property in the next version; `nil` where its rows cannot be followed.
  fileprivate func following(
    _ pairs: [EntityLayoutPair], _ difference: SchemaDifference
  ) -> CarriedValues.Property? {
    guard let pair = pairs.first(where: { $0.old.name == new.name }), pair.keepsKeys,
      let next = pair.new,
      let mapping = difference.entities.first(where: { $0.new.name == next.name })
    else { return nil }
    var property = self
    property.new = next
    property.newName = mapping.newName(of: newName)
    switch source {
    case .rows: break
    case .attribute(let oldColumn, _, let conversion):
      guard let column = next.column(of: property.newName)?.name else { return nil }
      property.source = .attribute(oldColumn: oldColumn, newColumn: column, conversion)
    case .links(let old, _):
      guard let storage = next.storage(of: property.newName) else { return nil }
      property.source = .links(old: old, new: storage)
    }
    return property
  }

  fileprivate func hasRows(_ session: SQLSession) throws -> Bool {
    try session.integer("SELECT 1 FROM temp.\(table) LIMIT 1") != nil
  }

  /// Leaves in the table the rows that have no value in the new version.
  fileprivate func keepUnconverted(_ session: SQLSession) throws {
    if !keepsKeys {
      let condition = new.rowCondition.map { " WHERE \($0)" } ?? ""
      try session.run(
        "INSERT INTO temp.\(table) SELECT \(new.key.columns.joined(separator: ", ")), NULL, 1 "
          + "FROM \(new.table)\(condition)")
    }
    let isOfEntity = new.rowCondition.map { " AND \($0)" } ?? ""
    let here = "SELECT 1 FROM \(new.table) AS t0 WHERE \(isRow("t0"))"
    if keepsKeys, sharesTable {
      // The change removed these rows with their entity.
      try session.run("DELETE FROM temp.\(table) WHERE NOT EXISTS (\(here))")
    }
    switch source {
    case .rows: break
    case .attribute:
      // A row of an entity above that lost the property does not keep its value.
      let kept = isOfEntity.isEmpty ? "" : " AND EXISTS (\(here)\(isOfEntity))"
      try session.run("DELETE FROM temp.\(table) WHERE instar_v IS NOT NULL\(kept)")
    case .links(_, let storage):
      try session.run(
        "UPDATE temp.\(table) SET instar_n = instar_n - ifnull((SELECT \(storage.linkCount) "
          + "FROM \(new.table) AS t0 WHERE \(isRow("t0"))\(isOfEntity)), 0)")
      try session.run("DELETE FROM temp.\(table) WHERE instar_n <= 0")
    }
  }

  fileprivate var triggerNames: [String] { ["u", "d", "i"].map { "\(table)_\($0)" } }

  /// The statements of a trigger name its own table without a schema: SQLite allows no other form there.
  fileprivate var triggers: [String] {
    let (updated, deleted, inserted) = (triggerNames[0], triggerNames[1], triggerNames[2])
    let forgetOld = "BEGIN DELETE FROM \(table) WHERE \(isKept("OLD")); END"
    let onDelete = "CREATE TEMP TRIGGER \(deleted) AFTER DELETE ON main.\(new.table) \(forgetOld)"
    func onUpdate(of columns: [String], _ condition: String = "") -> String {
      "CREATE TEMP TRIGGER \(updated) AFTER UPDATE OF \(columns.joined(separator: ", ")) "
        + "ON main.\(new.table) \(condition)\(forgetOld)"
    }
    func forgetOwner(_ reference: ForeignKey) -> String {
      let columns = new.key.columns.map { "+t0.\($0)" }.joined(separator: ", ")
      return "BEGIN DELETE FROM \(table) WHERE (\(keys.joined(separator: ", "))) IN "
        + "(SELECT \(columns) FROM \(new.table) AS t0 "
        + "WHERE \(reference.condition("NEW", refersTo: "t0"))); END"
    }
    switch source {
    case .rows: return []
    case .attribute(_, let column, _):
      let isField = newName.contains(".")
      return [
        onDelete,
        onUpdate(of: [column], isField ? "WHEN NEW.\(column) IS NOT OLD.\(column) " : ""),
      ]
    case .links(_, let storage):
      switch storage.location {
      case .column(let reference):
        return [onDelete, onUpdate(of: reference.columns)]
      case .foreignKey(let reference):
        return [
          onDelete,
          "CREATE TEMP TRIGGER \(updated) AFTER UPDATE OF \(reference.list) "
            + "ON main.\(storage.destinationTable) \(forgetOwner(reference))",
          "CREATE TEMP TRIGGER \(inserted) AFTER INSERT ON main.\(storage.destinationTable) "
            + forgetOwner(reference),
        ]
      case .joinTable(let name, let own, _):
        return [
          onDelete,
          "CREATE TEMP TRIGGER \(inserted) AFTER INSERT ON main.\(name) \(forgetOwner(own))",
        ]
      }
    }
  }
}
