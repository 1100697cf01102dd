/// The storages of the living models of one entity and its subentities, by key. It does not retain them.
///
/// A hash table with linear probing. Rows are mostly read in the order of their keys, so the places of eight keys that
/// follow each other are side by side; a `Dictionary` would spread them over memory, and each row would wait for it.
///
/// Invariants: at most half of the places are taken, and no free place is between a key's first place and its own.
struct RegisteredModels {
  private var places: ContiguousArray<Place> = []
  private(set) var count = 0

  private struct Place {
    var key: Int64 = 0
    var storage: Unmanaged<ModelStorage>?
  }

  var isEmpty: Bool { count == 0 }
  var keys: [Int64] { places.compactMap { $0.storage == nil ? nil : $0.key } }
  var storages: [ModelStorage] { places.compactMap { $0.storage?.takeUnretainedValue() } }

  /// Returns the storage of a row, or `nil` if no model of it is alive.
  func storage(_ key: Int64) -> ModelStorage? {
    if places.isEmpty { return nil }
    return places[position(of: key)].storage?.takeUnretainedValue()
  }

  /// Adds a storage, in place of another one with its key.
  mutating func insert(_ storage: ModelStorage) {
    if 2 * (count + 1) > places.count { grow() }
    let position = position(of: storage.key)
    if places[position].storage == nil { count += 1 }
    places[position] = Place(key: storage.key, storage: Unmanaged.passUnretained(storage))
  }

  /// Removes a storage. Does nothing if another one has its key.
  mutating func remove(_ storage: ModelStorage) {
    if places.isEmpty { return }
    var free = position(of: storage.key)
    guard places[free].storage?.toOpaque() == Unmanaged.passUnretained(storage).toOpaque() else {
      return
    }
    count -= 1
    // Moves the keys behind it forward, if their search would end at the free place.
    var next = free
    while true {
      next = (next + 1) & (places.count - 1)
      if places[next].storage == nil { break }
      let first = firstPosition(of: places[next].key)
      let mask = places.count - 1
      if (next - first) & mask >= (next - free) & mask {
        places[free] = places[next]
        free = next
      }
    }
    places[free] = Place()
  }

  /// Returns the place of a key, or the free place where it would be.
  private func position(of key: Int64) -> Int {
    var position = firstPosition(of: key)
    while places[position].storage != nil, places[position].key != key {
      position = (position + 1) & (places.count - 1)
    }
    return position
  }

  private func firstPosition(of key: Int64) -> Int {
    let bits = UInt64(bitPattern: key)
    // The multiplication spreads groups of keys with any distance between them over the high bits.
    let group = ((bits >> 3) &* 0x9E37_79B9_7F4A_7C15) >> 32
    return Int(truncatingIfNeeded: group << 3 | bits & 7) & (places.count - 1)
  }

  private mutating func grow() {
    let old = places
    places = ContiguousArray(repeating: Place(), count: max(16, 2 * old.count))
    for place in old where place.storage != nil { places[position(of: place.key)] = place }
  }
}
