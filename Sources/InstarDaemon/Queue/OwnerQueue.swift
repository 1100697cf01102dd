/// Stores that wait for a probe or a run, by owner.
typealias OwnerQueue = TurnQueue<UInt32, String>

extension OwnerQueue {
  /// The owner with the fewest running stores, of those who may have a turn.
  func nextOwner(
    _ running: [UInt32: Int], where mayHaveTurn: (UInt32) -> Bool = { _ in true }
  ) -> UInt32? {
    turns.first { running[$0] == nil && mayHaveTurn($0) }
      ?? turns.filter(mayHaveTurn).min { running[$0, default: 0] < running[$1, default: 0] }
  }
}
