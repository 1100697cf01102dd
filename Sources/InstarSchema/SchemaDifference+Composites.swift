// Properties that are kept in several columns: Codable structs, and enums without raw values.

extension SchemaDifference {
  /// A property in several columns that becomes required: rows without a value have NULL in all of them.
  package struct RequiredComposite: Sendable {
    /// The property's name in the new version.
    package let name: String
    /// Those of the new version.
    package let attributes: [Schema.Attribute]

    /// Whether rows without a value get one, or have one already.
    var isFilled: Bool {
      attributes[0].declaration.hasInitialValue || attributes.canAllBeEmpty
    }

    /// What rows without a value get, by attribute; empty for nothing. The other columns stay NULL.
    package var initialValues: [(attribute: Schema.Attribute, value: AttributeValue)] {
      attributes.compactMap { attribute in
        attribute.declaration.initialValue.map { (attribute, $0) }
      }
    }
  }

  /// Returns the properties of an entity in several columns that become required.
  package func requiredComposites(_ mapping: EntityMapping) -> [RequiredComposite] {
    let parts = Dictionary(
      grouping: mapping.attributes.filter {
        $0.new.isPartOfComposite && !$0.new.isEphemeral && $0.new.declaration.isRequiredComposite
      }, by: { $0.new.compositeName })
    return parts.sorted { $0.key < $1.key }.compactMap { name, parts in
      let sources = parts.compactMap(\.old)
      guard !sources.isEmpty,
        sources.allSatisfy({
          $0.isPartOfComposite && !$0.isEphemeral && !$0.declaration.isRequiredComposite
        })
      else { return nil }
      return RequiredComposite(name: name, attributes: parts.map(\.new))
    }
  }
}

extension Schema.Attribute {
  /// "author" of "author.name"; the name of an attribute in one column.
  package var compositeName: String { String(name.prefix { $0 != "." }) }
}

extension [Schema.Attribute] {
  /// Whether NULL in all columns of a composite is a value: a struct whose fields are all optional.
  package var canAllBeEmpty: Bool {
    allSatisfy { !$0.declaration.isEnumeration && !$0.declaration.isRequiredField }
  }
}
