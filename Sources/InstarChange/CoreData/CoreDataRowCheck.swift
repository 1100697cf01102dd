import InstarSchema
import InstarStore
import InstarWire

/// Refuses rows that break a rule of the new version.
enum CoreDataRowCheck {
  /// Refuses values that repeat where the new version requires unique ones, and rows that several owners refer to
  /// where the new version allows one.
  ///
  /// Runs after `willMigrate`, in which a plan removes them, and before the change of schema.
  static func check(
    _ stage: SchemaStage, _ difference: SchemaDifference, _ store: CoreDataLayout,
    _ session: SQLSession
  ) throws(InstarError) {
    for mapping in difference.entities {
      guard let old = mapping.old, let layout = store.entity(named: old.name) else { continue }
      try checkMembers(mapping, difference, stage, store, session)
      for group in mapping.new.uniquenessConstraints {
        let columns = group.compactMap { name -> String? in
          if let attribute = mapping.attributes.first(where: { $0.new.name == name })?.old {
            return layout.attributes.first { $0.attribute.name == attribute.name }?.column.name
          }
          return nil
        }
        guard columns.count == group.count else {
          try checkNewUnique(group, mapping, layout, stage, session)
          continue
        }
        let isNew = !store.structure.indexes.contains {
          $0.isUnique && $0.table == layout.table && $0.columns == columns
        }
        guard isNew else { continue }
        let rows = try session.affectedRows {
          try KeyedRows(ofTableOf: layout).repeated($0, columns)
        }
        guard let rows else { continue }
        throw InstarError(
          .duplicateUniqueValues, stage.what,
          cause: rows.sentence(of: mapping.new.name, have: Self.duplicates(of: group)),
          next: "remove the duplicates in willMigrate", rows: rows)
      }
    }
  }

  /// What is wrong with rows that have the same values of these attributes.
  static func duplicates(of attributes: [String]) -> String {
    let names = attributes.map { "'\($0)'" }.joined(separator: ", ")
    return "equal values of \(names), which \(attributes.count == 1 ? "becomes" : "become") unique"
  }

  /// Where a to-one relationship becomes to-many and each member may have one owner, refuses rows that several others
  /// reference.
  private static func checkMembers(
    _ mapping: SchemaDifference.EntityMapping, _ difference: SchemaDifference,
    _ stage: SchemaStage, _ store: CoreDataLayout, _ session: SQLSession
  ) throws(InstarError) {
    for relationship in mapping.relationships
    where difference.becomesToMany(relationship)
      && difference.takesLinksAlong(relationship, of: mapping.new.name)
    {
      guard !difference.hasToManyInverse(relationship.new),
        let links = difference.storedLinks(of: relationship, mapping, in: store),
        let shared = try session.integer(
          "SELECT COUNT(*) FROM (SELECT 1 FROM \(links.table) WHERE \(links.column) IS NOT NULL "
            + "GROUP BY \(links.column) HAVING COUNT(*) > 1)"), shared > 0
      else { continue }
      let (new, name) = (relationship.new, mapping.new.name)
      throw InstarError(
        .duplicateUniqueValues, stage.what,
        cause:
          "\(name).\(new.name) becomes to-many and each \(new.destination) belongs to one \(name), but \(shared) of them are referenced by several",
        next:
          "give \(new.destination) an array of \(name) as the inverse, or remove all but one reference to each in willMigrate"
      )
    }
  }

  /// Refuses a new unique attribute with a default where several rows would get the same value.
  private static func checkNewUnique(
    _ group: [String], _ mapping: SchemaDifference.EntityMapping, _ layout: EntityLayout,
    _ stage: SchemaStage, _ session: SQLSession
  ) throws(InstarError) {
    guard stage.kind == .lightweight, group.count == 1,
      let attribute = mapping.attributes.first(where: { $0.new.name == group[0] }),
      attribute.old == nil, !attribute.new.isOptional,
      let rows = try session.affectedRows({ try KeyedRows(ofTableOf: layout).affected($0) }),
      rows.count > 1
    else { return }
    let path = "\(mapping.new.name).\(group[0])"
    throw InstarError(
      .duplicateUniqueValues, stage.what,
      cause:
        "\(path) is new and unique, but \(rows.count) rows would get the same default\(rows.suffix)",
      next: "make it a custom stage that gives each row its own value in didMigrate", rows: rows)
  }
}
