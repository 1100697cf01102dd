/// Arithmetic with numbers that others wrote, in files or messages: they may be of any size, and a sum that is too
/// large would end the process.
extension FixedWidthInteger {
  /// The sum, or the nearest number where it is out of range.
  package func saturatingAdd(_ other: Self) -> Self {
    let (sum, isOutOfRange) = addingReportingOverflow(other)
    return isOutOfRange ? (other < 0 ? .min : .max) : sum
  }
}

extension Sequence where Element: FixedWidthInteger {
  /// The sum of all, or the nearest number where it is out of range.
  package var saturatingSum: Element { reduce(0) { $0.saturatingAdd($1) } }
}
