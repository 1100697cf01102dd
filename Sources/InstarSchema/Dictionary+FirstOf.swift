/// The first element counts where several have one key: names in a store or in a message of another process may repeat,
/// and `init(uniqueKeysWithValues:)` would end the process.
extension Dictionary {
  /// Creates a dictionary of the first value of each key.
  @inlinable
  package init(firstOf pairs: some Sequence<(Key, Value)>) {
    self.init(pairs, uniquingKeysWith: { first, _ in first })
  }
}

extension Sequence {
  /// Returns the first element of each key.
  @inlinable
  package func keyed<Key: Hashable>(by key: (Element) -> Key) -> [Key: Element] {
    Dictionary(firstOf: map { (key($0), $0) })
  }
}
