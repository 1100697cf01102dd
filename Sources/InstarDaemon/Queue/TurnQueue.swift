import DequeModule

/// A queue for each key. The keys have their turns one after the other, so that the elements of one never keep those of
/// another waiting.
struct TurnQueue<Key: Hashable, Element> {
  private var queues: [Key: Deque<Element>] = [:]
  /// The keys of `queues`; the one that has waited longest for a turn is first.
  private(set) var turns: [Key] = []
  /// The number of elements of all keys.
  private(set) var count = 0

  func count(of key: Key) -> Int { queues[key]?.count ?? 0 }

  func first(of key: Key) -> Element? { queues[key]?.first }

  mutating func append(_ element: Element, to key: Key) {
    if queues[key] == nil { turns.append(key) }
    queues[key, default: []].append(element)
    count += 1
  }

  /// Takes the oldest element of a key, which has its next turn after all other keys.
  mutating func popFirst(of key: Key) -> Element? {
    guard let element = queues[key]?.popFirst() else { return nil }
    count -= 1
    turns.removeAll { $0 == key }
    if count(of: key) > 0 { turns.append(key) } else { queues[key] = nil }
    return element
  }
}

extension TurnQueue: Sendable where Key: Sendable, Element: Sendable {}
