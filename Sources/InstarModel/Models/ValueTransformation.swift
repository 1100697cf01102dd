import Foundation
import InstarSchema
import InstarStore

/// How a value transformer's attribute is stored: the transformer's bytes in one BLOB.
///
/// A property of type `Data` holds these bytes themselves where no transformer is known by the name: so a migration
/// carries values along that only the app can read. Foundation's own transformers, which archive any object, are there for
/// collections of plain values.
struct ValueTransformation: Sendable {
  /// Looked up when it is used: an app may register its transformers after a schema was made.
  let transformerName: String

  private var isFoundations: Bool {
    ["NSSecureUnarchiveFromData", "NSKeyedUnarchiveFromData"].contains(transformerName)
  }

  /// A value, or an optional one, as it is stored.
  ///
  /// - Throws: `invalidModel` where no such transformer is known, or it makes no `Data` of the value.
  func slot<Value>(of value: Value) throws(InstarError) -> Slot {
    if let optional = value as? any OptionalValue, optional.wrappedValue == nil { return .null }
    guard let transformer = ValueTransformer.named(transformerName) else {
      if let data = value as? Data { return .blob(data) }
      if isFoundations, let archive = try archive(of: value) { return .blob(archive) }
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "no value transformer is registered by the name '\(transformerName)'",
        next: "call ValueTransformer.setValueTransformer(_:forName:) before opening the container")
    }
    guard let data = transformer.transformedValue(value) as? Data else {
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "value transformer '\(transformerName)' makes no Data of a \(Value.self)")
    }
    return .blob(data)
  }

  private func archive(of value: Any) throws(InstarError) -> Data? {
    do {
      return try ArchivedCollection.archive(of: value)
    } catch {
      throw InstarError(
        .invalidModel, "cannot store a value",
        cause: "Foundation could not archive it: \(error.localizedDescription)")
    }
  }

  /// The value, or the optional one, that is stored so; `nil` where there is none that fits.
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

/// `Optional`, to make a `nil` of a type that is known to be one.
protocol NilValue {
  static var nilValue: Any { get }
}

extension Optional: NilValue {
  static var nilValue: Any { Wrapped?.none as Any }
}
