package import Foundation
package import InstarSchema
import InstarStore

/// Returns a check whether the type of an attribute decodes a stored value; `nil` where the type is unknown: only a
/// process with the plan's code has types. Schema; entity and attribute by name.
package typealias DecodingCheck = (Schema, String, String) -> ((Data) -> Bool)?

/// The values that a change of schema does not leave where they are: attributes that change their type or join those of
/// another entity, relationships whose links are stored elsewhere, properties that some rows lose because they move to
/// another entity, and rows that lose their table.
///
/// Row by row: before the change, the keys of all rows with a value go to a temporary table, with the new value where
/// there is one: the same value in another column, numbers of another kind, and bytes or text that the new type
/// decodes. The new values go to the new column before `didMigrate`. The rows without one stay in the table until a
/// closure writes their property or deletes them, which temporary triggers note (see `UnwrittenValues`).
struct CarriedValues {
  struct Property {
    /// The entity that declares it.
    let old: EntityLayout
    /// The condition on the rows that have it; `nil` for all rows of the table.
    let oldRows: String?
    var new: EntityLayout
    /// In the old version; without a property for whole rows.
    let name: (entity: String, property: String?)
    var newName: String
    var source: Source
    /// Whether each row keeps its key.
    let keepsKeys: Bool
    /// Whether the table of the new entity holds all these rows.
    let sharesTable: Bool
    let table: String

    enum Source {
      case attribute(oldColumn: String, newColumn: String, Conversion?)
      /// The rows of the entity itself, without those of entities below it.
      case rows
      case links(old: EntityLayout.RelationshipStorage, new: EntityLayout.RelationshipStorage)
    }

    /// Names for the columns of the key in `table`.
    var keys: [String] { new.key.columns.indices.map { "instar_k\($0 + 1)" } }
  }

  struct Conversion {
    /// The converted value as models hold it, or NULL.
    let sql: String
    /// How the new column has it; `nil` for as models hold it.
    let encoding: Schema.Column.Encoding?
    /// Whether the new type decodes a value; `nil` for numbers.
    let isDecodable: ((Data) -> Bool)?
  }

  private(set) var properties: [Property] = []
  /// The values that transforms of the plan compute. They take the place of carried ones.
  let computed: TransformedValues
  private let difference: SchemaDifference
  /// The version before the stage.
  private let version: Schema.Version
  /// Whether the change of schema makes the new columns empty.
  private let isWrittenAfterwards: Bool
  /// The tables of two stages can exist at once.
  private var tablePrefix: String {
    "instar_carried_\(version.description.replacing(".", with: "_"))_"
  }

  init(
    _ stage: SchemaStage, _ difference: SchemaDifference,
    computed: TransformedValues = TransformedValues(), decodes: DecodingCheck
  ) {
    self.difference = difference
    self.computed = computed
    version = stage.from.schema.version
    isWrittenAfterwards = stage.to.layout.makesConvertedColumnsEmpty
    var sources = PropertySources(stage, difference)
    for mapping in difference.entities {
      for attribute in mapping.attributes {
        add(attribute, mapping, &sources, in: stage.to.schema, decodes)
      }
      for retyped in difference.retypedEnums(mapping, reading: stage.to.valueShapes) {
        add(retyped, mapping, &sources)
      }
    }
    let moved = stage.movedLinks(difference)
    for (entity, relationship) in moved {
      guard let mapping = difference.entities.first(where: { $0.new.name == entity }) else {
        continue
      }
      add(relationship, mapping, &sources, areMoved: true)
    }
    for mapping in difference.entities {
      for relationship in mapping.relationships
      where !difference.movesLinks(relationship, of: mapping.new.name) {
        // The other end counts the same links.
        let isCounted = moved.contains { entity, other in
          entity == relationship.new.destination
            && other.new.name == relationship.new.inverseName
        }
        if !isCounted { add(relationship, mapping, &sources, areMoved: false) }
      }
    }
    for (old, new) in sources.entitiesWithoutTable {
      properties.append(
        Property(
          old: old, oldRows: nil, new: new, name: (old.name, nil), newName: "", source: .rows,
          keepsKeys: false, sharesTable: false, table: ""))
    }
  }

  private mutating func add(
    _ attribute: SchemaDifference.PropertyMapping<Schema.Attribute>,
    _ mapping: SchemaDifference.EntityMapping, _ sources: inout PropertySources,
    in schema: Schema, _ decodes: DecodingCheck
  ) {
    guard let before = attribute.old, let new = sources.news[mapping.new.name],
      let newColumn = new.column(of: attribute.new.name)
    else { return }
    let isComputed = computed.sets(attribute.new.name, of: mapping.new.name)
    if before.type.isStoredLike(attribute.new.type), leavesAlone(before.name, mapping) { return }
    func isAlike(_ owner: EntityLayout) -> Bool {
      owner.attribute(before.name)?.type.isStoredLike(attribute.new.type) == true
    }
    for source in sources.sources(of: before.name, mapping, \.attributes, isAlike: isAlike) {
      guard let stored = source.old.attribute(before.name),
        let oldColumn = source.old.column(of: before.name)
      else { continue }
      // A transform takes the place of a conversion. It does not write rows whose entity has the property no longer.
      if source.staysPut || isComputed {
        if let rows = source.losingRows {
          add(
            source, rows: rows, new, before.name, attribute.new.name,
            .attribute(oldColumn: oldColumn.name, newColumn: newColumn.name, nil))
        }
        continue
      }
      let conversion =
        source.keepsKeys
        ? Self.conversion(
          of: oldColumn, stored, to: newColumn, attribute.new, entity: new.name, in: schema, decodes
        ) : nil
      add(
        source, rows: source.rows, new, before.name, attribute.new.name,
        .attribute(oldColumn: oldColumn.name, newColumn: newColumn.name, conversion))
    }
  }

  /// Adds the values of an enum that gets a column for each case, or has one for all.
  private mutating func add(
    _ retyped: SchemaDifference.RetypedEnum, _ mapping: SchemaDifference.EntityMapping,
    _ sources: inout PropertySources
  ) {
    guard let new = sources.news[mapping.new.name], !computed.sets(retyped.name, of: new.name),
      let first = retyped.oldAttributes.first
    else { return }
    for source in sources.sources(of: first.name, mapping, \.attributes, isAlike: { _ in false })
    where source.keepsKeys {
      for target in retyped.newAttributes {
        guard let column = new.column(of: target.name), column.isText,
          let value = Self.value(of: retyped, for: target, in: source.old)
        else { continue }
        add(
          source, rows: source.rows, new, first.name, target.name,
          .attribute(
            oldColumn: value, newColumn: column.name,
            Conversion(sql: value, encoding: nil, isDecodable: nil)))
      }
    }
  }

  /// Returns the expression for the value of a column of the new version; NULL in rows of another case.
  private static func value(
    of retyped: SchemaDifference.RetypedEnum, for target: Schema.Attribute, in old: EntityLayout
  ) -> String? {
    guard retyped.becomesCases else {
      let columns = retyped.cases.compactMap { old.column(of: $0.name) }.filter(\.isText)
      guard columns.count == retyped.cases.count else { return nil }
      return columns.count == 1
        ? columns[0].name : "coalesce(\(columns.map(\.name).joined(separator: ", ")))"
    }
    guard let column = old.column(of: retyped.text.name), column.isText else { return nil }
    let name = AttributeValue.text(SchemaDifference.RetypedEnum.caseName(of: target)).literal
    return "CASE WHEN \(column.name) = \(name) THEN \(column.name) END"
  }

  /// Whether the entity itself has the property as before, in all its rows.
  private func leavesAlone(_ property: String, _ mapping: SchemaDifference.EntityMapping) -> Bool {
    guard let old = mapping.old, old.declares(property) else { return false }
    return difference.entitiesLosing(property, of: old.name).isEmpty
  }

  private mutating func add(
    _ relationship: SchemaDifference.PropertyMapping<Schema.Relationship>,
    _ mapping: SchemaDifference.EntityMapping, _ sources: inout PropertySources, areMoved: Bool
  ) {
    guard let before = relationship.old, let new = sources.news[mapping.new.name],
      let newLinks = new.storage(of: relationship.new.name),
      areMoved || !leavesAlone(before.name, mapping)
    else { return }
    for source in sources.sources(
      of: before.name, mapping, \.relationships, isAlike: { _ in !areMoved })
    {
      guard let oldLinks = source.old.storage(of: before.name) else { continue }
      let rows = source.staysPut ? source.losingRows : source.rows
      if source.staysPut, rows == nil { continue }
      add(
        source, rows: rows, new, before.name, relationship.new.name,
        .links(old: oldLinks, new: newLinks))
    }
  }

  private mutating func add(
    _ source: PropertySources.Source, rows: String?, _ new: EntityLayout, _ name: String,
    _ newName: String, _ kind: Property.Source
  ) {
    properties.append(
      Property(
        old: source.old, oldRows: rows, new: new, name: (source.old.name, name),
        newName: newName, source: kind, keepsKeys: source.keepsKeys,
        sharesTable: source.sharesTable, table: "\(tablePrefix)\(properties.count + 1)"))
  }

  /// Returns the changes, where a change of type that loses all values is destructive.
  func classified(_ changes: [SchemaDifference.Change]) -> [SchemaDifference.Change] {
    let lost = Set(
      properties.filter { $0.losesAll }.map { "\($0.new.name).\($0.newName)" })
    return changes.map { change in
      var change = change
      if change.kind == .conversion, let property = change.property,
        lost.contains("\(change.entity).\(property)")
      {
        change.kind = .destructive
      }
      return change
    }
  }

  private static func conversion(
    of column: StoredColumn, _ old: Schema.Attribute, to newColumn: StoredColumn,
    _ new: Schema.Attribute, entity: String, in schema: Schema, _ decodes: DecodingCheck
  ) -> Conversion? {
    guard !column.isGenerated, !newColumn.isGenerated else { return nil }
    if old.type.isStoredLike(new.type) {
      let isSame =
        column.encoding == newColumn.encoding && column.mayBeExternal == newColumn.mayBeExternal
      return isSame ? Conversion(sql: column.name, encoding: nil, isDecodable: nil) : nil
    }
    guard column.encoding == nil, !column.mayBeExternal, !newColumn.mayBeExternal else {
      return nil
    }
    if let sql = NumberConversion.sql(
      column.name, from: old.type, to: new.type,
      keepsDecimalsAsNumbers: schema.format.keepsDecimalsAsNumbers)
    {
      return Conversion(sql: sql, encoding: newColumn.encoding, isDecodable: nil)
    }
    guard old.type == .data || old.type == .string, new.type == .codable,
      let isDecodable = decodes(schema, entity, new.name)
    else { return nil }
    return Conversion(
      sql: "CAST(\(column.name) AS BLOB)", encoding: newColumn.encoding, isDecodable: isDecodable)
  }

  /// The value that a row of a table that is being changed gets in a column of the new version, as SQL; `nil` where no
  /// value is carried over. It is NULL in rows whose value does not convert.
  func value(of column: String, inTable table: String) -> String? {
    if let value = computed.value(of: column, inTable: table) { return value }
    for property in properties {
      guard case .attribute(_, column, _?) = property.source, property.new.table == table else {
        continue
      }
      return property.carriedValue
    }
    return nil
  }

  // MARK: Over a change of schema

  /// Makes a change of schema, and carries the values over it.
  ///
  /// - Returns: the steps that were made, and the values that wait for a closure.
  func carry(
    _ session: SQLSession, _ searchIndexes: SearchIndexRebuild,
    over change: () throws -> [ChangeStep]
  ) throws -> (steps: [ChangeStep], UnwrittenValues) {
    let before = properties.flatMap(\.stepsBefore)
    let after = isWrittenAfterwards ? properties.compactMap(\.stepAfter) : []
    let (computedBefore, computedAfter) = (computed.stepsBefore, computed.stepsAfter)
    for step in after + computedAfter { try searchIndexes.prepare(for: step) }
    for step in before { try session.run(step.sql, on: step.table) }
    try computed.register(session)
    try computed.run(computedBefore, session)
    for property in properties { try property.forgetUndecodable(session) }
    var unwritten = try UnwrittenValues(properties, of: version, session)
    let steps = try change()
    for step in after { try session.run(step.sql, on: step.table) }
    try computed.run(computedAfter, session)
    try unwritten.watch(session)
    // Tables that only count change nothing, so the plan does not show them.
    let conversions = properties.filter(\.isConverted).flatMap(\.stepsBefore)
    return (conversions + computedBefore + steps + after + computedAfter, unwritten)
  }
}

extension CarriedValues.Property {
  private var path: String { "\(new.name).\(newName)" }

  /// Whether this is about whole rows, which have no temporary table.
  var isOfRows: Bool { name.property == nil }

  var isConverted: Bool {
    guard case .attribute(_, _, _?) = source else { return false }
    return true
  }

  fileprivate var losesAll: Bool {
    guard case .attribute(_, _, nil) = source else { return false }
    return true
  }

  private func step(
    _ sql: String, _ comment: String, rowChange: RowChange = .writes
  ) -> ChangeStep {
    var column: String?
    if case .attribute(_, let new, _) = source { column = new }
    return ChangeStep(
      sql, comment, .conversion, rowChange: rowChange, table: new.table, column: column,
      entity: new.name,
      property: newName)
  }

  /// The condition on the row of the temporary table for a row of the new table. The plus takes away the column's
  /// affinity: SQLite would not compare the keys, which have none, by their index.
  func isKept(_ alias: String) -> String {
    zip(keys, new.key.columns).map { "\($0) = +\(alias).\($1)" }.joined(separator: " AND ")
  }

  /// The condition on the row of the new table for a row of the temporary table.
  func isRow(_ alias: String) -> String {
    zip(keys, new.key.columns).map { "\(alias).\($1) = \(table).\($0)" }.joined(separator: " AND ")
  }

  fileprivate var carriedValue: String {
    var value = "instar_v"
    if case .attribute(_, _, let conversion?) = source, let encoding = conversion.encoding {
      value = "\(encoding.writeFunction)(instar_v)"
    }
    return "(SELECT \(value) FROM temp.\(table) WHERE \(isKept(new.table)))"
  }

  fileprivate var stepsBefore: [ChangeStep] {
    if isOfRows { return [] }
    let list = keys.joined(separator: ", ")
    let isRowID = old.key.isRowID && new.key.isRowID
    let key = isRowID ? "\(list) INTEGER PRIMARY KEY, " : "\(list), "
    let create = step(
      // instar_n: how many values the row has.
      "CREATE TEMP TABLE \(table) (\(key)instar_v, instar_n"
        + (isRowID ? ")" : ", PRIMARY KEY (\(list)))"),
      "creates a table for the values of \(path)", rowChange: .keepsValues)
    guard keepsKeys else { return [create] }
    return [
      create, step("INSERT INTO temp.\(table) \(selection)", "converts the values of \(path)"),
    ]
  }

  /// The keys of the rows with values.
  private var selection: String {
    switch source {
    case .rows:
      return "SELECT 1 AS instar_n FROM \(old.table) WHERE \(old.ownRowCondition)"
    case .attribute(let column, _, let conversion):
      let conditions = ["\(column) IS NOT NULL"] + [oldRows].compactMap(\.self)
      return "SELECT \(old.key.columns.joined(separator: ", ")), \(conversion?.sql ?? "NULL"), 1 "
        + "FROM \(old.table) WHERE \(conditions.joined(separator: " AND "))"
    case .links(let storage, _):
      let columns = old.key.columns.map { "t0.\($0)" }.joined(separator: ", ")
      let rows = oldRows.map { " WHERE \($0)" } ?? ""
      return "SELECT * FROM (SELECT \(columns), NULL, \(storage.linkCount) AS instar_n "
        + "FROM \(old.table) AS t0\(rows)) WHERE instar_n > 0"
    }
  }

  /// How many values there are.
  func count(_ session: SQLSession) throws -> Int64 {
    try session.integer(
      keepsKeys
        ? "SELECT sum(instar_n) FROM temp.\(table)"
        : "SELECT sum(instar_n) FROM (\(countableSelection))") ?? 0
  }

  private var countableSelection: String {
    guard case .attribute(let column, _, _) = source else { return selection }
    let conditions = ["\(column) IS NOT NULL"] + [oldRows].compactMap(\.self)
    return "SELECT 1 AS instar_n FROM \(old.table) WHERE \(conditions.joined(separator: " AND "))"
  }

  fileprivate func forgetUndecodable(_ session: SQLSession) throws {
    guard case .attribute(_, _, let conversion?) = source, let isDecodable = conversion.isDecodable
    else { return }
    let values = try session.statement("SELECT rowid, instar_v FROM temp.\(table)")
    defer { values.reset() }
    var undecodable: [Int64] = []
    while try values.step() {
      if !isDecodable(values.data(at: 1)) { undecodable.append(values.integer(at: 0)) }
    }
    for row in undecodable {
      try session.run("UPDATE temp.\(table) SET instar_v = NULL WHERE rowid = \(row)")
    }
  }

  fileprivate var stepAfter: ChangeStep? {
    guard case .attribute(_, let column, _?) = source else { return nil }
    // Rows of an entity above that lost the property share the table.
    let rows = new.rowCondition.map { "\($0) AND " } ?? ""
    return step(
      "UPDATE \(new.table) SET \(column) = \(carriedValue) WHERE \(rows)"
        + "EXISTS (SELECT 1 FROM temp.\(table) WHERE instar_v IS NOT NULL AND \(isKept(new.table)))",
      "writes the converted values of \(path)")
  }
}

extension StoredColumn {
  /// Whether the column has text as models hold it.
  fileprivate var isText: Bool { encoding == nil && !mayBeExternal && !isGenerated }
}

extension EntityLayout {
  fileprivate func attribute(_ name: String) -> Schema.Attribute? {
    attributes.first { $0.attribute.name == name }?.attribute
  }

  func column(of attribute: String) -> StoredColumn? {
    attributes.first { $0.attribute.name == attribute }?.column
  }

  func storage(of relationship: String) -> RelationshipStorage? {
    relationships.first { $0.relationship.name == relationship }
  }
}

extension EntityLayout.RelationshipStorage {
  /// How many links a row, which has the alias t0, has.
  var linkCount: String {
    switch location {
    case .column(let reference):
      "(\(reference.columns.map { "t0.\($0) IS NOT NULL" }.joined(separator: " AND ")))"
    case .foreignKey(let reference):
      "(SELECT count(*) FROM \(destinationTable) AS d WHERE \(reference.condition("d", refersTo: "t0")))"
    case .joinTable(let name, let own, _):
      "(SELECT count(*) FROM \(name) AS d WHERE \(own.condition("d", refersTo: "t0")))"
    }
  }
}
