extension SchemaDifference {
  /// A property that is an enum without raw values in one version, with a column for each case, and text in the other.
  /// Values that are text in one and the name of a case in the other come along.
  package struct RetypedEnum: Sendable {
    /// The attribute with the text.
    package let text: Schema.Attribute
    /// One attribute for each case.
    package let cases: [Schema.Attribute]
    /// Whether the text is that of the old version.
    package let becomesCases: Bool

    /// The property's name in the new version.
    package var name: String { becomesCases ? Self.property(cases[0].name) : text.name }

    /// The attributes of the old version.
    package var oldAttributes: [Schema.Attribute] { becomesCases ? [text] : cases }
    /// The attributes of the new version.
    package var newAttributes: [Schema.Attribute] { becomesCases ? cases : [text] }

    /// The names of the cases, sorted.
    package var caseNames: [String] { cases.map(Self.caseName).sorted() }

    /// Whether each row of the old version has a case.
    var isAlwaysSet: Bool { !becomesCases && cases[0].declaration.isRequiredComposite }

    /// "plus" of "status.plus".
    package static func caseName(of attribute: Schema.Attribute) -> String {
      String(attribute.name.drop { $0 != "." }.dropFirst())
    }

    /// "status" of "status.plus".
    fileprivate static func property(_ name: String) -> String {
      String(name.prefix { $0 != "." })
    }

    package var caseList: String { caseNames.joined(separator: ", ") }

    /// What keeps text that is not the name of a case.
    package func correction(of entity: String) -> String {
      "keep other values in context.scratchpad in willMigrate of a custom stage, and set \(entity).\(name) in didMigrate; "
        + "or keep the text in a second property: @Attribute(originalName: \"\(text.name)\") var \(text.name)Text: String?"
    }

    var sentence: String {
      becomesCases
        ? "from String to an enum without raw values, and keeps the values that are names of its cases "
          + "(\(caseList))"
        : "from an enum without raw values to String, which gets the names of the cases"
    }
  }

  /// Returns the properties of an entity that change in this way under their own name, or the one that `originalName`
  /// gives.
  ///
  /// - Parameter shapes: What the types of the new version read. A case that they do not read is left out.
  package func retypedEnums(
    _ mapping: EntityMapping, reading shapes: [String: ValueShape] = [:]
  ) -> [RetypedEnum] {
    let added = mapping.attributes.filter { $0.old == nil }.map(\.new)
    let removed = mapping.removedAttributes
    let toCases = Self.casesByProperty(added, by: \.originalName).compactMap { name, cases in
      removed.first { $0.isText && $0.name == name }
        .map { RetypedEnum(text: $0, cases: cases, becomesCases: true) }
    }
    let toText = Self.casesByProperty(removed, by: \.name).compactMap { name, cases in
      added.first { $0.isText && $0.originalName == name }.flatMap { text -> RetypedEnum? in
        let values = shapes["\(mapping.new.name).\(text.name)"]?.rawValues
        let kept = cases.filter { leaf in
          values?.contains(.text(RetypedEnum.caseName(of: leaf))) ?? true
        }
        return kept.isEmpty ? nil : RetypedEnum(text: text, cases: kept, becomesCases: false)
      }
    }
    return (toCases + toText).sorted { $0.name < $1.name }
  }

  private static func casesByProperty(
    _ attributes: [Schema.Attribute], by name: KeyPath<Schema.Attribute, String>
  ) -> [String: [Schema.Attribute]] {
    Dictionary(
      grouping: attributes.filter {
        $0.isPartOfComposite && $0.declaration.isEnumeration && $0.type == .string
          && !$0.isEphemeral
      }
    ) { RetypedEnum.property($0[keyPath: name]) }
  }
}

extension Schema.Attribute {
  fileprivate var isText: Bool { type == .string && !isPartOfComposite && !isEphemeral }
}
