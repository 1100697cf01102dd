public import Foundation
import InstarSchema

/// The value of one property of one model, as it is kept in memory.
///
/// Attributes are kept as SQLite stores them, so that a row is filled without knowing any Swift type, and the accessor
/// of a property converts one value when it is asked for.
@frozen
public enum Slot {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob(Data)
  /// A to-one relationship whose object was not made yet: the key of the row at the other end.
  case key(Int64)
  case model(any PersistentModel)
  /// A to-many relationship that was not read yet, or a value that a fetch of some properties only left out.
  case unloaded
  case models([any PersistentModel])
  /// A value that has a column for each of its fields, in their order.
  case composite([Slot])
}

extension Slot {
  /// The stored value of an attribute; `nil` for none, and for relationships.
  var attributeValue: AttributeValue? {
    switch self {
    case .integer(let integer): .integer(integer)
    case .real(let real): .real(real)
    case .text(let text): .text(text)
    case .blob(let data): .blob([UInt8](data))
    case .null, .key, .model, .unloaded, .models, .composite: nil
    }
  }

  init(_ value: AttributeValue) {
    switch value {
    case .integer(let integer): self = .integer(integer)
    case .real(let real): self = .real(real)
    case .text(let text): self = .text(text)
    case .blob(let bytes): self = .blob(Data(bytes))
    }
  }

  var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// Whether two attribute values are stored alike. Relationships never compare equal.
  func isSameValue(as other: Slot) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.integer(let one), .integer(let two)): one == two
    case (.real(let one), .real(let two)): one == two
    case (.text(let one), .text(let two)): one == two
    case (.blob(let one), .blob(let two)): one == two
    case (.composite(let one), .composite(let two)):
      one.count == two.count && zip(one, two).allSatisfy { $0.isSameValue(as: $1) }
    default: false
    }
  }
}
