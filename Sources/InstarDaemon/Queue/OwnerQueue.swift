/// Stores that wait for a probe or a run, by owner.
struct OwnerQueue {
  private var lines: [UInt32: Line<String>] = [:]
  /// The owners of `lines`; the one who has waited longest for a turn is first.
  private var owners: [UInt32] = []

  private(set) var count = 0

  mutating func append(_ store: String, _ owner: UInt32) {
    count += 1
    if lines[owner] == nil { owners.append(owner) }
    lines[owner, default: Line()].append(store)
  }

  /// The owner with the fewest running stores, of those who may have a turn.
  func nextOwner(
    _ running: [UInt32: Int], where mayHaveTurn: (UInt32) -> Bool = { _ in true }
  ) -> UInt32? {
    owners.first { running[$0] == nil && mayHaveTurn($0) }
      ?? owners.filter(mayHaveTurn).min { running[$0, default: 0] < running[$1, default: 0] }
  }

  func first(of owner: UInt32) -> String? { lines[owner]?.first }

  mutating func popFirst(of owner: UInt32) -> String? {
    let store = lines[owner]?.popFirst()
    if store != nil { count -= 1 }
    owners.removeAll { $0 == owner }
    if let line = lines[owner], line.count > 0 {
      owners.append(owner)
    } else {
      lines[owner] = nil
    }
    return store
  }
}
