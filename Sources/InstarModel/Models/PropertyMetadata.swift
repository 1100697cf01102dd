internal import Foundation
public import InstarSchema

/// The arguments of `@Attribute` on one property.
public struct AttributeMetadata: Sendable {
  let options: [Schema.Attribute.Option]
  let originalName: String?
  let hashModifier: String?

  /// Keeps the arguments as `@Attribute` has them. Only the code that `@Model` emits calls it.
  public init(
    _ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil
  ) {
    self.init(options: options, originalName: originalName, hashModifier: hashModifier)
  }

  init(options: [Schema.Attribute.Option], originalName: String?, hashModifier: String?) {
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

  /// Keeps the arguments as `@Relationship` has them; a count of `nil` is one of 0, which means no limit. Only the code
  /// that `@Model` emits calls it.
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

  /// The arguments of `@Attribute` on a relationship.
  init(_ attribute: AttributeMetadata) {
    options = attribute.options.contains(.unique) ? [.unique] : []
    deleteRule = .nullify
    (minimumModelCount, maximumModelCount) = (0, 0)
    originalName = attribute.originalName
    inverse = nil
    hashModifier = attribute.hashModifier
  }
}

extension Schema {
  /// The description of a persisted property, which `@Model` emits. The type of the key path's value decides whether
  /// it is an attribute or a relationship.
  // The type is examined when the program runs. Overloads for each kind of type would take the compiler most of the
  // time that it needs for a plan.
  public struct PropertyMetadata {
    let name: String
    /// `nil` if no key path of the module names the property.
    private(set) var keyPath: AnyKeyPath?
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

    /// Whether a value, or one of a composite's, may be NaN.
    var mayBeNotANumber: Bool {
      guard case .attribute(let kind) = kind else { return false }
      let types = kind.leaves?.map(\.type) ?? [kind.type]
      return types.contains { [.double, .float, .decimal, .date].contains($0) }
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
      /// Why no value of a Codable type can be stored; `nil` if values can.
      var typeProblem: (() -> InstarError?)?
      /// The error of a Codable type's encoding for the initial value; `nil` if it can be stored.
      var defaultProblem: (() -> (any Error)?)?

      /// The columns of a composite.
      var leaves: [Leaf]? { form?.leaves }

      /// Returns the stored form of a value with a value transformer or of a Codable type.
      func slot<Value>(of value: Value) throws -> Slot {
        if let transformation { return try transformation.slot(of: value) }
        guard let form, let type = Value.self as? any Codable.Type else { return .null }
        return try form.slot(of: value, as: type)
      }

      /// Returns the value of a stored form; `nil` if the form does not fit the type.
      func value<Value>(of slot: Slot, as type: Value.Type) -> Value? {
        if let transformation { return transformation.value(of: slot, as: type) }
        guard let form, let codable = type as? any Codable.Type else { return nil }
        return form.value(of: slot, asOptional: codable, as: type)
      }

      /// Whether the initial value is always the same. That of `UUID()` is not, and neither is a date by the clock: two
      /// calls may read the same microsecond, so a date near the present counts as one, and another is made later.
      var hasConstantDefault: Bool {
        guard let one = defaultSlot(), let other = defaultSlot() else { return true }
        guard one.isSameValue(as: other) else { return false }
        guard type == .date, case .real(let seconds) = one else { return true }
        let day = 86_400.0
        guard abs(seconds - Date.now.timeIntervalSinceReferenceDate) > day else { return false }
        usleep(1_500)
        return defaultSlot()?.isSameValue(as: one) ?? true
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

    /// Describes an attribute, or a relationship without `@Relationship`.
    ///
    /// - Parameters:
    ///   - constant: The initial value, if it is a literal.
    ///   - defaultValue: Any other initial value.
    public init<Model: PersistentModel, Value>(
      _ name: String, _ keyPath: KeyPath<Model, Value>,
      _ metadata: AttributeMetadata = AttributeMetadata(), constant: Value? = nil,
      defaultValue: (() -> Value)? = nil
    ) {
      self.init(name, Value.self, metadata, constant: constant, defaultValue: defaultValue)
      self.keyPath = keyPath
    }

    /// Describes an attribute, or a relationship without `@Relationship`, that no key path of the module names.
    public init<Value>(
      _ name: String, _ type: Value.Type, _ metadata: AttributeMetadata = AttributeMetadata(),
      constant: Value? = nil, defaultValue: (() -> Value)? = nil
    ) {
      self.name = name
      kind = Self.kind(metadata, defaultValue ?? constant.map { constant in { constant } })
    }

    /// Describes a relationship. The schema has no initial values of relationships.
    public init<Model: PersistentModel, Value>(
      _ name: String, _ keyPath: KeyPath<Model, Value>, _ metadata: RelationshipMetadata,
      constant: Value? = nil, defaultValue: (() -> Value)? = nil
    ) {
      self.init(name, Value.self, metadata, constant: constant, defaultValue: defaultValue)
      self.keyPath = keyPath
    }

    /// Describes a relationship that no key path of the module names.
    public init<Value>(
      _ name: String, _ type: Value.Type, _ metadata: RelationshipMetadata,
      constant: Value? = nil, defaultValue: (() -> Value)? = nil
    ) {
      self.name = name
      kind =
        Self.relationship(Value.self, metadata).map { .relationship($0) }
        ?? Self.kind(AttributeMetadata(), defaultValue ?? constant.map { constant in { constant } })
    }

    private static func kind<Value>(
      _ metadata: AttributeMetadata, _ defaultValue: (() -> Value)?
    ) -> Kind {
      if let type = Value.self as? any PersistentAttribute.Type {
        return .attribute(attribute(type, metadata, defaultValue))
      }
      if let relationship = relationship(Value.self, RelationshipMetadata(metadata)) {
        return .relationship(relationship)
      }
      let wrapped = (Value.self as? any OptionalType.Type)?.wrappedType ?? Value.self
      if let raw = wrapped as? any RawRepresentable.Type,
        let kind = attribute(rawValue: raw, metadata, defaultValue)
      {
        return .attribute(kind)
      }
      if let codable = wrapped as? any Codable.Type {
        return .attribute(attribute(codable: codable, metadata, defaultValue))
      }
      return .attribute(
        AttributeKind(
          type: .codable, isOptional: false, metadata: metadata, defaultSlot: { nil },
          valueType: Value.self, defaultProblem: { unstorable }))
    }

    /// The compiler reports most such types, by the check that `@Model` emits.
    private static var unstorable: InstarError {
      InstarError(
        .invalidModel, "cannot store a value",
        cause: "the type of the property must be a model, an array of models, or Codable")
    }

    private static func attribute<Stored: PersistentAttribute, Value>(
      _ type: Stored.Type, _ metadata: AttributeMetadata, _ defaultValue: (() -> Value)?
    ) -> AttributeKind {
      AttributeKind(
        type: type.attributeType, isOptional: type.isOptionalAttribute, metadata: metadata,
        defaultSlot: {
          guard let defaultValue, let value = defaultValue() as? Stored else { return nil }
          return value.slot
        }, valueType: type, accepts: type.acceptsSlot, refusal: type.slotRefusal)
    }

    /// Describes an attribute that is stored by its raw value; `nil` if that is not an attribute type.
    private static func attribute<Raw: RawRepresentable, Value>(
      rawValue type: Raw.Type, _ metadata: AttributeMetadata, _ defaultValue: (() -> Value)?
    ) -> AttributeKind? {
      func attribute<Stored: PersistentAttribute>(_ stored: Stored.Type) -> AttributeKind {
        AttributeKind(
          type: stored.attributeType, isOptional: Value.self is any OptionalType.Type,
          metadata: metadata,
          defaultSlot: {
            guard let defaultValue, let value = defaultValue() as? Raw else { return nil }
            return (value.rawValue as? Stored)?.slot
          }, valueType: Value.self,
          accepts: { slot in
            (Stored(slot: slot) as? Raw.RawValue).flatMap(Raw.init(rawValue:)) != nil
          })
      }
      return (Raw.RawValue.self as? any PersistentAttribute.Type).map { attribute($0) }
    }

    /// Describes an attribute of a Codable type. A struct or an enum has a column for each field or case; other types
    /// are JSON.
    private static func attribute<Wrapped: Codable, Value>(
      codable type: Wrapped.Type, _ metadata: AttributeMetadata, _ defaultValue: (() -> Value)?
    ) -> AttributeKind {
      let form = metadata.options.contains(.codable) ? .json : CodableForm.of(type)
      func slot() throws -> Slot? {
        guard let defaultValue, let value = defaultValue() as? Wrapped else { return nil }
        return try form.slot(of: value)
      }
      return AttributeKind(
        type: .codable, isOptional: Value.self is any OptionalType.Type, metadata: metadata,
        // `defaultProblem` reports an initial value that cannot be stored when the schema is used.
        defaultSlot: { (try? slot()) ?? nil },
        valueType: Value.self, form: form,
        accepts: { form.value(of: $0, as: type) != nil },
        refusal: { form.refusal(of: $0, as: type) },
        typeProblem: { form.problem(of: type) },
        defaultProblem: {
          do {
            _ = try slot()
            return nil
          } catch {
            return error
          }
        })
    }

    /// Returns `nil` for the type of an attribute.
    private static func relationship(
      _ type: any Any.Type, _ metadata: RelationshipMetadata
    ) -> RelationshipKind? {
      let optional = type as? any OptionalType.Type
      let wrapped = optional?.wrappedType ?? type
      if let model = wrapped as? any PersistentModel.Type {
        return RelationshipKind(
          destination: model, isToOne: true, isOptional: optional != nil, valueType: type,
          metadata: metadata)
      }
      return (wrapped as? any ModelArray.Type).map {
        RelationshipKind(
          destination: $0.modelType, isToOne: false, isOptional: true, valueType: type,
          metadata: metadata)
      }
    }

    /// Describes an attribute of any type that a value transformer stores.
    public init<Model: PersistentModel, Value>(
      transformable name: String, _ keyPath: KeyPath<Model, Value>, _ metadata: AttributeMetadata,
      constant: Value? = nil, defaultValue: (() -> Value)? = nil
    ) {
      self.init(
        transformable: name, Value.self, metadata, constant: constant, defaultValue: defaultValue)
      self.keyPath = keyPath
    }

    /// Describes an attribute of any type that a value transformer stores, and that no key path of the module names.
    public init<Value>(
      transformable name: String, _ type: Value.Type, _ metadata: AttributeMetadata,
      constant: Value? = nil, defaultValue: (() -> Value)? = nil
    ) {
      let defaultValue = defaultValue ?? constant.map { constant in { constant } }
      let transformation = ValueTransformation(
        transformerName: metadata.options.lazy.compactMap(\.transformerName).first ?? "")
      self.name = name
      kind = .attribute(
        AttributeKind(
          type: .data, isOptional: Value.self is any OptionalType.Type, metadata: metadata,
          // The transformer must be registered only when a value is stored.
          defaultSlot: { defaultValue.flatMap { try? transformation.slot(of: $0()) } },
          valueType: Value.self, transformation: transformation,
          accepts: { transformation.value(of: $0, as: Value.self) != nil }))
    }
  }
}
