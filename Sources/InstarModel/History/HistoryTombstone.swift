/// The values that a deleted model had in its attributes with `.preserveValueOnDeletion`.
///
/// An attribute with `.externalStorage`, a Codable struct and a value of a transformer are not preserved.
public struct HistoryTombstone<Model: PersistentModel>: Sequence, @unchecked Sendable {
  // The values are of types that a store can hold, which are values; only key paths are not Sendable.
  private let values: [(keyPath: AnyKeyPath, value: Any)]

  init(_ values: [(keyPath: AnyKeyPath, value: Any)]) { self.values = values }

  /// Returns the preserved value of a property; `nil` if it was `nil` or is not preserved.
  public subscript(keyPath: PartialKeyPath<Model>) -> (any Sendable)? {
    // A marker protocol cannot be cast to, and has no representation of its own.
    values.first { $0.keyPath == keyPath }.map { unsafeBitCast($0.value, to: (any Sendable).self) }
  }

  /// Returns an iterator over the preserved values.
  public func makeIterator() -> Iterator { Iterator(values: values[...]) }

  /// The preserved values, in the order of the names of their properties.
  public struct Iterator: IteratorProtocol {
    fileprivate var values: ArraySlice<(keyPath: AnyKeyPath, value: Any)>

    /// Returns the next preserved value; `nil` after the last.
    public mutating func next() -> Any? { values.popFirst()?.value }
  }
}
