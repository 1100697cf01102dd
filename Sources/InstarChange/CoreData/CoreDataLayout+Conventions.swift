import InstarSchema
import InstarStore

extension CoreDataLayout {
  /// The conventions of the same store after a change of schema.
  ///
  /// A join table stays named after the same relationship where no rule decides which of the two it is. The table
  /// names are not kept: with other entity numbers, another table may have one of them.
  func conventions(after difference: SchemaDifference) -> CoreDataConventions {
    var next = conventions
    next.joinTables = []
    next.namingRelationships = []
    for join in joinTables {
      let numbers = [join.entity, join.otherEntity].compactMap { entity(named: $0)?.number }
      guard numbers.count == 2, numbers[0] >= numbers[1] else { continue }
      for mapping in difference.entities where mapping.old?.name == join.entity {
        for relationship in mapping.relationships
        where relationship.old?.name == join.relationship {
          next.namingRelationships.insert(
            .init(entity: mapping.new.name, name: relationship.new.name))
        }
      }
    }
    return next
  }
}
