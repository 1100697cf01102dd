// Properties that are kept in several columns: Codable structs, and enums without raw values.

extension SchemaDifference {
  /// A property in several columns that is required, and not so before: rows without a value have NULL in all of them.
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
    composites(mapping) { _, sources in
      !sources.isEmpty
        && sources.allSatisfy {
          $0.isPartOfComposite && !$0.isEphemeral && !$0.declaration.isRequiredComposite
        }
    }
  }

  /// Returns the required properties of an entity in several columns that are new as a whole. A struct or an enum that
  /// only gets one more column keeps its values, and so does an enum whose cases come from text.
  func newComposites(_ mapping: EntityMapping) -> [RequiredComposite] {
    let retyped = Set(retypedEnums(mapping).map(\.name))
    return composites(mapping) { name, sources in sources.isEmpty && !retyped.contains(name) }
  }

  /// - Parameter condition: Gets the property's name, and the sources of its columns.
  private func composites(
    _ mapping: EntityMapping, where condition: (String, [Schema.Attribute]) -> Bool
  ) -> [RequiredComposite] {
    let parts = Dictionary(
      grouping: mapping.attributes.filter {
        $0.new.isPartOfComposite && !$0.new.isEphemeral && $0.new.declaration.isRequiredComposite
      }, by: { $0.new.compositeName })
    return parts.sorted { $0.key < $1.key }.filter { condition($0, $1.compactMap(\.old)) }
      .map { RequiredComposite(name: $0, attributes: $1.map(\.new)) }
  }

  /// Returns the value that a new column of a composite gets in rows of the version before: its part of the initial
  /// value of a composite that is new as a whole and that each model must have; `nil` for none.
  package func initialValue(
    of attribute: Schema.Attribute, in mapping: EntityMapping
  ) -> AttributeValue? {
    guard attribute.isPartOfComposite, let value = attribute.declaration.initialValue else {
      return nil
    }
    let isNew = newComposites(mapping).contains { $0.name == attribute.compositeName }
    return isNew ? value : nil
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
