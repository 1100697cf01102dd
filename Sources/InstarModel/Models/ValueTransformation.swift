import Foundation
import InstarSchema
import InstarStore

/// The stored form of an attribute with a value transformer: the transformer's bytes in one BLOB.
///
/// If no transformer is registered, a property of type `Data` has the bytes themselves, so a migration keeps values
/// that only the app can read. Foundation's own transformers archive any object; Instar has them for collections of
/// plain values.
struct ValueTransformation: Sendable {
  /// Resolved at each use, because an app may register its transformers after it creates a schema.
  let transformerName: String

  private var isFoundations: Bool {
    ["NSSecureUnarchiveFromData", "NSKeyedUnarchiveFromData"].contains(transformerName)
  }

  /// Returns the stored bytes of a value or an optional one.
  ///
  /// - Throws: `invalidModel` if the transformer is not registered, or does not return `Data` for the value.
  func slot<Value>(of value: Value) throws(InstarError) -> Slot {
    if let optional = value as? any OptionalValue, optional.wrappedValue == nil { return .null }
    guard let transformer = ValueTransformer.named(transformerName) else {
      if let data = value as? Data { return .blob(data) }
      if isFoundations, let archive = try archive(of: value) { return .blob(archive) }
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "no value transformer is registered with the name '\(transformerName)'",
        next: "call ValueTransformer.setValueTransformer(_:forName:) before opening the container")
    }
    guard let data = transformer.transformedValue(value) as? Data else {
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "value transformer '\(transformerName)' did not return Data for a \(Value.self)",
        next: "return Data from its transformedValue(_:) for every value of the property")
    }
    return .blob(data)
  }

  private func archive(of value: Any) throws(InstarError) -> Data? {
    do {
      return try ArchivedCollection.archive(of: value)
    } catch {
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "Foundation cannot archive it: \(error.localizedDescription)",
        next: "register a value transformer of your own for the type")
    }
  }

  /// Returns the value, or the optional one, of stored bytes; `nil` if they do not fit the type.
  func value<Value>(of slot: Slot, as type: Value.Type) -> Value? {
    if slot.isNull, let optional = type as? any NilValue.Type { return optional.nilValue as? Value }
    guard case .blob(let data) = slot else { return nil }
    guard let transformer = ValueTransformer.named(transformerName) else {
      if let data = data as? Value { return data }
      guard isFoundations, let type = type as? any Decodable.Type,
        let json = ArchivedCollection.json(of: data)
      else { return nil }
      return try? JSONDecoder().decode(type, from: json) as? Value
    }
    return transformer.reverseTransformedValue(data) as? Value
  }
}

/// `Optional`, to create a `nil` of a type that is known to be optional.
protocol NilValue {
  static var nilValue: Any { get }
}

extension Optional: NilValue {
  static var nilValue: Any { Wrapped?.none as Any }
}
