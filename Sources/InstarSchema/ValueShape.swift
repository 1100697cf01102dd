/// What a Swift type reads of stored values, where it may refuse one: the cases of an enum, the elements of a
/// collection, the fields of a struct. Versions of a plan have types of their own, so their names tell nothing.
package indirect enum ValueShape: Sendable, Codable, Hashable {
  /// A type that is only known by its name.
  case named(type: String)
  case optional(of: ValueShape)
  /// An array or a set.
  case list(of: ValueShape)
  /// A dictionary with these values.
  case map(of: ValueShape)
  /// An enum: its raw values as SQL literals, or the names of its cases.
  case cases(values: [String])
  /// A struct.
  case fields(of: [String: ValueShape])

  /// Whether it is certain that the type reads all values of another one.
  package func reads(_ other: ValueShape) -> Bool {
    if self == other { return true }
    switch (self, other) {
    case (.optional(let own), .optional(let other)): return own.reads(other)
    case (.optional(let own), _): return own.reads(other)
    case (.list(let own), .list(let other)), (.map(let own), .map(let other)):
      return own.reads(other)
    case (.cases(let own), .cases(let other)): return Set(own).isSuperset(of: other)
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

  /// The raw values of an enum, as SQL literals; `nil` for other types.
  package var rawValues: [String]? {
    switch self {
    case .optional(let wrapped): wrapped.rawValues
    case .cases(let values): values
    default: nil
    }
  }

  private static let shownCount = 20

  /// "'open' | 'closed'", "[Int]", "{name: String, tags: [String]}".
  package var text: String {
    switch self {
    case .named(let type): type
    case .optional(let wrapped): "\(wrapped.text)?"
    case .list(let element): "[\(element.text)]"
    case .map(let value): "[String: \(value.text)]"
    case .cases(let values): Self.list(values, " | ")
    case .fields(let fields):
      "{\(Self.list(fields.sorted { $0.key < $1.key }.map { "\($0): \($1.text)" }, ", "))}"
    }
  }

  private static func list(_ parts: [String], _ separator: String) -> String {
    let rest = parts.count - shownCount
    return parts.prefix(shownCount).joined(separator: separator)
      + (rest > 0 ? "\(separator)\(rest) more" : "")
  }
}
