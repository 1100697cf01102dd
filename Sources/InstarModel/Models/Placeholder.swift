@_spi(Reflection) import Swift
import Foundation

/// Creates the value that a getter returns if the store has none. A getter cannot throw; the context's next fetch or
/// save does.
enum Placeholder {
  /// Returns a value of the type; `nil` for a class, or an enum with associated values, whose decoding refuses
  /// everything empty.
  static func value<Value>(of type: Value.Type) -> Value? { value(of: type, depth: 0) }

  static func value<Value>(of type: Value.Type, depth: Int) -> Value? {
    if let first = EnumCases.all(of: type)?.first { return first }
    if let attribute = type as? any PersistentAttribute.Type {
      return attribute.placeholder as? Value
    }
    if let iterable = type as? any CaseIterable.Type, let first = firstCase(of: iterable) {
      return first as? Value
    }
    if let raw = type as? any RawRepresentable.Type, let value = rawValue(of: raw, depth: depth) {
      return value as? Value
    }
    if let optional = type as? any NilValue.Type { return optional.nilValue as? Value }
    if let decodable = type as? any Decodable.Type,
      let value = decoded(decodable, depth: depth) as? Value
    {
      return value
    }
    return structure(of: type, depth: depth)
  }

  /// Returns a struct with placeholders in its fields. It is for a type whose decoding refuses empty values, such as
  /// a mail address that needs an "@".
  ///
  /// The type would not create such a value, but Swift can keep, copy and release it, because the memory of a struct
  /// consists of its stored fields (swift/docs/ABI/TypeLayout.rst, "Fragile Struct and Tuple Layout").
  private static func structure<Value>(of type: Value.Type, depth: Int) -> Value? {
    let structKind: UInt = 0x200
    guard depth <= depthLimit,
      unsafeBitCast(type, to: UnsafeRawPointer.self).load(as: UInt.self) == structKind
    else { return nil }
    var fields: [(offset: Int, write: (UnsafeMutableRawPointer) -> Void)] = []
    let isWhole = _forEachField(of: type, options: []) { _, offset, fieldType, _ in
      guard let write = writing(fieldType, depth: depth + 1) else { return false }
      fields.append((offset, write))
      return true
    }
    // A type that was compiled without reflection has no list of fields.
    guard isWhole, !fields.isEmpty || MemoryLayout<Value>.size == 0 else { return nil }
    return withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { memory in
      let bytes = UnsafeMutableRawBufferPointer(memory)
      _ = bytes.initializeMemory(as: UInt8.self, repeating: 0)
      guard let base = bytes.baseAddress else { return nil }
      for field in fields { field.write(base + field.offset) }
      return memory.moveElement(from: 0)
    }
  }

  /// Returns a function that writes the placeholder of a field; `nil` if the field has no placeholder.
  private static func writing<Field>(
    _ type: Field.Type, depth: Int
  ) -> ((UnsafeMutableRawPointer) -> Void)? {
    value(of: type, depth: depth).map { value in
      { $0.initializeMemory(as: Field.self, to: value) }
    }
  }

  /// A type may contain itself.
  private static let depthLimit = 20

  private static func firstCase<Value: CaseIterable>(of type: Value.Type) -> Any? {
    type.allCases.first
  }

  private static func rawValue<Value: RawRepresentable>(of type: Value.Type, depth: Int) -> Any? {
    value(of: Value.RawValue.self, depth: depth).flatMap(Value.init(rawValue:))
  }

  private static func decoded<Value: Decodable>(_ type: Value.Type, depth: Int) -> Value? {
    // The reason does not matter; the caller tries another way.
    depth > depthLimit ? nil : try? type.init(from: EmptyDecoder(depth: depth + 1))
  }
}
