import InstarSchema

/// A store's schema with every name changed that Swift cannot declare. A name in a store can be any text.
struct SourceNames {
  private(set) var schema: Schema
  /// The changed names, one sentence each.
  private(set) var notes: [String] = []

  init(_ schema: Schema) {
    self.schema = schema
    var taken = Set(schema.entities.map(\.name))
    var entityNames: [String: String] = [:]
    for entity in schema.entities where !SwiftName.isIdentifier(entity.name) {
      let name = SwiftName.free(SwiftName.type(entity.name), among: taken)
      taken.insert(name)
      entityNames[entity.name] = name
      notes.append(
        "the entity \(entity.name) is named \(name) here, because Swift cannot declare its name")
    }
    self.schema.entities = schema.entities.map { entity in
      var entity = entity
      let properties = propertyNames(of: entity)
      func renamed(_ name: String) -> String { properties[name] ?? name }
      for index in entity.attributes.indices {
        let attribute = entity.attributes[index]
        entity.attributes[index].name = renamed(attribute.name)
        if attribute.originalName == attribute.name {
          entity.attributes[index].originalName = renamed(attribute.name)
        }
      }
      for index in entity.relationships.indices {
        let relationship = entity.relationships[index]
        entity.relationships[index].name = renamed(relationship.name)
        if relationship.originalName == relationship.name {
          entity.relationships[index].originalName = renamed(relationship.name)
        }
        entity.relationships[index].destination =
          entityNames[relationship.destination] ?? relationship.destination
        if let inverse = relationship.inverseName, !SwiftName.isIdentifier(inverse) {
          entity.relationships[index].inverseName = nil
        }
      }
      entity.uniquenessConstraints = entity.uniquenessConstraints.map { $0.map(renamed) }
      entity.indices = entity.indices.map { $0.map(renamed) }
      for index in entity.fetchIndexes.indices {
        for element in entity.fetchIndexes[index].elements.indices {
          let property = entity.fetchIndexes[index].elements[element].property
          entity.fetchIndexes[index].elements[element].property = renamed(property)
        }
      }
      if let name = entityNames[entity.name] {
        if entity.originalName == entity.name { entity.originalName = name }
        entity.name = name
      }
      entity.superentityName = entity.superentityName.map { entityNames[$0] ?? $0 }
      return entity
    }
  }

  /// Returns new names for the properties that need one.
  private mutating func propertyNames(of entity: Schema.Entity) -> [String: String] {
    let names = entity.attributes.map(\.name) + entity.relationships.map(\.name)
    var taken = Set(names)
    var renamed: [String: String] = [:]
    for name in names {
      let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
      if parts.count <= 2, parts.allSatisfy(SwiftName.isIdentifier) { continue }
      let new = SwiftName.free(SwiftName.property(name), among: taken)
      taken.insert(new)
      renamed[name] = new
      notes.append(
        "the property '\(name)' of \(entity.name) is named \(new) here, because Swift cannot declare its name"
      )
    }
    return renamed
  }
}
