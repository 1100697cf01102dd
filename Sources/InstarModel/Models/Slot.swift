public import Foundation
import InstarSchema

/// The value of one property in memory.
///
/// Attributes have the form in which SQLite stores them, so reading a row needs no Swift types. The accessor of a
/// property converts the value at each access.
@frozen
public enum Slot {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob(Data)
  /// A to-one relationship whose model is not in memory yet: the key of the referenced row.
  case key(Int64)
  case model(any PersistentModel)
  /// A to-many relationship that was not read yet, or a value that `propertiesToFetch` left out.
  case unloaded
  case models(Members)
  /// A composite: the values of its columns, in the order of its fields.
  case composite([Slot])
}

extension ContiguousArray<Slot> {
  /// As `init(repeating:count:)`, which takes longer than reading two texts: it calls the copy function for every
  /// kind of slot.
  @inline(__always) init(all slot: Slot, count: Int) {
    self.init()
    reserveCapacity(count)
    for _ in 0..<count { append(slot) }
  }
}

extension Slot {
  /// The stored value of an attribute; `nil` for NULL and for relationships.
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

  /// Whether the value, or one of a composite's, is NaN, which SQLite stores as NULL.
  var isNotANumber: Bool {
    switch self {
    case .real(let real): real.isNaN
    case .composite(let leaves): leaves.contains(where: \.isNotANumber)
    case .null, .integer, .text, .blob, .key, .model, .unloaded, .models: false
    }
  }

  /// Returns whether two attribute values have the same stored form. Relationships never compare equal.
  func isSameValue(as other: Slot) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.integer(let one), .integer(let two)): one == two
    case (.real(let one), .real(let two)): one == two
    // Swift ignores how an accented letter is composed.
    case (.text(let one), .text(let two)): one == two && one.utf8.elementsEqual(two.utf8)
    case (.blob(let one), .blob(let two)): one == two
    case (.composite(let one), .composite(let two)):
      one.count == two.count && zip(one, two).allSatisfy { $0.isSameValue(as: $1) }
    default: false
    }
  }
}
