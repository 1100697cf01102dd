extension Schema {
  /// A property that refers to other models.
  public struct Relationship: SchemaProperty, Codable {
    /// The name of the Swift property.
    public var name: String
    /// The name in the previous version; equal to `name` unless the relationship was renamed.
    public var originalName: String
    /// The name of the entity that it refers to.
    public var destination: String
    /// The name of the inverse relationship of `destination`; `nil` if there is none.
    public var inverseName: String?
    /// What happens to the destination's models when a model is deleted.
    public var deleteRule: DeleteRule
    /// 0 if a model may refer to none.
    public var minimumModelCount: Int
    /// 1 for a to-one relationship; 0 for a to-many relationship without a limit.
    public var maximumModelCount: Int
    /// Whether a model may refer to none.
    public var isOptional: Bool
    /// Whether a model refers to one model at most.
    public var isToOneRelationship: Bool
    /// The options of `@Relationship`.
    public var options: [Option]
    /// Distinguishes two versions of a relationship without other differences.
    public var hashModifier: String?

    /// The type of the Swift property; none in a schema that came from another process.
    package var swiftType = SwiftType(nil)
    /// The key paths of the Swift properties; none in a schema that came from another process.
    package var keyPaths = KeyPaths()

    /// The key path of the property. `nil` in a schema that was not made of model classes.
    public var keypath: AnyKeyPath? { keyPaths.property }

    /// The key path of the inverse, which starts at the destination; `nil` without an inverse, and in a schema that was
    /// not made of model classes.
    public var inverseKeyPath: AnyKeyPath? { keyPaths.inverse }

    private enum CodingKeys: String, CodingKey {
      case name, originalName, destination, inverseName, deleteRule, minimumModelCount
      case maximumModelCount, isOptional, isToOneRelationship, options, hashModifier, column
    }

    /// The columns in a plain store, where they are not the default ones.
    public var column: Column?

    /// A relationship; without an original name, one that was not renamed.
    public init(
      name: String, originalName: String? = nil, destination: String, inverseName: String? = nil,
      deleteRule: DeleteRule = .nullify, minimumModelCount: Int = 0, maximumModelCount: Int = 0,
      isOptional: Bool = true, isToOneRelationship: Bool, options: [Option] = [],
      hashModifier: String? = nil
    ) {
      self.name = name
      self.originalName = originalName ?? name
      self.destination = destination
      self.inverseName = inverseName
      self.deleteRule = deleteRule
      self.minimumModelCount = minimumModelCount
      self.maximumModelCount = maximumModelCount
      self.isOptional = isOptional
      self.isToOneRelationship = isToOneRelationship
      self.options = options
      self.hashModifier = hashModifier
    }

    /// What happens to the models at the other end when a model is deleted.
    @frozen
    public enum DeleteRule: String, Sendable, Hashable, Codable {
      /// Nothing; references may be left that point nowhere.
      case noAction
      /// They lose their reference to the deleted model.
      case nullify
      /// They are deleted too.
      case cascade
      /// The deletion is refused while there are any.
      case deny
    }

    /// An option of `@Relationship`.
    public struct Option: Sendable, Hashable, Codable {
      let name: String
      /// A model at the other end is referred to once.
      public static let unique = Option(name: "unique")
      /// The models at the other end of a to-many relationship have an order, which is kept.
      public static let ordered = Option(name: "ordered")
      /// No relationship of the destination is kept in step with this one, although there is one that could be.
      public static let withoutInverse = Option(name: "withoutInverse")
      /// The relationship is its own inverse, as that between friends: one of two models refers to the other exactly if
      /// the other refers to it. Its destination is the model itself.
      public static let ownInverse = Option(name: "ownInverse")
    }

    /// Whether a model at the other end is referred to once.
    public var isUnique: Bool { options.contains(.unique) }

    /// `false`.
    public var isAttribute: Bool { false }

    /// `false`: each relationship is stored.
    public var isTransient: Bool { false }

    /// Whether the models at the other end have an order.
    public var isOrdered: Bool { !isToOneRelationship && options.contains(.ordered) }

    /// Whether the relationship, of the entity of that name, is its own inverse.
    public func isOwnInverse(in entity: String) -> Bool {
      destination == entity && inverseName == name
    }
  }
}

extension Schema.Relationship {
  /// The key paths of a relationship. They count for nothing when relationships are compared, and do not travel.
  package struct KeyPaths: @unchecked Sendable, Hashable {
    // Key paths are immutable; they are only not marked Sendable.
    package var property: AnyKeyPath?
    package var inverse: AnyKeyPath?

    package init(property: AnyKeyPath? = nil, inverse: AnyKeyPath? = nil) {
      self.property = property
      self.inverse = inverse
    }

    package static func == (left: KeyPaths, right: KeyPaths) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }
}
