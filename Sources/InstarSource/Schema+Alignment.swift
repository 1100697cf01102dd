public import InstarSchema

extension Schema {
  /// Returns this schema, which was read from tables, completed from another schema.
  ///
  /// Tables keep neither the case of names, nor which of several types with the same storage is meant, nor what is
  /// optional. A property is treated as the other schema's property where their columns match.
  public func aligned(to other: Schema) -> Schema {
    guard format.listsEntities else {
      return other.format == format ? alignedTables(to: other) : self
    }
    var copy = self
    copy.entities = entities.map { entity in
      let folded = entity.name.uppercased()
      guard let model = other.entities.first(where: { $0.name.uppercased() == folded }) else {
        return entity
      }
      return entity.aligned(to: model)
    }
    return copy
  }
}

extension Schema.Entity {
  fileprivate func aligned(to other: Schema.Entity) -> Schema.Entity {
    var copy = self
    var names: [String: String] = [:]
    var attributesOfOther: [String: Schema.Attribute] = [:]
    for attribute in other.attributes {
      // The columns of a composite's fields do not contain the property's name.
      let column = (attribute.name.split(separator: ".").last ?? "").uppercased()
      attributesOfOther[column] = attributesOfOther[column] ?? attribute
    }
    let relationshipsOfOther = other.relationships.keyed { $0.name.uppercased() }
    copy.attributes = attributes.map { attribute in
      guard let model = attributesOfOther[attribute.name.uppercased()],
        attribute.type.columnType == model.type.columnType
      else { return attribute }
      names[attribute.name] = model.name
      var taken = model
      taken.originalName = taken.name
      return taken
    }
    copy.relationships = relationships.map { relationship in
      guard let model = relationshipsOfOther[relationship.name.uppercased()],
        model.isToOneRelationship == relationship.isToOneRelationship
      else { return relationship }
      names[relationship.name] = model.name
      var taken = model
      taken.originalName = taken.name
      taken.destination = relationship.destination
      return taken
    }
    // The to-many side of a relationship has no column, so tables cannot show whether it exists.
    let known = Set(copy.relationships.map(\.name))
    copy.relationships += other.relationships.filter {
      !$0.isToOneRelationship && $0.inverseName != nil && !known.contains($0.name)
    }
    copy.uniquenessConstraints = uniquenessConstraints.map { $0.map { names[$0] ?? $0 } }
    copy.indices = indices.map { $0.map { names[$0] ?? $0 } }
    return copy
  }
}
