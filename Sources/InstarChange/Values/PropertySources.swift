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
    /// Whether each row keeps its key.
    let keepsKeys: Bool
    /// Whether the table of the new entity holds all these rows.
    let sharesTable: Bool
  }

  /// The entities of the new version, by name.
  let news: [String: EntityLayout]
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
    let layouts = stage.to.layout.entityLayouts
    news = layouts.keyed(by: \.name)
    pairs = Dictionary(firstOf: stage.entityLayoutPairs(difference).map { ($0.old.name, $0) })
    for layout in layouts where sourceTables[layout.table] == nil {
      let source = difference.sourceName(of: layout.name)
      sourceTables[layout.table] = source.flatMap { pairs[$0]?.old.table }
    }
  }

  /// Returns the entities with values of a property that `mapping` takes over and that does not stay as it is.
  ///
  /// - Parameter property: In the old version.
  mutating func sources<Property: SchemaProperty>(
    of property: String, _ mapping: SchemaDifference.EntityMapping,
    _ properties: KeyPath<
      SchemaDifference.EntityMapping, [SchemaDifference.PropertyMapping<Property>]
    >
  ) -> [Source] {
    guard let new = news[mapping.new.name] else { return [] }
    let heirs = difference.entities.filter { other in
      other.new.name != mapping.new.name
        && other[keyPath: properties].contains { $0.old?.name == property }
    }
    let keepsKeys = origins(of: mapping).allSatisfy(\.keepsKeys)
    var found: [Source] = []
    for owner in declaring(property, for: mapping) {
      let numbers = numbers(of: owner.old, property, mapping, heirs)
      guard !numbers.isEmpty else { continue }
      found.append(
        Source(
          old: owner.old, rows: condition(owner.old, numbers),
          keepsKeys: keepsKeys && sourceTables[new.table] == owner.old.table,
          sharesTable: owner.new.map { $0.table == new.table } ?? true))
    }
    return found
  }

  private func origins(of mapping: SchemaDifference.EntityMapping) -> [EntityLayoutPair] {
    difference.originNames(of: mapping.new).compactMap { pairs[$0] }
  }

  /// The old entities that declare a property: the origins of an entity, or entities above or below them.
  private func declaring(
    _ property: String, for mapping: SchemaDifference.EntityMapping
  ) -> [EntityLayoutPair] {
    let origins = origins(of: mapping).map(\.old)
    let names = stage.from.schema.entities.filter { entity in
      entity.attributes.contains { $0.name == property }
        || entity.relationships.contains { $0.name == property }
    }
    return names.compactMap { pairs[$0.name] }.filter { owner in
      origins.contains { origin in
        origin.root == owner.old.root
          && (origin.numbers.contains(owner.old.number)
            || owner.old.numbers.contains(origin.number))
      }
    }
  }

  /// The rows of `owner` whose values `mapping` takes over, by the numbers of their entities. Rows whose entity has the
  /// property no longer lose their values, too: they belong to the first that asks.
  private mutating func numbers(
    of owner: EntityLayout, _ property: String, _ mapping: SchemaDifference.EntityMapping,
    _ heirs: [SchemaDifference.EntityMapping]
  ) -> Set<Int> {
    func covered(_ heir: SchemaDifference.EntityMapping) -> Set<Int> {
      Set(origins(of: heir).filter { $0.old.root == owner.root }.flatMap(\.old.numbers))
        .intersection(owner.numbers)
    }
    let own = covered(mapping)
    var rows = own
    var rest = Set(owner.numbers).subtracting(own)
    for other in heirs.map(covered) {
      // An entity below that left the hierarchy took its rows along.
      if other.isStrictSubset(of: own) { rows.subtract(other) }
      rest.subtract(other)
    }
    guard !rest.isEmpty, claimed.insert("\(owner.name).\(property)").inserted else { return rows }
    return rows.union(rest)
  }

  private func condition(_ owner: EntityLayout, _ numbers: Set<Int>) -> String? {
    guard let column = owner.entityColumn, numbers != Set(owner.numbers) else {
      return owner.rowCondition
    }
    return "\(column) IN (\(numbers.sorted().map(String.init).joined(separator: ", ")))"
  }
}

extension SchemaStage {
  /// Returns the relationships whose links the stage stores elsewhere, so that they may be lost: of the two ends, which
  /// have the same links, one; if possible that which becomes to-one. No lightweight stage moves links away.
  package func movedLinks(
    _ difference: SchemaDifference
  ) -> [(entity: String, relationship: SchemaDifference.PropertyMapping<Schema.Relationship>)] {
    guard kind == .custom else { return [] }
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
