public import Foundation
public import InstarSchema

/// A type that an attribute of a model can have: Swift's numbers, texts and flags, dates, data, URLs, UUIDs, and
/// optionals of these. A model can store other types too, such as enums and Codable structs, without this protocol.
public protocol PersistentAttribute {
  /// The attribute type in a schema.
  static var attributeType: Schema.AttributeType { get }
  /// Whether the type is an `Optional`.
  static var isOptionalAttribute: Bool { get }
  /// Creates a value from its stored form; `nil` if that is not of this type.
  init?(slot: Slot)
  /// The stored form of the value.
  var slot: Slot { get }
  /// The value that a getter returns if the store has none of this type. A getter cannot throw; the context's next
  /// fetch or save does.
  static var placeholder: Self { get }
}

extension PersistentAttribute {
  /// `false`: only `Optional` says otherwise.
  public static var isOptionalAttribute: Bool { false }
}

extension PersistentAttribute {
  /// Whether the type reads a value of its storage class; `nil` where it reads all of them. Only an integer type that
  /// is narrower than SQLite's integers refuses some, as after a stage that made the type narrower.
  static var acceptsSlot: ((Slot) -> Bool)? {
    narrowInteger.map { _ in { Self(slot: $0) != nil } }
  }

  /// Why it refuses a value.
  static var slotRefusal: ((Slot) -> String?)? {
    narrowInteger.map { type in { _ in "the value is not between \(type.min) and \(type.max)" } }
  }

  private static var narrowInteger: (any FixedWidthInteger.Type)? {
    let type = (self as? any OptionalType.Type)?.wrappedType ?? self
    guard let integer = type as? any FixedWidthInteger.Type, integer.bitWidth < Int64.bitWidth
    else { return nil }
    return integer
  }
}

extension Optional: PersistentAttribute where Wrapped: PersistentAttribute {
  /// That of the wrapped type; the column is optional.
  public static var attributeType: Schema.AttributeType { Wrapped.attributeType }
  /// `true`.
  public static var isOptionalAttribute: Bool { true }
  /// `nil`.
  public static var placeholder: Wrapped? { nil }

  /// Reads NULL as `nil`, and any other value as the wrapped type does.
  public init?(slot: Slot) {
    if case .null = slot {
      self = .none
      return
    }
    guard let wrapped = Wrapped(slot: slot) else { return nil }
    self = .some(wrapped)
  }

  /// NULL for `nil`.
  public var slot: Slot {
    switch self {
    case .none: .null
    case .some(let wrapped): wrapped.slot
    }
  }
}

extension String: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .string }
  public static var placeholder: String { "" }
  /// Reads a text; no number is converted.
  public init?(slot: Slot) {
    guard case .text(let text) = slot else { return nil }
    self = text
  }
  public var slot: Slot { .text(self) }
}

extension Bool: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .bool }
  public static var placeholder: Bool { false }
  /// Reads a number; all but 0 are `true`.
  public init?(slot: Slot) {
    guard case .integer(let integer) = slot else { return nil }
    self = integer != 0
  }
  public var slot: Slot { .integer(self ? 1 : 0) }
}

extension FixedWidthInteger where Self: PersistentAttribute {
  /// The smallest type of Core Data that holds all values; an unsigned one needs a bit more.
  public static var attributeType: Schema.AttributeType {
    switch bitWidth + (isSigned ? 0 : 1) {
    case ...16: .int16
    case ...32: .int32
    default: .int64
    }
  }
  public static var placeholder: Self { 0 }
  /// Reads a whole number that fits into the type.
  public init?(slot: Slot) {
    // A 64-bit unsigned value is stored with the same bits, because SQLite's integers are signed.
    guard case .integer(let integer) = slot else { return nil }
    if Self.bitWidth == 64 {
      self = Self(truncatingIfNeeded: integer)
    } else {
      guard let exact = Self(exactly: integer) else { return nil }
      self = exact
    }
  }
  public var slot: Slot { .integer(Int64(truncatingIfNeeded: self)) }
}

extension Int: PersistentAttribute {}
extension Int8: PersistentAttribute {}
extension Int16: PersistentAttribute {}
extension Int32: PersistentAttribute {}
extension Int64: PersistentAttribute {}
extension UInt: PersistentAttribute {}
extension UInt8: PersistentAttribute {}
extension UInt16: PersistentAttribute {}
extension UInt32: PersistentAttribute {}
extension UInt64: PersistentAttribute {}

extension BinaryFloatingPoint where Self: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .double }
  public static var placeholder: Self { 0 }
  /// Reads a number with or without a fraction.
  public init?(slot: Slot) {
    switch slot {
    case .real(let real): self.init(real)
    // A column with NUMERIC or REAL affinity may return a whole number as an integer.
    case .integer(let integer): self.init(integer)
    default: return nil
    }
  }
  public var slot: Slot { .real(Double(self)) }
}

extension Double: PersistentAttribute {}
extension CGFloat: PersistentAttribute {}
extension Float: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .float }
}

extension Decimal: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .decimal }
  public static var placeholder: Decimal { 0 }
  /// Reads a number, or a text that is one.
  public init?(slot: Slot) {
    switch slot {
    case .integer(let integer): self = Decimal(integer)
    case .real(let real) where real.isNaN: self = .nan
    // Converted through text, because 10.11 as a binary fraction is not 10.11.
    case .real(let real):
      guard let decimal = Decimal(string: "\(real)") else { return nil }
      self = decimal
    case .text(let text):
      guard let decimal = Decimal(string: text) else { return nil }
      self = decimal
    default: return nil
    }
  }
  /// Text, which SQLite's NUMERIC affinity converts to an integer or a real, as Core Data stores it. NaN has no such
  /// text, and a save refuses it.
  public var slot: Slot { isNaN ? .real(.nan) : .text(description) }
}

extension Date: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .date }
  public static var placeholder: Date { Date(timeIntervalSinceReferenceDate: 0) }
  /// Seconds since 2001-01-01 UTC.
  public init?(slot: Slot) {
    guard let seconds = Double(slot: slot) else { return nil }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
  public var slot: Slot { .real(timeIntervalSinceReferenceDate) }
}

extension UUID: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .uuid }
  public static var placeholder: UUID {
    UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
  }
  /// 16 bytes.
  public init?(slot: Slot) {
    guard case .blob(let data) = slot, data.count == 16 else { return nil }
    var bytes = UUID.placeholder.uuid
    withUnsafeMutableBytes(of: &bytes) { _ = data.copyBytes(to: $0) }
    self.init(uuid: bytes)
  }
  public var slot: Slot { .blob(withUnsafeBytes(of: uuid) { Data($0) }) }
}

extension Data: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .data }
  public static var placeholder: Data { Data() }
  /// Reads bytes; a text is not converted.
  public init?(slot: Slot) {
    guard case .blob(let data) = slot else { return nil }
    self = data
  }
  public var slot: Slot { .blob(self) }
}

extension URL: PersistentAttribute {
  public static var attributeType: Schema.AttributeType { .url }
  public static var placeholder: URL { URL(filePath: "/") }
  /// Reads a text that is a URL.
  public init?(slot: Slot) {
    guard case .text(let text) = slot, let url = URL(string: text) else { return nil }
    self = url
  }
  public var slot: Slot { .text(absoluteString) }
}

extension PersistentAttribute {
  /// The value as the default in a schema; `nil` for no value.
  var attributeValue: AttributeValue? { slot.attributeValue }
}
