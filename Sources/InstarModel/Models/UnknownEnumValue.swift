@_spi(Reflection) import Swift
import Foundation
import InstarStore

/// A stored value that is not the raw value of any case of its enum. An earlier version of an app may have written it.
///
/// Errors quote only values of enums, because other values may be private and errors go to the journal.
struct UnknownEnumValue {
  /// The path within the property's value: ".kind" or "[2].kind"; empty for the property itself.
  let path: String
  let stored: String
  let type: any Any.Type
  /// The raw values of the cases: "'open', 'closed'".
  let accepted: String

  /// Finds the first such value in the stored value of a property.
  init?(in slot: Slot, of type: any Any.Type) {
    switch slot {
    case .integer(let integer): self.init(integer, type, "")
    case .real(let real): self.init(real, type, "")
    case .text(let text): self.init(text, type, "")
    case .blob(let data):
      let json = try? JSONSerialization.jsonObject(
        with: ArchivedCollection.json(of: data) ?? data, options: .fragmentsAllowed)
      guard let json else { return nil }
      self.init(json, type, "")
    case .composite(let leaves):
      var number = 0
      let found = Self.firstField(of: Self.unwrapped(type)) { name, type in
        defer { number += 1 }
        guard leaves.indices.contains(number) else { return nil }
        return UnknownEnumValue(in: leaves[number], of: type)?.within(".\(name)")
      }
      guard let found else { return nil }
      self = found
    case .null, .key, .model, .unloaded, .models: return nil
    }
  }

  private init(path: String, stored: String, type: any Any.Type, accepted: String) {
    (self.path, self.stored, self.type, self.accepted) = (path, stored, type, accepted)
  }

  /// - Parameter value: A string or number, or an array or dictionary of JSON.
  private init?(_ value: Any, _ type: any Any.Type, _ path: String) {
    let type = Self.unwrapped(type)
    if let raw = type as? any RawRepresentable.Type, let accepted = Self.rawValues(of: raw) {
      let stored = Self.text(value)
      guard !(value is NSNull), !accepted.contains(stored) else { return nil }
      self.init(path: path, stored: stored, type: type, accepted: Self.list(accepted))
      return
    }
    let found: UnknownEnumValue?
    if let values = value as? [Any], let collection = type as? any Collection.Type {
      found =
        values.enumerated().lazy.compactMap { number, value in
          UnknownEnumValue(value, Self.element(of: collection), "\(path)[\(number)]")
        }.first
    } else if let object = value as? [String: Any] {
      found = Self.firstField(of: type) { name, type in
        object[name].flatMap { UnknownEnumValue($0, type, "\(path).\(name)") }
      }
    } else {
      found = nil
    }
    guard let found else { return nil }
    self = found
  }

  private func within(_ outer: String) -> UnknownEnumValue {
    UnknownEnumValue(path: outer + path, stored: stored, type: type, accepted: accepted)
  }

  private static func firstField(
    of type: any Any.Type, _ find: (String, any Any.Type) -> UnknownEnumValue?
  ) -> UnknownEnumValue? {
    var found: UnknownEnumValue?
    _ = _forEachField(of: type, options: []) { name, _, fieldType, _ in
      found = find(String(cString: name), fieldType)
      return found == nil
    }
    return found
  }

  private static func unwrapped(_ type: any Any.Type) -> any Any.Type {
    (type as? any OptionalType.Type).map { unwrapped($0.wrappedType) } ?? type
  }

  private static func element<Values: Collection>(of type: Values.Type) -> any Any.Type {
    Values.Element.self
  }

  private static func rawValues<Value: RawRepresentable>(of type: Value.Type) -> [String]? {
    EnumCases.all(of: type)?.map { text($0.rawValue) }
  }

  private static func text(_ value: Any) -> String {
    value is String ? "'\(value)'" : "\(value)"
  }

  private static let listLimit = 20

  private static func list(_ values: [String]) -> String {
    let rest = values.count - listLimit
    return values.prefix(listLimit).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }
}
