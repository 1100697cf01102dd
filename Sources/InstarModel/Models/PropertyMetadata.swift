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
  /// One persisted property of a model, as `@Model` describes it. The type of the key path's value decides whether it is
  /// an attribute or a relationship.
  public struct PropertyMetadata {
    let name: String
    let keyPath: AnyKeyPath
    let kind: Kind

    enum Kind {
      case attribute(AttributeKind)
      case relationship(RelationshipKind)
    }

    struct AttributeKind {
      var type: Schema.AttributeType
      var isOptional: Bool
      var metadata: AttributeMetadata
      /// Evaluated only when a schema is made: a default such as `UUID()` differs at each call.
      var defaultValue: () -> AttributeValue?
    }

    struct RelationshipKind {
      var destination: any PersistentModel.Type
      var isToOne: Bool
      var isOptional: Bool
      var metadata: RelationshipMetadata
    }

    /// An attribute.
    public init<Model: PersistentModel, Value: PersistentAttribute>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), defaultValue: (() -> Value)? = nil
    ) {
      self.name = name
      self.keyPath = keyPath
      kind = .attribute(
        AttributeKind(
          type: Value.attributeType, isOptional: Value.isOptionalAttribute, metadata: metadata,
          defaultValue: { defaultValue?().attributeValue }))
    }

    /// A required to-one relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, Destination>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> Destination)? = nil
    ) {
      self.init(name, keyPath, Destination.self, isToOne: true, isOptional: false, metadata)
    }

    /// An optional to-one relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, Destination?>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> Destination?)? = nil
    ) {
      self.init(name, keyPath, Destination.self, isToOne: true, isOptional: true, metadata)
    }

    /// A to-many relationship.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, [Destination]>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> [Destination])? = nil
    ) {
      self.init(name, keyPath, Destination.self, isToOne: false, isOptional: true, metadata)
    }

    /// A to-many relationship declared as an optional array.
    public init<Model: PersistentModel, Destination: PersistentModel>(
      _ name: String, _ keyPath: KeyPath<Model, [Destination]?>,
      _ metadata: RelationshipMetadata = RelationshipMetadata(),
      defaultValue: (() -> [Destination]?)? = nil
    ) {
      self.init(name, keyPath, Destination.self, isToOne: false, isOptional: true, metadata)
    }

    private init(
      _ name: String, _ keyPath: AnyKeyPath, _ destination: any PersistentModel.Type,
      isToOne: Bool, isOptional: Bool, _ metadata: RelationshipMetadata
    ) {
      self.name = name
      self.keyPath = keyPath
      kind = .relationship(
        RelationshipKind(
          destination: destination, isToOne: isToOne, isOptional: isOptional, metadata: metadata))
    }
  }
}
