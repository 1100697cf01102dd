import InstarSchema
import InstarWire

extension SchemaReport {
  /// Comments for properties whose type in the app the store does not say, by "Entity.property".
  var comments: [String: String] {
    var comments: [String: String] = [:]
    for entity in schema.entities {
      for attribute in entity.attributes {
        let path = "\(entity.name).\(attribute.name)"
        if attribute.declaration.isEnumeration, !attribute.isPartOfComposite {
          comments[path] = "In the app, an enum with this raw value."
        } else if attribute.type == .codable {
          comments[path] = "In the app, a value of a Codable type; these bytes are its JSON."
        } else if let type = archivedTypes[path] {
          comments[path] = "Archived values of type \(type)."
        } else if attribute.isTransformable {
          comments[path] =
            "In the app, a value of another type; its transformer made these bytes."
        }
      }
    }
    return comments
  }
}
