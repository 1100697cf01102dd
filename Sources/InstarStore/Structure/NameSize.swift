internal import InstarSchema

/// Limits the total size of the names read from a store, which may hold any number of names of any length.
struct NameSize {
  /// Far above real stores: 10,000 tables with 20 columns each have 4 MiB of names.
  static let limitBytes = 16 << 20
  /// What a name costs besides its bytes.
  private static let overheadBytes = 16

  private var bytes = 0

  /// - Throws: `unsupported` above the limit.
  mutating func add(_ name: String) throws(InstarError) {
    bytes += name.utf8.count + Self.overheadBytes
    guard bytes <= Self.limitBytes else {
      throw InstarError(
        .unsupported, "cannot read the structure of the store",
        cause:
          "the names of the store's tables and columns have more than \(Self.limitBytes) bytes together",
        next: "let the app itself migrate this store"
      )
    }
  }
}
