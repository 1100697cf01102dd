import ArgumentParser

extension RawRepresentable where Self: CaseIterable, RawValue == String {
  /// - Throws: A usage error that lists the names.
  init(named name: String) throws {
    guard let value = Self(rawValue: name) else {
      let names = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw ValidationError("'\(name)' is not one of \(names)")
    }
    self = value
  }
}

extension CompletionKind {
  /// The names of the values.
  static func names<Value: RawRepresentable & CaseIterable>(of type: Value.Type) -> CompletionKind
  where Value.RawValue == String {
    .list(type.allCases.map(\.rawValue))
  }
}
