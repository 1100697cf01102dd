extension SchemaDifference {
  /// A removed property that the new version may have under another name.
  public struct PossibleRename: Sendable, Hashable {
    /// The entity in the new version.
    public var entity: String
    public var removed: String
    public var added: String
    /// What keeps the values if the property was renamed.
    public var correction: String
  }

  /// The removed properties whose entity also gets one new property of the same type: without an original name, a
  /// rename loses all values.
  public var possibleRenames: [PossibleRename] {
    entities.filter { $0.old != nil }.flatMap { mapping -> [PossibleRename] in
      let kept = mapping.keptColumns.values
      let retyped = Set(retypedEnums(mapping).flatMap(\.oldAttributes).map(\.name))
      func isPlain(_ attribute: Schema.Attribute) -> Bool {
        !attribute.isPartOfComposite && !attribute.isEphemeral
      }
      let attributes = Self.pairs(
        mapping.removedAttributes.filter { isPlain($0) && !retyped.contains($0.name) },
        mapping.attributes.filter { $0.old == nil }.map(\.new)
          .filter { isPlain($0) && !kept.contains($0.name) }
      ) { $0.type == $1.type }
      let relationships = Self.pairs(
        mapping.removedRelationships,
        mapping.relationships.filter { $0.old == nil }.map(\.new)
          .filter { !kept.contains($0.name) }
      ) { haveSameDestination($0, $1) && $0.isToOneRelationship == $1.isToOneRelationship }
      func renames(
        _ pairs: [(removed: String, added: String)], _ macro: String
      ) -> [PossibleRename] {
        pairs.map { pair in
          PossibleRename(
            entity: mapping.new.name, removed: pair.removed, added: pair.added,
            correction:
              "if \(mapping.new.name).\(pair.added) is \(pair.removed) under a new name, write "
              + "@\(macro)(originalName: \"\(pair.removed)\") before \(pair.added)")
        }
      }
      return renames(attributes, "Attribute") + renames(relationships, "Relationship")
    }
  }

  /// The removed properties to which exactly one new property is alike, and the reverse.
  private static func pairs<Property: SchemaProperty>(
    _ removed: [Property], _ added: [Property], areAlike: (Property, Property) -> Bool
  ) -> [(removed: String, added: String)] {
    removed.compactMap { old in
      let successors = added.filter { areAlike(old, $0) }
      guard successors.count == 1, removed.filter({ areAlike($0, successors[0]) }).count == 1
      else { return nil }
      return (old.name, successors[0].name)
    }
  }
}
