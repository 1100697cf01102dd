import InstarSchema
import InstarStore

/// What happens to the values of attributes that large values of may lie in files in only one of two versions: their stored
/// form is another one (Core Data layout, section 7).
enum ExternalChange {
  /// One for each such attribute, for after the change of schema.
  static func statements(
    _ difference: SchemaDifference, _ new: CoreDataLayout
  ) -> [String] {
    difference.entities.flatMap { mapping -> [String] in
      guard let entity = new.entity(named: mapping.new.name) else { return [] }
      return mapping.attributes.compactMap { attribute in
        guard let before = attribute.old, before.type.isStoredLike(attribute.new.type),
          before.mayBeExternal != attribute.new.mayBeExternal,
          let column = entity.attributes.first(where: { $0.attribute.name == attribute.new.name })?
            .column
        else { return nil }
        let function =
          attribute.new.mayBeExternal ? ExternalValues.writeFunction : ExternalValues.readFunction
        return "UPDATE \(entity.table) SET \(column) = \(function)(\(column)) "
          + "WHERE \(column) IS NOT NULL"
      }
    }
  }
}
