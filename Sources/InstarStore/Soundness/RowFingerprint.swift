/// A sum over rows that does not depend on their order: equal for an index and its table.
///
/// Each row's hash has a key that the process chose at random, so nobody can build an index whose wrong entries have
/// the sum of the right ones.
struct RowFingerprint: Equatable {
  private(set) var count = 0
  private var sum: UInt64 = 0

  mutating func add(_ row: RowDigest) {
    count += 1
    sum &+= row.value
  }
}

/// The hash of one row, value by value.
struct RowDigest {
  /// The keys of a process.
  private static let keys = (UInt64.random(in: 1 ... .max) | 1, UInt64.random(in: 1 ... .max) | 1)

  private(set) var value = RowDigest.keys.0

  mutating func add(_ row: RowValue) {
    switch row {
    case .null: mix(0, 1)
    case .integer(let number): mix(UInt64(bitPattern: number), 2)
    case .real(let number): mix(number.bitPattern, 3)
    case .text(let bytes): mix(bytes, 4)
    case .blob(let bytes): mix(bytes, 5)
    }
  }

  /// - Parameter kind: Tells equal bits of different types apart.
  private mutating func mix(_ bits: UInt64, _ kind: UInt64) {
    let keys = Self.keys
    let product = (value ^ bits ^ keys.1).multipliedFullWidth(by: keys.0 &+ (kind << 1))
    value = product.high ^ product.low ^ kind
  }

  private mutating func mix(_ bytes: UnsafeRawBufferPointer, _ kind: UInt64) {
    var offset = 0
    while offset + 8 <= bytes.count {
      mix(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self), kind)
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset += 1
    }
    mix(rest, kind)
    mix(UInt64(bytes.count), kind)
  }
}
