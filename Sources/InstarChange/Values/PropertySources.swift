package import InstarSchema
import InstarStore
import InstarWire

/// Where the values of the properties of a new version are in the old one.
///
/// A property may have moved here from an entity above or below, and a new superentity takes over the properties of its
/// subentities. So the rows with values can belong to several entities.
struct PropertySources {
  struct Source {
    /// The entity that declares the property in the old version.
    let old: EntityLayout
    /// The condition on the rows that have the property; `nil` for all rows of the table.
    let rows: String?
    /// The condition on those of them whose entity has it no longer; `nil` where all have it.
    let losingRows: String?
    /// Whether the change of schema leaves the values in their column, or the links in their place.
    let staysPut: Bool
    /// Whether each row keeps its key.
    let keepsKeys: Bool
    /// Whether the table of the new entity holds all these rows.
    let sharesTable: Bool
  }

  /// The entities of the new version, by name.
  let news: [String: EntityLayout]
  private let olds: [EntityLayout]
  private let stage: SchemaStage
  private let difference: SchemaDifference
  private let pairs: [String: EntityLayoutPair]
  /// The table of the old version that gives its rows to one of the new version. Others lose theirs, because rows of
  /// two hierarchies may have the same keys.
  private var sourceTables: [String: String] = [:]
  /// The old properties, by entity, whose rows without an heir are taken.
  private var claimed: Set<String> = []

  init(_ stage: SchemaStage, _ difference: SchemaDifference) {
    self.stage = stage
    self.difference = difference
    olds = stage.from.layout.entityLayouts
    let layouts = stage.to.layout.entityLayouts
    news = layouts.keyed(by: \.name)
    pairs = Dictionary(firstOf: stage.entityLayoutPairs(difference).map { ($0.old.name, $0) })
    for layout in layouts where sourceTables[layout.table] == nil {
      let source = difference.sourceName(of: layout.name)
      sourceTables[layout.table] = source.flatMap { pairs[$0]?.old.table }
    }
  }

  /// The entities whose rows are lost: in the new version their table has the rows of another hierarchy.
  var entitiesWithoutTable: [(old: EntityLayout, new: EntityLayout)] {
    difference.entities.compactMap { mapping in
      guard let old = mapping.old.flatMap({ pairs[$0.name]?.old }),
        let new = news[mapping.new.name],
        !mapping.new.isAbstract, let table = sourceTables[new.table], table != old.table
      else { return nil }
      return (old, new)
    }
  }

  /// Returns the entities with values of a property that `mapping` takes over.
  ///
  /// - Parameters:
  ///   - property: In the old version.
  ///   - isAlike: Whether an entity of the old version has the property as the new version stores it.
  mutating func sources<Property: SchemaProperty>(
    of property: String, _ mapping: SchemaDifference.EntityMapping,
    _ properties: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >, isAlike: (EntityLayout) -> Bool
  ) -> [Source] {
    guard let new = news[mapping.new.name] else { return [] }
    let heirs = difference.entities.filter { other in
      other.new.name != mapping.new.name
        && other[keyPath: properties].contains { $0.old?.name == property }
    }
    let tables = Dictionary(
      firstOf: pairs.values.compactMap { pair in pair.new.map { (pair.old.number, $0.table) } })
    let keepsKeys = origins(of: mapping).allSatisfy(\.keepsKeys)
    var found: [Source] = []
    let owners = declaring(property, for: mapping)
    // The change of schema takes the column of the first that needs no conversion.
    let first = owners.first { isAlike($0.old) }?.old
    for owner in owners {
      let (rows, losing) = numbers(of: owner.old, property, mapping, heirs)
      guard !rows.isEmpty else { continue }
      let isSameTable = sourceTables[new.table] == owner.old.table
      found.append(
        Source(
          old: owner.old, rows: condition(owner.old, rows),
          losingRows: losing.isEmpty ? nil : condition(owner.old, losing),
          staysPut: owner.old.name == first?.name && isSameTable,
          keepsKeys: keepsKeys && isSameTable,
          sharesTable: (owner.new.map { $0.table == new.table } ?? true)
            && losing.allSatisfy { tables[$0] == new.table }))
    }
    return found
  }

  private func origins(of mapping: SchemaDifference.EntityMapping) -> [EntityLayoutPair] {
    difference.originNames(of: mapping.new).compactMap { pairs[$0] }
  }

  /// The old entities that declare a property, in the order in which the change of schema looks for its column: each
  /// origin of an entity, then those above and below it.
  private func declaring(
    _ property: String, for mapping: SchemaDifference.EntityMapping
  ) -> [EntityLayoutPair] {
    let owners = Set(
      stage.from.schema.entities.filter { $0.declares(property) }.map(\.name))
    let candidates = olds.filter { owners.contains($0.name) }
    var found: [String] = []
    for origin in origins(of: mapping).map(\.old) {
      let line = candidates.filter { $0.root == origin.root && $0.number != origin.number }
      let names =
        candidates.filter { $0.name == origin.name }
        + line.filter { $0.numbers.contains(origin.number) }.reversed()
        + line.filter { origin.numbers.contains($0.number) }
      for name in names.map(\.name) where !found.contains(name) { found.append(name) }
    }
    return found.compactMap { pairs[$0] }
  }

  /// The rows of `owner` whose values `mapping` takes over, by the numbers of their entities. Rows whose entity has the
  /// property no longer belong to the first that asks, and lose their values.
  private mutating func numbers(
    of owner: EntityLayout, _ property: String, _ mapping: SchemaDifference.EntityMapping,
    _ heirs: [SchemaDifference.EntityMapping]
  ) -> (rows: Set<Int>, losing: Set<Int>) {
    func covered(_ heir: SchemaDifference.EntityMapping) -> Set<Int> {
      Set(origins(of: heir).filter { $0.old.root == owner.root }.flatMap(\.old.numbers))
        .intersection(owner.numbers)
    }
    let own = covered(mapping)
    let losing = Set(
      difference.entitiesLosing(property, of: owner.name).compactMap { pairs[$0.name]?.old.number })
    var rows = own.subtracting(losing)
    // An entity below that left the hierarchy took its rows along.
    for other in heirs.map(covered) where other.isStrictSubset(of: own) { rows.subtract(other) }
    guard !losing.isEmpty, claimed.insert("\(owner.name).\(property)").inserted else {
      return (rows, [])
    }
    return (rows.union(losing), losing)
  }

  private func condition(_ owner: EntityLayout, _ numbers: Set<Int>) -> String? {
    guard let column = owner.entityColumn, numbers != Set(owner.numbers) else {
      return owner.rowCondition
    }
    return "\(column) IN (\(numbers.sorted().map(String.init).joined(separator: ", ")))"
  }
}

extension SchemaStage {
  /// Returns the entities whose rows are lost because their table gets the rows of another hierarchy, by their names in
  /// the old version. No lightweight stage joins hierarchies.
  package func entitiesWithoutTable(_ difference: SchemaDifference) -> [String] {
    guard kind != .lightweight else { return [] }
    return PropertySources(self, difference).entitiesWithoutTable.map(\.old.name)
  }

  /// Returns the steps that end links which one end no longer has: where a to-many relationship became to-one, its
  /// to-one inverse still has the links of all.
  func linkRepairs(_ difference: SchemaDifference) -> [ChangeStep] {
    guard kind != .lightweight else { return [] }
    let layouts = to.layout.entityLayouts.keyed(by: \.name)
    return difference.entities.flatMap { mapping in
      mapping.relationships.compactMap { relationship -> ChangeStep? in
        // An inverse with links of its own from before keeps them.
        guard let before = relationship.old, !before.isToOneRelationship,
          relationship.new.isToOneRelationship, let name = relationship.new.inverseName,
          difference.entities.first(where: { $0.new.name == relationship.new.destination })?
            .sourceName(of: name) == before.inverseName,
          let owner = layouts[mapping.new.name],
          let member = layouts[relationship.new.destination],
          case .column(let link) = owner.storage(of: relationship.new.name)?.location,
          let inverse = member.storage(of: name), inverse.relationship.isOptional,
          case .column(let back) = inverse.location
        else { return nil }
        let columns = back.columns + [inverse.entityColumn].compactMap(\.self)
        let path = "\(mapping.new.name).\(relationship.new.name)"
        return ChangeStep(
          "UPDATE \(member.table) SET "
            + columns.map { "\($0) = NULL" }.joined(separator: ", ")
            + " WHERE \(back.columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")) AND NOT EXISTS "
            + "(SELECT 1 FROM \(owner.table) AS o WHERE \(back.condition(member.table, refersTo: "o")) "
            + "AND \(link.condition("o", refersTo: member.table)))",
          "ends the links that \(path) no longer has, after didMigrate", .conversion,
          rowChange: .writes, table: member.table, column: back.columns.first,
          entity: mapping.new.name,
          property: relationship.new.name)
      }
    }
  }

  /// Returns the relationships whose links the stage stores elsewhere, so that they may be lost: of the two ends, which
  /// have the same links, one; if possible that which becomes to-one. No lightweight stage moves links away.
  package func movedLinks(
    _ difference: SchemaDifference
  ) -> [(entity: String, relationship: SchemaDifference.PropertyMapping<Schema.Relationship>)] {
    guard kind != .lightweight else { return [] }
    var known: Set<String> = []
    var found:
      [(entity: String, relationship: SchemaDifference.PropertyMapping<Schema.Relationship>)] = []
    for isToOne in [true, false] {
      for mapping in difference.entities {
        let entity = mapping.new.name
        for relationship in mapping.relationships
        where relationship.new.isToOneRelationship == isToOne
          && difference.movesLinks(relationship, of: entity)
          && known.insert("\(entity).\(relationship.new.name)").inserted
        {
          if let inverse = relationship.new.inverseName {
            known.insert("\(relationship.new.destination).\(inverse)")
          }
          found.append((entity, relationship))
        }
      }
    }
    return found
  }
}
