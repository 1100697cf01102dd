/// Which way of the cutover a run takes.
public enum CutoverPolicy: String, Sendable, Codable, Hashable, CaseIterable {
  /// By exchange, where that is possible and the store has 32 MiB or more: for a smaller one a write-back is faster,
  /// because it needs no grace period.
  case automatic
  /// By exchange where that is possible, whatever the store's size.
  case exchange
  /// By write-back only: the store's file keeps its inode.
  case writeBack
}
