/// Slots of one model, such as the changed ones: bits, because a save asks for them row by row.
struct SlotSet: Hashable {
  private var low: UInt64 = 0
  /// Slots from 64 on, which few models have.
  private var high: Set<Int> = []

  init(_ slots: [Int] = []) {
    for slot in slots { insert(slot) }
  }

  var isEmpty: Bool { low == 0 && high.isEmpty }

  func contains(_ slot: Int) -> Bool {
    slot < 64 ? low & (1 << UInt64(slot)) != 0 : high.contains(slot)
  }

  func isSubset(of other: SlotSet) -> Bool {
    low & ~other.low == 0 && high.isSubset(of: other.high)
  }

  func subtracting(_ other: SlotSet) -> SlotSet {
    var rest = self
    rest.low &= ~other.low
    rest.high.subtract(other.high)
    return rest
  }

  mutating func insert(_ slot: Int) {
    if slot < 64 { low |= 1 << UInt64(slot) } else { high.insert(slot) }
  }

  mutating func removeAll() {
    low = 0
    high.removeAll()
  }
}
