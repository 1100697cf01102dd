extension BinaryInteger {
  /// Returns so many things in words: "1 row", "3 rows", "0 rows".
  ///
  /// - Parameter many: For a plural that does not end in "s", and for a phrase such as "rows violate".
  package func counted(_ one: String, _ many: String? = nil) -> String {
    "\(self) \(noun(one, many))"
  }

  /// Returns the noun alone, for a number that stands elsewhere or is written another way.
  package func noun(_ one: String, _ many: String? = nil) -> String {
    self == 1 ? one : many ?? one + "s"
  }
}
