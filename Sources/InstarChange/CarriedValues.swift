import Foundation
import InstarSchema
import InstarStore

/// The values of attributes whose type changes in a way that keeps them: numbers of another kind, and bytes or text
/// that the new type decodes. The change of schema makes new columns; the values wait in temporary tables
/// meanwhile.
///
/// All values of an attribute are carried over, or none: a part of them would look like the work of the plan's code.
struct CarriedValues {
  private struct Conversion {
    let old: EntityLayout
    let new: EntityLayout
    let oldColumn: String
    let newColumn: String
    /// The attribute's name in the new version.
    let name: String
    /// The converted value.
    let sql: String
    /// Whether the new type decodes a value; `nil` for numbers, which always convert.
    let isDecodable: ((Data) -> Bool)?
    let table: String

    /// The rows that have a value.
    var condition: String {
      (["\(oldColumn) IS NOT NULL"] + [old.rowCondition].compactMap(\.self))
        .joined(separator: " AND ")
    }
  }

  private var conversions: [Conversion] = []

  /// The attributes of the new version, as "Note.rating", whose new column gets no values: no conversion keeps them.
  private var lost: Set<String> = []

  init(
    _ stage: SchemaStage, _ difference: SchemaDifference, decodes: DecodingCheck
  ) {
    for change in stage.entityLayoutPairs(difference) {
      guard let new = change.new,
        let mapping = difference.entities.first(where: { $0.new.name == new.name })
      else { continue }
      let keepsRows = change.keepsKeys && change.old.key.isRowID && new.key.isRowID
      for attribute in mapping.attributes {
        guard let before = attribute.old, !before.type.isStoredLike(attribute.new.type) else {
          continue
        }
        guard keepsRows, let oldColumn = Self.column(before.name, of: change.old),
          let newColumn = Self.column(attribute.new.name, of: new),
          let found = Self.conversion(
            of: oldColumn, before, attribute.new, entity: new.name, in: stage.to.schema, decodes)
        else {
          lost.insert("\(new.name).\(attribute.new.name)")
          continue
        }
        conversions.append(
          Conversion(
            old: change.old, new: new, oldColumn: oldColumn, newColumn: newColumn,
            name: attribute.new.name,
            sql: found.sql,
            isDecodable: found.isDecodable, table: "instar_carried_\(conversions.count + 1)"))
      }
    }
  }

  /// Returns the changes, where a change of type that loses the values is destructive.
  func classified(_ changes: [SchemaDifference.Change]) -> [SchemaDifference.Change] {
    changes.map { change in
      var change = change
      if change.kind == .conversion, let property = change.property,
        lost.contains("\(change.entity).\(property)")
      {
        change.kind = .destructive
      }
      return change
    }
  }

  /// A column of the table itself that holds values as models have them.
  private static func column(_ name: String, of entity: EntityLayout) -> String? {
    guard let column = entity.attributes.first(where: { $0.attribute.name == name })?.column,
      column.encoding == nil, !column.isGenerated, !column.mayBeExternal
    else { return nil }
    return column.name
  }

  private static func conversion(
    of column: String, _ old: Schema.Attribute, _ new: Schema.Attribute, entity: String,
    in schema: Schema, _ decodes: DecodingCheck
  ) -> (sql: String, isDecodable: ((Data) -> Bool)?)? {
    if let sql = NumberConversion.sql(
      column, from: old.type, to: new.type,
      keepsDecimalsAsNumbers: schema.format.keepsDecimalsAsNumbers)
    {
      return (sql, nil)
    }
    guard old.type == .data || old.type == .string, new.type == .codable,
      let isDecodable = decodes(schema, entity, new.name)
    else { return nil }
    return ("CAST(\(column) AS BLOB)", isDecodable)
  }

  /// Makes a change of schema, and carries the values over it.
  ///
  /// - Returns: the steps that were made.
  func carry(
    _ session: SQLSession, _ searchIndexes: SearchIndexRebuild,
    over change: () throws -> [ChangeStep]
  ) throws -> [ChangeStep] {
    var before: [ChangeStep] = []
    var after: [ChangeStep] = []
    for conversion in conversions where try isComplete(conversion, session) {
      let (table, old, new) = (conversion.table, conversion.old, conversion.new)
      let path = "\(new.name).\(conversion.name)"
      func step(_ sql: String, _ comment: String) -> ChangeStep {
        ChangeStep(
          sql, comment, .conversion, table: new.table, column: conversion.newColumn,
          entity: new.name, property: conversion.name)
      }
      before += [
        step(
          "CREATE TEMP TABLE \(table) (k INTEGER PRIMARY KEY, v)",
          "creates a table for the values of \(path)"),
        step(
          "INSERT INTO temp.\(table) SELECT \(old.key.columns[0]), \(conversion.sql) "
            + "FROM \(old.table) WHERE \(conversion.condition)",
          "converts the values of \(path)"),
      ]
      after += [
        step(
          "UPDATE \(new.table) SET \(conversion.newColumn) = "
            + "(SELECT v FROM temp.\(table) WHERE k = \(new.table).\(new.key.columns[0])) "
            + "WHERE \(new.key.columns[0]) IN (SELECT k FROM temp.\(table))",
          "writes the converted values of \(path)"),
        step("DROP TABLE temp.\(table)", "drops the table for the values of \(path)"),
      ]
    }
    for step in after { try searchIndexes.prepare(for: step) }
    for step in before { try session.run(step.sql) }
    let steps = try change()
    for step in after { try session.run(step.sql) }
    return before + steps + after
  }

  /// Whether every value of the attribute can be carried over.
  private func isComplete(_ conversion: Conversion, _ session: SQLSession) throws -> Bool {
    let old = conversion.old
    guard let isDecodable = conversion.isDecodable else {
      return try session.integer(
        "SELECT 1 FROM \(old.table) WHERE \(conversion.condition) AND (\(conversion.sql)) IS NULL LIMIT 1"
      )
        == nil
    }
    let statement = try session.statement(
      "SELECT \(conversion.sql) FROM \(old.table) WHERE \(conversion.condition)")
    defer { statement.reset() }
    while try statement.step() {
      guard isDecodable(statement.data(at: 0)) else { return false }
    }
    return true
  }
}
