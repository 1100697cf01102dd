import ArgumentParser
import InstarSchema

extension RawRepresentable where Self: CaseIterable, RawValue == String {
  /// - Parameter values: Those that can be named.
  /// - Throws: A usage error that lists the names, and says which was probably meant.
  init(named name: String, among values: [Self] = Array(Self.allCases)) throws {
    guard let value = values.first(where: { $0.rawValue == name }) else {
      let names = values.map(\.rawValue)
      let hint = Suggestion.nearest(to: name, among: names).map { "; did you mean '\($0)'?" } ?? ""
      throw ValidationError("'\(name)' is not one of \(names.joined(separator: ", "))\(hint)")
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
