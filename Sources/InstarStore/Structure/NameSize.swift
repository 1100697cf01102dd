internal import InstarSchema

/// Adds up the names that are read from a store, which may be made to have any number of any length.
struct NameSize {
  /// No store of an app comes near it: 10,000 tables with 20 columns each are at 4 MiB.
  static let limitBytes = 16 << 20
  /// Each name costs more than its bytes.
  private static let overheadBytes = 16

  private var bytes = 0

  /// - Throws: `unsupported` when there is more than is read.
  mutating func add(_ name: String) throws(InstarError) {
    bytes += name.utf8.count + Self.overheadBytes
    guard bytes <= Self.limitBytes else {
      throw InstarError(
        .unsupported, "cannot read the structure of the store",
        cause: "its tables and columns are more, or have longer names, than Instar reads")
    }
  }
}
