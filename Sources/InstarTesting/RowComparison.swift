internal import GRDB
internal import Instar
internal import InstarStore
internal import InstarWire

/// Compares the rows of one entity before and after a migration.
struct RowComparison {
  /// The entity's name after the migration.
  let entity: String
  private let oldEntity: String
  private let oldSchema: Schema
  private let newSchema: Schema
  /// The properties to compare, by their names before and after.
  private let properties: [(old: String, new: String)]
  /// The properties of before that no property of after continues.
  private let removed: [String]

  /// Follows the entity and its properties through the stages.
  ///
  /// - Throws: `ExpectationFailure` if the entity or an excepted property does not exist, or if the entity is new.
  init(
    of entity: String, except: Set<String>, versions plan: PlanManifest,
    from: Schema.Version, to: Schema.Version
  ) throws {
    func schema(_ version: Schema.Version) throws -> Schema {
      guard let found = plan.versions.first(where: { $0.schema.version == version }) else {
        throw ExpectationFailure("\(plan.name) has no version \(version)")
      }
      return found.schema
    }
    (oldSchema, newSchema) = (try schema(from), try schema(to))
    guard let last = newSchema.entity(named: entity) else {
      throw ExpectationFailure("\(to) has no model \(entity)")
    }
    let known = last.attributes.map(\.name) + last.relationships.map(\.name)
    // From the last stage to the first: what each property was before.
    var name = entity
    var names = known.map { (old: $0, new: $0) }
    for stage in plan.stages.filter({ $0.from >= from && $0.to <= to }).reversed() {
      let difference = SchemaDifference(from: try schema(stage.from), to: try schema(stage.to))
      guard let mapping = difference.entities.first(where: { $0.new.name == name }),
        let source = mapping.old
      else {
        throw ExpectationFailure(
          "the stage \(stage.from) → \(stage.to) adds \(entity), so it has no earlier rows")
      }
      names = names.compactMap { pair in
        let attribute = mapping.attributes.first { $0.new.name == pair.old }?.old?.name
        let relationship = mapping.relationships.first { $0.new.name == pair.old }?.old?.name
        return (attribute ?? relationship).map { (old: $0, new: pair.new) }
      }
      name = source.name
    }
    let first = oldSchema.entity(named: name)
    let old = (first?.attributes.map(\.name) ?? []) + (first?.relationships.map(\.name) ?? [])
    if let unknown = except.subtracting(known + old).sorted().first {
      throw ExpectationFailure(
        "\(entity) has no property '\(unknown)'",
        ["its properties are \(known.sorted().joined(separator: ", "))"])
    }
    let continued = Set(names.map(\.old))
    self.entity = entity
    oldEntity = name
    properties = names.filter { !except.contains($0.old) && !except.contains($0.new) }
    removed = old.filter { !continued.contains($0) && !except.contains($0) }
  }

  /// Returns one sentence for each row or value that differs.
  func differences(from old: URL, to new: URL) throws -> [String] {
    let before = try rows(
      of: oldEntity, oldSchema, properties.map(\.old) + removed, in: old)
    let after = try rows(of: entity, newSchema, properties.map(\.new), in: new)
    var differences = removed.sorted().compactMap { name -> String? in
      let count = before.values.values.count { $0[name].map { !$0.isNull } ?? false }
      guard count > 0 else { return nil }
      return
        "\(count) values of \(oldEntity).\(name) are gone: no later property has them; if it was renamed, write "
        + "@Attribute(originalName: \"\(name)\")"
    }
    for key in before.values.keys.sorted() {
      guard let own = before.values[key], let other = after.values[key] else {
        differences.append("row \(key) is gone")
        continue
      }
      for (old, new) in properties {
        // To-many relationships have no column.
        guard let value = own[old], let now = other[new], value != now else { continue }
        differences.append("row \(key): \(new) was \(value), and is \(now)")
      }
    }
    return differences
  }

  private struct Rows {
    /// By key and property.
    var values: [Int64: [String: DatabaseValue]] = [:]
  }

  private func rows(
    of entity: String, _ schema: Schema, _ properties: [String], in store: URL
  ) throws -> Rows {
    let connection = try StoreConnection(path: store.path, isReadOnly: true, durability: .durable)
    let result = Result {
      try connection.perform { session in
        let layouts = try schema.layout(in: session.database).entityLayouts
        guard let layout = layouts.first(where: { $0.name == entity }) else { return Rows() }
        let columns = Self.columns(of: layout).filter { properties.contains($0.name) }
        let selected = [layout.key.reading.sql("t0")] + columns.map { $0.reading.sql("t0") }
        let sql =
          "SELECT \(selected.joined(separator: ", ")) FROM \(layout.table) AS t0 "
          + "WHERE \(layout.rowCondition.map { "t0.\($0)" } ?? "1")"
        var rows = Rows()
        for row in try Row.fetchAll(session.database, sql: sql) {
          guard let key = Int64.fromDatabaseValue(row[0]) else { continue }
          for (index, column) in columns.enumerated() {
            rows.values[key, default: [:]][column.name] = row[index + 1]
          }
          if columns.isEmpty { rows.values[key] = [:] }
        }
        return rows
      }
    }
    try connection.close()
    return try result.get()
  }

  private static func columns(
    of layout: EntityLayout
  ) -> [(name: String, reading: RowExpression)] {
    layout.attributes.map { ($0.attribute.name, $0.column.reading) }
      + layout.relationships.compactMap { storage in
        guard case .column(let key) = storage.location else { return nil }
        return (storage.relationship.name, key.reading)
      }
  }
}
