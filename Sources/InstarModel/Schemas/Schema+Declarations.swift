public import InstarSchema

extension Schema.Attribute {
  /// Creates an attribute of the arguments of `@Attribute`: without a name, and of the type `Any`. A model's schema has
  /// what its properties declare, so nothing uses such an attribute but code that compares or prints it.
  public init(_ options: Option..., originalName: String? = nil, hashModifier: String? = nil) {
    self.init(
      name: "", originalName: originalName, type: .codable, options: options,
      hashModifier: hashModifier)
    swiftType = Schema.SwiftType(Any.self)
  }

  /// Creates the attribute that a model's property of a Swift type has.
  ///
  /// A struct or an enum that a model keeps in several columns is one attribute of the type `.codable` here.
  ///
  /// - Parameters:
  ///   - valueType: The type of the property; an optional type makes the attribute optional.
  ///   - defaultValue: The initial value; ignored if it is of another type.
  public init(
    name: String, originalName: String? = nil, options: [Option] = [], valueType: any Any.Type,
    defaultValue: Any? = nil, hashModifier: String? = nil
  ) {
    func property<Value>(_ type: Value.Type) -> Schema.PropertyMetadata {
      // Kept whole, because only models have composite attributes.
      let metadata = AttributeMetadata(
        options: options + [.codable], originalName: originalName, hashModifier: hashModifier)
      let value = defaultValue as? Value
      return options.contains { $0.transformerName != nil }
        ? Schema.PropertyMetadata(transformable: name, type, metadata, constant: value)
        : Schema.PropertyMetadata(name, type, metadata, constant: value)
    }
    guard case .attribute(let kind) = property(valueType).kind else {
      self.init(
        name: name, originalName: originalName, type: .codable,
        isOptional: valueType is any OptionalType.Type, options: options,
        hashModifier: hashModifier)
      swiftType = Schema.SwiftType(valueType)
      return
    }
    self.init(name, kind)
    self.options = options
  }

  /// The attribute of a property that is kept in one column.
  init(_ name: String, _ kind: Schema.PropertyMetadata.AttributeKind) {
    self.init(
      name: name, originalName: kind.metadata.originalName, type: kind.type,
      isOptional: kind.isOptional, options: kind.metadata.options,
      defaultValue: kind.defaultSlot()?.attributeValue, hashModifier: kind.metadata.hashModifier)
    swiftType = Schema.SwiftType(kind.valueType)
    declaration.isEnumeration = Self.isEnumeration(kind.valueType)
  }

  /// Whether a type, or what it wraps, is an enum that Instar stores by its cases or raw values.
  static func isEnumeration(_ type: any Any.Type) -> Bool {
    if type is any PersistentAttribute.Type { return false }
    let wrapped = (type as? any OptionalType.Type)?.wrappedType ?? type
    return EnumCases.namesWithoutValues(of: wrapped) != nil
  }
}

extension Schema.Relationship {
  /// Creates a relationship of the arguments of `@Relationship`: without a name. Its destination is the model of
  /// `inverse`, or has no name either. A model's schema has what its properties declare, so nothing uses such a
  /// relationship but code that compares or prints it.
  ///
  /// - Parameter maximumModelCount: 1 for a to-one relationship; `nil` and 0 for no limit.
  public init(
    _ options: Option..., deleteRule: DeleteRule = .nullify, minimumModelCount: Int? = 0,
    maximumModelCount: Int? = 0, originalName: String? = nil, inverse: AnyKeyPath? = nil,
    hashModifier: String? = nil
  ) {
    let root = inverse.flatMap { type(of: $0).rootType as? any PersistentModel.Type }
    let destination = root?._modelDescriptor
    let minimum = minimumModelCount ?? 0
    self.init(
      name: "", originalName: originalName, destination: destination?.name ?? "",
      inverseName: inverse.flatMap { destination?.slotsByKeyPath[$0] }
        .map { destination?.properties[$0].name } ?? nil,
      deleteRule: deleteRule, minimumModelCount: minimum,
      maximumModelCount: maximumModelCount ?? 0, isOptional: minimum == 0,
      isToOneRelationship: maximumModelCount == 1, options: options, hashModifier: hashModifier)
    keyPaths.inverse = inverse
  }
}
