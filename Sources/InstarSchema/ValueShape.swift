/// What a Swift type reads of stored values, where it may refuse one: the cases of an enum, the elements of a
/// collection, the fields of a struct. Versions of a plan have types of their own, so names cannot be compared.
package indirect enum ValueShape: Sendable, Codable, Hashable {
  /// A type that is only known by its name.
  case named(type: String)
  case optional(of: ValueShape)
  /// An array or a set.
  case list(of: ValueShape)
  /// A dictionary.
  case map(keys: ValueShape, values: ValueShape)
  /// An enum that is stored by the names of its cases.
  case cases(names: [String])
  /// An enum that is stored by its raw values.
  case rawValues(of: [AttributeValue])
  /// A struct.
  case fields(of: [String: ValueShape])

  /// Whether it is certain that the type reads all values of another one.
  package func reads(_ other: ValueShape) -> Bool {
    if self == other { return true }
    switch (self, other) {
    case (.optional(let own), .optional(let other)): return own.reads(other)
    case (.optional(let own), _): return own.reads(other)
    case (.list(let own), .list(let other)): return own.reads(other)
    case (.map(let ownKeys, let own), .map(let otherKeys, let other)):
      return ownKeys.reads(otherKeys) && own.reads(other)
    case (.named(let own), .named(let other)):
      return IntegerBits(own)?.holds(IntegerBits(other)) == true
    case (.cases(let own), .cases(let other)): return Set(own).isSuperset(of: other)
    case (.rawValues(let own), .rawValues(let other)): return Set(own).isSuperset(of: other)
    case (.fields(let own), .fields(let other)):
      return own.allSatisfy { name, shape in
        other[name].map(shape.reads) ?? shape.isOptional
      }
    default: return false
    }
  }

  private var isOptional: Bool {
    if case .optional = self { true } else { false }
  }

  /// The shape of a value, where there may be none.
  package var unwrapped: ValueShape {
    if case .optional(let wrapped) = self { wrapped.unwrapped } else { self }
  }

  /// The raw values of an enum; `nil` for other types.
  package var rawValues: [AttributeValue]? {
    if case .rawValues(let values) = unwrapped { values } else { nil }
  }

  private static let shownCount = 20

  /// "'open' | 'closed'", "[Int]", "{name: String, tags: [String]}".
  package var text: String {
    switch self {
    case .named(let type): type
    case .optional(let wrapped): "\(wrapped.text)?"
    case .list(let element): "[\(element.text)]"
    case .map(let key, let value): "[\(key.text): \(value.text)]"
    case .cases(let names): Self.list(names.sorted(), " | ")
    case .rawValues(let values): Self.list(values.map(Self.text(of:)).sorted(), " | ")
    case .fields(let fields):
      "{\(Self.list(fields.sorted { $0.key < $1.key }.map { "\($0): \($1.text)" }, ", "))}"
    }
  }

  private static func text(of value: AttributeValue) -> String {
    switch value {
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text): "'\(text)'"
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }

  private static func list(_ parts: [String], _ separator: String) -> String {
    let rest = parts.count - shownCount
    return parts.prefix(shownCount).joined(separator: separator)
      + (rest > 0 ? "\(separator)\(rest) more" : "")
  }
}

/// The width of an integer type of Swift.
private struct IntegerBits {
  private let isSigned: Bool
  private let count: Int

  /// Reads the name of a type such as `UInt16`; `nil` for any other type.
  init?(_ type: String) {
    isSigned = !type.hasPrefix("U")
    let name = isSigned ? type[...] : type.dropFirst()
    guard name.hasPrefix("Int"), let count = name == "Int" ? 64 : Int(name.dropFirst(3)) else {
      return nil
    }
    self.count = count
  }

  /// Whether the type has all values of another one.
  func holds(_ other: IntegerBits?) -> Bool {
    guard let other, isSigned || !other.isSigned else { return false }
    return isSigned == other.isSigned ? count >= other.count : count > other.count
  }
}
