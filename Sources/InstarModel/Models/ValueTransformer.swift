public import InstarSchema
import Synchronization

/// Makes the bytes that an attribute with the option `.transformable(by:)` is stored as, and the value of the bytes.
///
/// Foundation has this class on Apple's platforms only. A subclass overrides both methods; what its
/// `transformedValue(_:)` returns must be `Data`, and is what the store holds.
///
/// ```swift
/// final class ColorTransformer: ValueTransformer {
///   override func transformedValue(_ value: Any?) -> Any? { (value as? Color).map { Data($0.bytes) } }
///   override func reverseTransformedValue(_ value: Any?) -> Any? { (value as? Data).flatMap(Color.init(bytes:)) }
/// }
/// ```
///
/// One transformer may be used by several threads at once.
open class ValueTransformer {
  /// Called by the SDK where an attribute names the class.
  public required init() {}

  /// The class of what `transformedValue(_:)` returns. Not asked by Instar.
  open class func transformedValueClass() -> AnyClass { ValueTransformer.self }

  /// Whether there is a way back. Not asked by Instar: a stored attribute always needs one.
  open class func allowsReverseTransformation() -> Bool { true }

  /// The `Data` that a value is stored as; `nil` where there is none.
  open func transformedValue(_ value: Any?) -> Any? { value }

  /// The value of stored `Data`; `nil` where it is not one of this transformer.
  open func reverseTransformedValue(_ value: Any?) -> Any? { value }

  /// Transformers are shared between threads by contract.
  private struct Known: @unchecked Sendable {
    let transformer: ValueTransformer
  }

  private static let known = Mutex<[String: Known]>([:])

  /// Makes a transformer known by a name, or unknown where it is `nil`. To be called before a container is opened whose
  /// models name it.
  public static func setValueTransformer(
    _ transformer: ValueTransformer?, forName name: NSValueTransformerName
  ) {
    let entry = transformer.map { Known(transformer: $0) }
    known.withLock { $0[name.rawValue] = entry }
  }

  /// The names of all transformers that are known, in order.
  public static func valueTransformerNames() -> [NSValueTransformerName] {
    known.withLock { $0.keys.sorted() }.map { NSValueTransformerName($0) }
  }

  static func named(_ name: String) -> ValueTransformer? {
    known.withLock { $0[name] }?.transformer
  }
}

/// The name a value transformer is known by.
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  public init(rawValue: String) { self.rawValue = rawValue }

  /// The same without a label.
  public init(_ rawValue: String) { self.rawValue = rawValue }
}

extension Schema.Attribute.Option {
  /// A value transformer of this class makes the stored bytes of the value, and the value of the bytes.
  ///
  /// The attribute's type may be any. The class is known by its name from here on, and so is the option in a schema.
  public static func transformable(by transformer: ValueTransformer.Type) -> Self {
    let name = String(describing: transformer)
    if ValueTransformer.named(name) == nil {
      ValueTransformer.setValueTransformer(
        transformer.init(), forName: NSValueTransformerName(name))
    }
    return transformable(by: name)
  }

  /// The transformer's name; `nil` for other options.
  var transformerName: String? { name == "transformable" ? argument : nil }
}
