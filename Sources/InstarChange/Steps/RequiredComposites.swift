import InstarSchema
import InstarStore

extension SchemaDifference {
  /// The steps that give rows without a value the initial value of a property in several columns that becomes required.
  /// They run when all rows have their final keys and numbers.
  ///
  /// - Parameters:
  ///   - entity: In the new version.
  ///   - table: The entity's table, as SQLite names it.
  func requiredCompositeFills(
    _ mapping: EntityMapping, _ entity: EntityLayout, table: String
  ) -> [ChangeStep] {
    requiredComposites(mapping).compactMap { composite in
      let values = composite.initialValues.compactMap { attribute, value in
        // A field of a composite is never in a file.
        entity.column(of: attribute.name).map { column in
          "\(column.name) = \((column.encoding?.written(value) ?? value).literal)"
        }
      }
      guard !values.isEmpty else { return nil }
      let columns = composite.attributes.compactMap { entity.column(of: $0.name)?.name }
      let conditions = columns.map { "\($0) IS NULL" } + [entity.rowCondition].compactMap(\.self)
      return ChangeStep(
        "UPDATE \(entity.table) SET \(values.joined(separator: ", ")) "
          + "WHERE \(conditions.joined(separator: " AND "))",
        "fills empty values of \(entity.name).\(composite.name)", .additive, rowChange: .writes,
        table: table, entity: entity.name, property: composite.name)
    }
  }
}
