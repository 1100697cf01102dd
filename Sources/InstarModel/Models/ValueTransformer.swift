public import InstarSchema
import Synchronization

/// Converts the values of an attribute with the option `.transformable(by:)` to stored bytes and back.
///
/// Foundation has this class on Apple's platforms only. A subclass overrides both methods. Its `transformedValue(_:)`
/// must return `Data`, which the store keeps.
///
/// ```swift
/// final class ColorTransformer: ValueTransformer {
///   override func transformedValue(_ value: Any?) -> Any? { (value as? Color).map { Data($0.bytes) } }
///   override func reverseTransformedValue(_ value: Any?) -> Any? { (value as? Data).flatMap(Color.init(bytes:)) }
/// }
/// ```
///
/// Several threads may use a transformer at once.
open class ValueTransformer {
  /// Creates a transformer. The SDK calls it if an attribute names the class.
  public required init() {}

  /// The class of the result of `transformedValue(_:)`. Instar does not use it.
  open class func transformedValueClass() -> AnyClass { ValueTransformer.self }

  /// Whether `reverseTransformedValue(_:)` works. Instar does not use it, because a stored attribute always needs it.
  open class func allowsReverseTransformation() -> Bool { true }

  /// Returns the `Data` to store for a value, or `nil` for no value.
  open func transformedValue(_ value: Any?) -> Any? { value }

  /// Returns the value of stored `Data`, or `nil` if the transformer did not write it.
  open func reverseTransformedValue(_ value: Any?) -> Any? { value }

  /// Transformers must allow use by several threads.
  private struct Known: @unchecked Sendable {
    let transformer: ValueTransformer
  }

  private static let known = Mutex<[String: Known]>([:])

  /// Registers a transformer under a name, or removes it if it is `nil`. Call it before opening a container whose
  /// models use the name.
  public static func setValueTransformer(
    _ transformer: ValueTransformer?, forName name: NSValueTransformerName
  ) {
    let entry = transformer.map { Known(transformer: $0) }
    known.withLock { $0[name.rawValue] = entry }
  }

  /// Returns the names of all registered transformers, sorted.
  public static func valueTransformerNames() -> [NSValueTransformerName] {
    known.withLock { $0.keys.sorted() }.map { NSValueTransformerName($0) }
  }

  static func named(_ name: String) -> ValueTransformer? {
    known.withLock { $0[name] }?.transformer
  }
}

/// The name of a registered value transformer.
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
  /// The name that `.transformable(by:)` gives.
  public let rawValue: String

  /// Creates a name. A transformer of that name need not be registered yet.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Creates a name, without an argument label.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// Foundation's own transformer, which archives a collection of plain values securely. It need not be registered.
  public static let secureUnarchiveFromDataTransformerName = NSValueTransformerName(
    "NSSecureUnarchiveFromData")

  /// Foundation's own transformer, which archives a collection of plain values. It need not be registered.
  public static let keyedUnarchiveFromDataTransformerName = NSValueTransformerName(
    "NSKeyedUnarchiveFromData")
}

extension Schema.Attribute.Option {
  /// Stores the attribute with a value transformer of this class, which it registers under the name of the class.
  ///
  /// The attribute can have any type. The option in a schema has the name only.
  public static func transformable(by transformer: ValueTransformer.Type) -> Self {
    let name = String(describing: transformer)
    if ValueTransformer.named(name) == nil {
      ValueTransformer.setValueTransformer(
        transformer.init(), forName: NSValueTransformerName(name))
    }
    return transformable(by: name)
  }

  /// The name of the transformer; `nil` for other options.
  var transformerName: String? { name == "transformable" ? argument : nil }
}
