import InstarModel
import InstarSchema
import InstarStore

/// Refuses rows that break a rule of the new version.
enum CoreDataRowCheck {
  /// Refuses values that repeat where the new version requires unique ones, and rows that several owners refer to where the
  /// new version allows one.
  ///
  /// Runs after `willMigrate`, in which a plan removes them, and before the change of schema.
  static func check(
    _ stage: PlanDefinition.Stage, _ difference: SchemaDifference, _ store: CoreDataLayout,
    _ session: SQLSession
  ) throws(InstarError) {
    for mapping in difference.entities {
      guard let old = mapping.old, let layout = store.entity(named: old.name) else { continue }
      try checkMembers(mapping, difference, stage, store, session)
      for group in mapping.new.uniquenessConstraints {
        let columns = group.compactMap { name -> String? in
          if let attribute = mapping.attributes.first(where: { $0.new.name == name })?.old {
            return layout.attributes.first { $0.attribute.name == attribute.name }?.column
          }
          return nil
        }
        guard columns.count == group.count else {
          try checkNewUnique(group, mapping, layout.table, stage, session)
          continue
        }
        let isNew = !store.structure.indexes.contains {
          $0.isUnique && $0.table == layout.table && $0.columns == columns
        }
        guard isNew else { continue }
        let list = columns.joined(separator: ", ")
        let present = columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
        let repeated = try session.integer(
          "SELECT COUNT(*) FROM (SELECT 1 FROM \(layout.table) WHERE \(present) "
            + "GROUP BY \(list) HAVING COUNT(*) > 1)")
        guard let repeated, repeated > 0 else { continue }
        let path = "\(mapping.new.name).\(group.joined(separator: ", "))"
        throw InstarError(
          .duplicateUniqueValues,
          "cannot migrate from \(stage.from.schema.version) to \(stage.to.schema.version)",
          cause: "\(path) becomes unique, but \(repeated) of its values occur more than once",
          next: "remove the duplicates in willMigrate")
      }
    }
  }

  /// A model that several others refer to can be a member of one of them only, where a to-one relationship becomes a
  /// to-many one whose members have one owner.
  private static func checkMembers(
    _ mapping: SchemaDifference.EntityMapping, _ difference: SchemaDifference,
    _ stage: PlanDefinition.Stage, _ store: CoreDataLayout, _ session: SQLSession
  ) throws(InstarError) {
    for relationship in mapping.relationships where difference.leadsToManyNow(relationship) {
      guard !leadsToManyBothWays(relationship.new, in: stage.to.schema),
        let links = difference.storedLinks(of: relationship, mapping, in: store),
        let shared = try session.integer(
          "SELECT COUNT(*) FROM (SELECT 1 FROM \(links.table) WHERE \(links.column) IS NOT NULL "
            + "GROUP BY \(links.column) HAVING COUNT(*) > 1)"), shared > 0
      else { continue }
      let (new, name) = (relationship.new, mapping.new.name)
      throw InstarError(
        .duplicateUniqueValues,
        "cannot migrate from \(stage.from.schema.version) to \(stage.to.schema.version)",
        cause:
          "\(name).\(new.name) leads to many now, and each \(new.destination) belongs to one \(name), but \(shared) of them are referred to by several",
        next:
          "give \(new.destination) an array of \(name) as the inverse, or leave one reference to each in willMigrate"
      )
    }
  }

  private static func leadsToManyBothWays(
    _ relationship: Schema.Relationship, in schema: Schema
  ) -> Bool {
    guard let name = relationship.inverseName else { return false }
    var entity = schema.entity(named: relationship.destination)
    for _ in schema.entities {
      guard let current = entity else { return false }
      if let inverse = current.relationshipsByName[name] { return !inverse.isToOneRelationship }
      entity = current.superentityName.flatMap { schema.entity(named: $0) }
    }
    return false
  }

  /// A unique attribute that is new and gets a default would have the same value in every row.
  private static func checkNewUnique(
    _ group: [String], _ mapping: SchemaDifference.EntityMapping, _ table: String,
    _ stage: PlanDefinition.Stage, _ session: SQLSession
  ) throws(InstarError) {
    guard case .lightweight = stage.stage, group.count == 1,
      let attribute = mapping.attributes.first(where: { $0.new.name == group[0] }),
      attribute.old == nil, !attribute.new.isOptional,
      let rows = try session.integer("SELECT COUNT(*) FROM \(table)"), rows > 1
    else { return }
    let path = "\(mapping.new.name).\(group[0])"
    throw InstarError(
      .duplicateUniqueValues,
      "cannot migrate from \(stage.from.schema.version) to \(stage.to.schema.version)",
      cause: "\(path) is new and unique, and \(rows) rows would get the same default",
      next: "make it a custom stage that gives each row its own value in didMigrate")
  }
}
