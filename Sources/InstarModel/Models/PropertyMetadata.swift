public import InstarSchema

/// The arguments of `@Attribute` on one property.
public struct AttributeMetadata: Sendable {
  let options: [Schema.Attribute.Option]
  let originalName: String?
  let hashModifier: String?

  public init(
    _ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil
  ) {
    self.options = options
    self.originalName = originalName
    self.hashModifier = hashModifier
  }
}

/// The arguments of `@Relationship` on one property.
public struct RelationshipMetadata {
  let options: [Schema.Relationship.Option]
  let deleteRule: Schema.Relationship.DeleteRule
  let minimumModelCount: Int
  let maximumModelCount: Int
  let originalName: String?
  let inverse: AnyKeyPath?
  let hashModifier: String?

  public init(
    _ options: Schema.Relationship.Option..., deleteRule: Schema.Relationship.DeleteRule = .nullify,
    minimumModelCount: Int? = 0, maximumModelCount: Int? = 0, originalName: String? = nil,
    inverse: AnyKeyPath? = nil, hashModifier: String? = nil
  ) {
    self.options = options
    self.deleteRule = deleteRule
    self.minimumModelCount = minimumModelCount ?? 0
    self.maximumModelCount = maximumModelCount ?? 0
    self.originalName = originalName
    self.inverse = inverse
    self.hashModifier = hashModifier
  }
}

extension Schema {
  /// The description of a persisted property, which `@Model` emits. The type of the key path's value decides whether
  /// it is an attribute or a relationship.
  public struct PropertyMetadata {
    let name: String
    let keyPath: AnyKeyPath
    let kind: Kind
    /// The arguments of `@Column`.
    private(set) var column: Schema.Column?

    /// Returns the property with the description of its column.
    public func column(_ column: Schema.Column) -> PropertyMetadata {
      var copy = self
      copy.column = column
      return copy
    }

    /// Whether the property alone is unique.
    var isUnique: Bool {
      switch kind {
      case .attribute(let attribute): attribute.metadata.options.contains(.unique)
      case .relationship(let relationship): relationship.metadata.options.contains(.unique)
      }
    }

    /// The type of an array, set or dictionary that is stored in one column.
    var collectionType: (any Codable.Type)? {
      guard case .attribute(let attribute) = kind, case .json = attribute.form else { return nil }
      let type =
        (attribute.valueType as? any OptionalType.Type)?.wrappedType ?? attribute.valueType
      return type is any Collection.Type ? type as? any Codable.Type : nil
    }

    /// The initial value of a property that is in memory only, for a model that is read.
    var valueInMemory: Slot {
      guard case .attribute(let kind) = kind else { return .null }
      return kind.defaultSlot() ?? (kind.valueType as? any PersistentAttribute.Type)?.placeholder
        .slot
        ?? .null
    }

    enum Kind {
      case attribute(AttributeKind)
      case relationship(RelationshipKind)
    }

    struct AttributeKind {
      var type: Schema.AttributeType
      var isOptional: Bool
      var metadata: AttributeMetadata
      /// Called only when needed, because a default such as `UUID()` differs at each call.
      var defaultSlot: () -> Slot?
      /// The declared type of the property.
      var valueType: any Any.Type
      /// The stored form of a Codable type; `nil` for attribute types and types with a raw value.
      var form: CodableForm?
      /// The value transformer, if the attribute has one.
      var transformation: ValueTransformation?
      /// Whether a stored value, which is not NULL, is of the property's type. `nil` if its storage class is enough.
      var accepts: ((Slot) -> Bool)?
      /// Why a Codable type's decoding refuses a stored value, without quoting the value.
      var refusal: ((Slot) -> String?)?
      /// The error of a Codable type's encoding for the initial value; `nil` if it can be stored.
      var defaultProblem: (() -> (any Error)?)?

      /// The columns of a composite.
      var leaves: [Leaf]? { form?.leaves }

      /// Whether the initial value is always the same. That of `UUID()` is not.
      var hasConstantDefault: Bool {
        guard let one = defaultSlot(), let other = defaultSlot() else { return true }
        return one.isSameValue(as: other)
      }
    }

    struct Leaf {
      var name: String
      var type: Schema.AttributeType
      var valueType: any Any.Type
    }

    struct RelationshipKind {
      var destination: any PersistentModel.Type
      var isToOne: Bool
      var isOptional: Bool
      var valueType: any Any.Type
      var metadata: RelationshipMetadata
    }

    /// Describes an attribute.
    public init<Model: PersistentModel, Value: PersistentAttribute>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value)? = nil
    ) {
      self.name = name
      self.keyPath = keyPath
      kind = .attribute(
        AttributeKind(
          type: Value.attributeType, isOptional: Value.isOptionalAttribute, metadata: metadata,
          defaultSlot: { defaultValue?().slot }, valueType: Value.self))
    }

    /// Describes an attribute that is stored by its raw value.
    public init<Model: PersistentModel, Value: RawRepresentable>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value)? = nil
    ) where Value.RawValue: PersistentAttribute {
      self.init(
        name, keyPath, Value.self, isOptional: false, metadata,
        defaultSlot: { defaultValue?().rawValue.slot })
    }

    /// Describes an optional attribute that is stored by its raw value.
    public init<Model: PersistentModel, Value: RawRepresentable>(
      _ name: String, _ keyPath: KeyPath<Model, Value?>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value?)? = nil
    ) where Value.RawValue: PersistentAttribute {
      self.init(
        name, keyPath, Value.self, isOptional: true, metadata,
        defaultSlot: { defaultValue?()?.rawValue.slot })
    }

    private init<Value: RawRepresentable>(
      _ name: String, _ keyPath: AnyKeyPath, _ type: Value.Type, isOptional: Bool,
      _ metadata: AttributeMetadata, defaultSlot: @escaping () -> Slot?
    ) where Value.RawValue: PersistentAttribute {
      self.name = name
      self.keyPath = keyPath
      kind = .attribute(
        AttributeKind(
          type: Value.RawValue.attributeType, isOptional: isOptional, metadata: metadata,
          defaultSlot: defaultSlot, valueType: isOptional ? Value?.self : Value.self,
          accepts: { Value.RawValue(slot: $0).flatMap(Value.init(rawValue:)) != nil }))
    }

    /// Describes an attribute of a Codable type. A struct or an enum has a column for each field or case; other types
    /// are JSON.
    @_disfavoredOverload
    public init<Model: PersistentModel, Value: Codable>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value)? = nil
    ) {
      self.init(
        name, keyPath, codable: Value.self, isOptional: false, metadata,
        defaultValue: { defaultValue?() })
    }

    /// Describes an optional attribute of a Codable type.
    @_disfavoredOverload
    public init<Model: PersistentModel, Value: Codable>(
      _ name: String, _ keyPath: KeyPath<Model, Value?>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value?)? = nil
    ) {
      self.init(
        name, keyPath, codable: Value.self, isOptional: true, metadata,
        defaultValue: { defaultValue?() ?? nil })
    }

    private init<Value: Codable>(
      _ name: String, _ keyPath: AnyKeyPath, codable type: Value.Type, isOptional: Bool,
      _ metadata: AttributeMetadata, defaultValue: @escaping () -> Value?
    ) {
      let form = metadata.options.contains(.codable) ? .json : CodableForm.of(type)
      self.name = name
      self.keyPath = keyPath
      kind = .attribute(
        AttributeKind(
          type: .codable, isOptional: isOptional, metadata: metadata,
          // `defaultProblem` reports an initial value that cannot be stored when the schema is used.
          defaultSlot: { defaultValue().flatMap { try? form.slot(of: $0) } },
          valueType: isOptional ? Value?.self : Value.self, form: form,
          accepts: { form.value(of: $0, as: type) != nil },
          refusal: { form.refusal(of: $0, as: type) },
          defaultProblem: { Self.error { _ = try defaultValue().map { try form.slot(of: $0) } } }))
    }

    private static func error(of body: () throws -> Void) -> (any Error)? {
      do {
        try body()
        return nil
      } catch {
        return error
      }
    }

    /// Describes an attribute of any type that a value transformer stores.
    public init<Model: PersistentModel, Value>(
      transformable name: String, _ keyPath: KeyPath<Model, Value>, _ metadata: AttributeMetadata,
      defaultValue: (() -> Value)? = nil
    ) {
      let transformation = ValueTransformation(
        transformerName: metadata.options.lazy.compactMap(\.transformerName).first ?? "")
      self.name = name
      self.keyPath = keyPath
      kind = .attribute(
        AttributeKind(
          type: .data, isOptional: Value.self is any OptionalType.Type, metadata: metadata,
          // The transformer must be registered only when a value is stored.
          defaultSlot: { defaultValue.flatMap { try? transformation.slot(of: $0()) } },
          valueType: Value.self, transformation: transformation,
          accepts: { transformation.value(of: $0, as: Value.self) != nil }))
    }

    /// Unavailable. The compiler chooses it if no other initializer fits, and reports its message.
    @available(
      *, unavailable,
      message:
        "a property of this type cannot be stored: its type must be a model, an array of models, or Codable; or mark the property '@Transient'"
    )
    @_disfavoredOverload
    public init<Model: PersistentModel, Value>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value)? = nil
    ) {
      self.init(transformable: name, keyPath, metadata, defaultValue: defaultValue)
    }

    /// Describes a required to-one relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, Destination>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> Destination)? = nil
    ) {
      self.init(
        name, keyPath, Destination.self, Destination.self, isToOne: true, isOptional: false,
        metadata)
    }

    /// Describes an optional to-one relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, Destination?>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> Destination?)? = nil
    ) {
      self.init(
        name, keyPath, Destination.self, Destination?.self, isToOne: true, isOptional: true,
        metadata)
    }

    /// Describes a to-many relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, [Destination]>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> [Destination])? = nil
    ) {
      self.init(
        name, keyPath, Destination.self, [Destination].self, isToOne: false, isOptional: true,
        metadata)
    }

    /// Describes a to-many relationship that is declared as an optional array.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, [Destination]?>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> [Destination]?)? = nil
    ) {
      self.init(
        name, keyPath, Destination.self, [Destination]?.self, isToOne: false, isOptional: true,
        metadata)
    }

    private init(
      _ name: String, _ keyPath: AnyKeyPath, _ destination: any PersistentModel.Type,
      _ valueType: any Any.Type, isToOne: Bool, isOptional: Bool, _ metadata: RelationshipMetadata
    ) {
      self.name = name
      self.keyPath = keyPath
      kind = .relationship(
        RelationshipKind(
          destination: destination, isToOne: isToOne, isOptional: isOptional,
          valueType: valueType, metadata: metadata))
    }
  }
}
