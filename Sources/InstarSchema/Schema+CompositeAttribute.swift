extension Schema {
  /// A property that is kept in a column for each of its fields: a Codable struct, or an enum without raw value.
  public struct CompositeAttribute: SchemaProperty {
    /// The name of the Swift property.
    public let name: String
    /// The name in the version before, equal to `name` where the property was not renamed.
    public let originalName: String
    /// Whether a model may have no value for it.
    public let isOptional: Bool
    /// What `@Attribute` was given.
    public let options: [Schema.Attribute.Option]
    /// Tells two versions of a property apart that differ in nothing else.
    public let hashModifier: String?
    /// The fields, or the cases, in the order of their declaration; named without the property.
    public let attributes: [Schema.Attribute]
    /// The type of the Swift property; none in a schema that came from another process.
    package let swiftType: SwiftType

    /// Whether two models cannot have the same value.
    public var isUnique: Bool { options.contains(.unique) }

    /// `true`.
    public var isAttribute: Bool { true }

    /// Whether the value is never stored.
    public var isTransient: Bool { options.contains(.ephemeral) }

    /// The fields, or the cases, in the order of their declaration; named without the property.
    public var properties: [any SchemaProperty] { attributes }

    init(name: String, columns: [Schema.Attribute]) {
      self.name = name
      originalName = columns.first.map { String($0.originalName.prefix { $0 != "." }) } ?? name
      isOptional = columns.first?.declaration.isRequiredComposite != true
      options = columns.first?.options ?? []
      hashModifier = columns.first?.hashModifier
      swiftType = columns.first?.compositeType ?? SwiftType(nil)
      attributes = columns.map { column in
        var leaf = column
        leaf.name = String(column.name.dropFirst(name.count + 1))
        leaf.originalName = String(column.originalName.drop { $0 != "." }.dropFirst())
        leaf.options = []
        leaf.compositeType = SwiftType(nil)
        leaf.declaration = Schema.Attribute.Declaration()
        return leaf
      }
    }
  }
}
