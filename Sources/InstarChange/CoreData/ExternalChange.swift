import InstarSchema
import InstarStore

/// Rewrites the values of attributes for which only one of two versions allows files beside the store: the other
/// version stores them in another form (Core Data layout, section 7).
enum ExternalChange {
  /// Whether the column keeps its values, in the other form.
  static func rewrites(
    _ attribute: SchemaDifference.PropertyMapping<Schema.Attribute>
  ) -> Bool {
    guard let before = attribute.old else { return false }
    return before.type.isStoredLike(attribute.new.type)
      && before.mayBeExternal != attribute.new.mayBeExternal
  }

  /// One statement for each such attribute. They run after the change of the tables, whose steps leave all values of
  /// the column in the old form.
  static func steps(_ difference: SchemaDifference, _ new: CoreDataLayout) -> [ChangeStep] {
    difference.entities.flatMap { mapping -> [ChangeStep] in
      guard let entity = new.entity(named: mapping.new.name) else { return [] }
      return mapping.attributes.compactMap { attribute in
        guard rewrites(attribute),
          let column = entity.attributes.first(where: { $0.attribute.name == attribute.new.name })?
            .column.name
        else { return nil }
        let isExternal = attribute.new.mayBeExternal
        let function = isExternal ? ExternalValues.writeFunction : ExternalValues.readFunction
        return ChangeStep(
          "UPDATE \(entity.table) SET \(column) = \(function)(\(column)) "
            + "WHERE \(column) IS NOT NULL",
          isExternal ? "moves large values to files" : "reads values from their files",
          .conversion, rowChange: .writes, table: entity.table, column: column,
          entity: mapping.new.name,
          property: attribute.new.name,
          reason:
            "changes whether large values of \(mapping.new.name).\(attribute.new.name) may be in files"
        )
      }
    }
  }
}
