/// Which files of the ledger are kept.
public struct LedgerRetention: Sendable, Hashable {
  /// The size at which a file is full, and a new one begins, in bytes.
  public var fileBytes: Int64
  /// How many full files are kept.
  public var files: Int

  /// By default, files of some 60,000 runs each, and ten of them.
  public init(fileBytes: Int64 = 64 << 20, files: Int = 10) {
    self.fileBytes = fileBytes
    self.files = files
  }
}
