import InstarSchema

/// The next version of a schema, made mechanically: every kind of change that a lightweight stage makes, wherever the
/// schema allows it. Every third entity stays as it is.
struct ChangedSchema {
  private(set) var schema: Schema
  /// The relationship that changes from to-one to to-many, as "Entity.relationship".
  private(set) var widened: String?

  init(after schema: Schema) {
    self.schema = schema
    self.schema.version = Schema.Version(schema.version.major + 1, 0, 0)
    forgetOriginalNames()
    removeEntity()
    for index in self.schema.entities.indices where index % 3 != 2 {
      Self.change(&self.schema.entities[index])
    }
    renameEntity()
    widenRelationship()
    // First by name, so that all others get other numbers.
    self.schema.entities.append(
      Schema.Entity(
        name: "AaaAdded",
        attributes: [
          Schema.Attribute(name: "title", type: .string, defaultValue: .text("new"))
        ]))
  }

  /// What rows without a value get where an attribute becomes required, or is added.
  static func newDefault(of type: Schema.AttributeType) -> AttributeValue? {
    switch type {
    case .bool: .integer(1)
    case .int16, .int32, .int64: .integer(7)
    case .double, .float: .real(0.5)
    case .date: .real(86_400)
    case .string: .text("it's new")
    case .decimal, .data, .uuid, .url, .codable: nil
    }
  }

  private static func change(_ entity: inout Schema.Entity) {
    let constrained = Set(
      (entity.uniquenessConstraints + entity.indices).joined()
        + entity.fetchIndexes.flatMap { $0.elements.map(\.property) })
    var free = entity.attributes.indices.filter {
      let attribute = entity.attributes[$0]
      return !attribute.name.contains(".") && !constrained.contains(attribute.name)
        && attribute.derivation == nil && !attribute.isEphemeral && !attribute.isTransformable
        && !attribute.isUnique
    }
    if free.count > 1 {
      let index = free.removeFirst()
      entity.attributes[index].name += "Renamed"
    }
    if let index = free.first(where: {
      entity.attributes[$0].isOptional && newDefault(of: entity.attributes[$0].type) != nil
    }) {
      entity.attributes[index].isOptional = false
      entity.attributes[index].storedDefault = newDefault(of: entity.attributes[index].type)
      free.removeAll { $0 == index }
    }
    if free.count > 1, let index = free.last { entity.attributes.remove(at: index) }
    entity.attributes.append(
      Schema.Attribute(name: "addedTo\(entity.name)", type: .int64, defaultValue: .integer(7)))
  }

  /// What was called otherwise in a version before the first one is nothing to the second.
  private mutating func forgetOriginalNames() {
    for index in schema.entities.indices {
      schema.entities[index].originalName = schema.entities[index].name
      for place in schema.entities[index].attributes.indices {
        schema.entities[index].attributes[place].originalName =
          schema.entities[index].attributes[place].name
      }
      for place in schema.entities[index].relationships.indices {
        schema.entities[index].relationships[place].originalName =
          schema.entities[index].relationships[place].name
      }
    }
  }

  /// One that no other entity has anything to do with.
  private mutating func removeEntity() {
    let used = Set(schema.entities.flatMap { $0.relationships.map(\.destination) })
      .union(schema.entities.compactMap(\.superentityName))
    guard schema.entities.count > 2,
      let index = schema.entities.firstIndex(where: {
        $0.relationships.isEmpty && $0.superentityName == nil && !used.contains($0.name)
      })
    else { return }
    schema.entities.remove(at: index)
  }

  private mutating func renameEntity() {
    let above = Set(schema.entities.compactMap(\.superentityName))
    guard
      let index = schema.entities.lastIndex(where: {
        $0.superentityName == nil && !above.contains($0.name)
      })
    else { return }
    let (old, new) = (schema.entities[index].name, "Re" + schema.entities[index].name)
    schema.entities[index].name = new
    for entity in schema.entities.indices {
      for relationship in schema.entities[entity].relationships.indices
      where schema.entities[entity].relationships[relationship].destination == old {
        schema.entities[entity].relationships[relationship].destination = new
      }
    }
  }

  private mutating func widenRelationship() {
    for entity in schema.entities.indices {
      for index in schema.entities[entity].relationships.indices {
        let relationship = schema.entities[entity].relationships[index]
        guard relationship.isToOneRelationship, let name = relationship.inverseName,
          let inverse = schema.entity(named: relationship.destination)?
            .relationshipsByName[name], !inverse.isToOneRelationship
        else { continue }
        schema.entities[entity].relationships[index].isToOneRelationship = false
        schema.entities[entity].relationships[index].isOptional = true
        schema.entities[entity].relationships[index].maximumModelCount = 0
        widened = "\(schema.entities[entity].name).\(relationship.name)"
        return
      }
    }
  }
}
