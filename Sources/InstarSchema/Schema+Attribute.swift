extension Schema {
  /// A property that holds a value.
  ///
  /// A property that is kept in several columns, a Codable struct or an enum without raw value, is one attribute for
  /// each of them, named by property and field: "author.name".
  public struct Attribute: SchemaProperty, Codable {
    /// The name of the Swift property.
    public var name: String
    /// The name in the previous version; equal to `name` unless the attribute was renamed.
    public var originalName: String
    /// The type of its values.
    public var type: AttributeType
    /// Whether a model may have no value for it.
    public var isOptional: Bool
    /// The options of `@Attribute`.
    public var options: [Option]

    /// The declared default, as it is stored: existing rows get it if the attribute is new and required. `nil` for
    /// none.
    public var storedDefault: AttributeValue?

    /// Distinguishes two versions of an attribute without other differences.
    public var hashModifier: String?

    /// The type of the Swift property; none in a schema that came from another process.
    package var swiftType = SwiftType(nil)
    /// The type of the whole property, where this is one of its columns.
    package var compositeType = SwiftType(nil)
    /// What the declaration of the Swift property says and its columns do not show.
    package var declaration = Declaration()

    private enum CodingKeys: String, CodingKey {
      case name, originalName, type, isOptional, options, hashModifier, column,
        declaration
      case storedDefault = "defaultValue"
    }

    /// The column in a plain store, if it is not the default one.
    public var column: Column?

    /// An attribute; without `originalName`, one that was not renamed.
    public init(
      name: String, originalName: String? = nil, type: AttributeType, isOptional: Bool = false,
      options: [Option] = [], defaultValue: AttributeValue? = nil, hashModifier: String? = nil
    ) {
      self.name = name
      self.originalName = originalName ?? name
      self.type = type
      self.isOptional = isOptional
      self.options = options
      storedDefault = defaultValue
      self.hashModifier = hashModifier
    }

    /// Whether two models cannot have the same value.
    public var isUnique: Bool { options.contains(.unique) }

    /// Whether the value is never stored.
    public var isEphemeral: Bool { options.contains(.ephemeral) }

    /// `true`.
    public var isAttribute: Bool { true }

    /// Whether the value is never stored.
    public var isTransient: Bool { isEphemeral }

    /// Whether a value transformer of the app converts the stored value.
    public var isTransformable: Bool { options.contains { $0.name == "transformable" } }

    /// The expression of a derived value; `nil` for other values.
    public var derivation: String? { options.first { $0.name == "derived" }?.argument }
  }

  /// The type of an attribute's values, which decides how they are stored.
  @frozen
  public enum AttributeType: String, Sendable, Hashable, Codable, CaseIterable {
    case bool, int16, int32, int64, decimal, double, float, string, date, data, uuid, url
    /// A value of a Codable type, as UTF-8 JSON.
    case codable

    /// The type as Swift writes it, for messages: `Int` for what SwiftData stores as 64 bits.
    package var swiftName: String {
      switch self {
      case .bool: "Bool"
      case .int16: "Int16"
      case .int32: "Int32"
      case .int64: "Int"
      case .decimal: "Decimal"
      case .double: "Double"
      case .float: "Float"
      case .string: "String"
      case .date: "Date"
      case .data: "Data"
      case .uuid: "UUID"
      case .url: "URL"
      case .codable: "Codable"
      }
    }
  }
}

extension Schema.Attribute {
  /// The type of its values as Swift writes it, such as `Date?`.
  package var swiftTypeName: String { type.swiftName + (isOptional ? "?" : "") }
}

extension Schema.Attribute {
  /// An option of `@Attribute`.
  public struct Option: Sendable, Hashable, Codable {
    /// The option's name in Swift.
    public let name: String
    /// The argument: a transformer's name or an expression.
    public let argument: String?

    init(_ name: String, _ argument: String? = nil) {
      self.name = name
      self.argument = argument
    }

    /// Two models cannot have the same value. Inserting a value that exists updates that row (upsert).
    public static let unique = Option("unique")
    /// Large values are kept in files beside the store (`.NAME_SUPPORT/_EXTERNAL_DATA`), as Apple's frameworks keep
    /// them, and read when they are asked for. Counts for `Data` and values stored as JSON in stores of the Core Data
    /// format; elsewhere values stay in their row.
    public static let externalStorage = Option("externalStorage")
    /// Keeps the value in the store's history when the model is deleted.
    public static let preserveValueOnDeletion = Option("preserveValueOnDeletion")
    /// Accepted; there is no Spotlight on Linux.
    public static let spotlight = Option("spotlight")
    /// Kept in memory only: no column, and a model that is read from the store has its initial value.
    public static let ephemeral = Option("ephemeral")
    /// Accepted; there is no CloudKit on Linux.
    public static let allowsCloudEncryption = Option("allowsCloudEncryption")
    /// The value is kept whole, as JSON in one column, also where its type would have a column for each field.
    public static let codable = Option("codable")
    /// The value transformer registered by that name makes the stored bytes of the value, and the value of the bytes.
    public static func transformable(by transformerName: String) -> Option {
      Option("transformable", transformerName)
    }
    /// The value is computed by Apple's frameworks, as an `NSExpression` says: `count:(pages)`. Instar keeps the column
    /// and what computes it.
    public static func derived(_ expression: String) -> Option { Option("derived", expression) }
  }
}

extension Schema.Attribute {
  /// What the declaration of a property says and its columns do not show, so that `schema import` can write it again.
  /// Counts for nothing when attributes are compared, because it changes nothing in a store.
  package struct Declaration: Sendable, Hashable, Codable {
    /// Whether the property is an enum. The columns of a composite are then its cases.
    package var isEnumeration = false
    /// Whether each model has a value of the composite.
    package var isRequiredComposite = false
    /// Whether each value of the composite has a value of this field.
    package var isRequiredField = false
    /// Whether the composite has an initial value.
    package var hasInitialValue = false
    /// What the column has where a model has the composite's initial value; `nil` for NULL.
    package var initialValue: AttributeValue?

    /// What is known of a column that only a table shows: nothing.
    package init() {}

    package init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      isEnumeration = try container.decode(Bool.self, forKey: .isEnumeration)
      isRequiredComposite = try container.decode(Bool.self, forKey: .isRequiredComposite)
      isRequiredField = try container.decode(Bool.self, forKey: .isRequiredField)
      // Documents of schemas that were exported before it was known do not have it.
      hasInitialValue = try container.decodeIfPresent(Bool.self, forKey: .hasInitialValue) ?? false
      initialValue = try container.decodeIfPresent(AttributeValue.self, forKey: .initialValue)
    }

    fileprivate var isEmpty: Bool {
      !isEnumeration && !isRequiredComposite && !isRequiredField && !hasInitialValue
    }

    package static func == (left: Declaration, right: Declaration) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
  }

  /// Whether this is one column of a composite.
  package var isPartOfComposite: Bool { name.contains(".") }
}

extension Schema.AttributeType {
  /// The declared type of a column in a store of the format `coredata` (Core Data layout, section 3.1).
  package var columnType: String {
    switch self {
    case .bool, .int16, .int32, .int64: "INTEGER"
    case .decimal: "DECIMAL"
    case .double, .float: "FLOAT"
    case .string, .url: "VARCHAR"
    case .date: "TIMESTAMP"
    case .data, .uuid, .codable: "BLOB"
    }
  }

  /// The values of an integer type narrower than SQLite's own integers; `nil` for every other type.
  package var integerRange: ClosedRange<Int>? {
    switch self {
    case .int16: Int(Int16.min)...Int(Int16.max)
    case .int32: Int(Int32.min)...Int(Int32.max)
    default: nil
    }
  }

  /// Returns whether stored values of one type are valid values of the other without conversion, as integers of all
  /// widths are.
  public func isStoredLike(_ other: Schema.AttributeType) -> Bool {
    func kind(_ type: Schema.AttributeType) -> Schema.AttributeType {
      switch type {
      case .int16, .int32, .int64: .int64
      case .float, .double: .double
      default: type
      }
    }
    return kind(self) == kind(other)
  }
}

// The coding that the compiler writes for `Attribute` calls these two: stored schemas of earlier versions do not have
// the key, and most attributes do not need it.

extension KeyedDecodingContainer {
  func decode(
    _ type: Schema.Attribute.Declaration.Type, forKey key: Key
  ) throws -> Schema.Attribute.Declaration {
    try decodeIfPresent(type, forKey: key) ?? Schema.Attribute.Declaration()
  }
}

extension KeyedEncodingContainer {
  mutating func encode(_ value: Schema.Attribute.Declaration, forKey key: Key) throws {
    try encodeIfPresent(value.isEmpty ? nil : value, forKey: key)
  }
}
