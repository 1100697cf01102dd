/// A binary property list (`bplist00`), object by object.
///
/// Foundation's reader does not show the references (UID) in keyed archives. This one reads nothing ahead and nests
/// nothing: containers hold the numbers of their elements. Offsets may overlap or form a cycle. Each read is charged
/// against a budget in proportion to the size of the list, which bounds time and memory.
struct BinaryPropertyList {
  enum Problem: Error {
    case malformed
    /// Reading takes more work than a list of this size may cost.
    case exhausting
  }

  enum Object {
    case null
    case boolean(Bool)
    case integer(Int64)
    /// One that is too large for `integer`.
    case unsigned(UInt64)
    case real(Double)
    /// Seconds since 2001-01-01 UTC.
    case date(Double)
    case data([UInt8])
    case text(String)
    /// The number of an object in the archive's list of objects.
    case reference(Int)
    /// Also sets.
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  private let bytes: [UInt8]
  private let offsets: Range<Int>
  private let offsetSize: Int
  private let referenceSize: Int
  private var budget: Int

  /// The number of the root object.
  let root: Int
  let count: Int

  init(_ bytes: [UInt8]) throws(Problem) {
    let trailerSize = 32
    guard bytes.count >= 8 + trailerSize, bytes.starts(with: Array("bplist00".utf8)) else {
      throw .malformed
    }
    self.bytes = bytes
    let trailer = bytes.count - trailerSize
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.integer(bytes, at: trailer + 8, size: 8),
      let root = Self.integer(bytes, at: trailer + 16, size: 8),
      let start = Self.integer(bytes, at: trailer + 24, size: 8),
      start <= trailer, count <= (trailer - start) / offsetSize, root < count
    else { throw .malformed }
    self.count = count
    self.root = root
    offsets = start..<start + count * offsetSize
    budget = 6 * bytes.count + (1 << 16)
  }

  /// Charges the budget for work in proportion to something that was read.
  mutating func spend(_ amount: Int) throws(Problem) {
    budget -= amount
    guard budget >= 0 else { throw .exhausting }
  }

  mutating func object(at number: Int) throws(Problem) -> Object {
    guard number >= 0, number < count,
      let offset = Self.integer(
        bytes, at: offsets.lowerBound + number * offsetSize, size: offsetSize),
      offset < offsets.lowerBound
    else { throw .malformed }
    try spend(1)
    let marker = bytes[offset]
    let low = Int(marker & 0x0F)
    switch marker >> 4 {
    case 0x0:
      switch marker {
      case 0x00: return .null
      case 0x08: return .boolean(false)
      case 0x09: return .boolean(true)
      default: throw .malformed
      }
    case 0x1:
      return try wideInteger(at: offset + 1, size: low <= 4 ? 1 << low : 0)
    case 0x2:
      switch low {
      case 2:
        return .real(Double(Float(bitPattern: UInt32(try unsigned(at: offset + 1, size: 4)))))
      case 3: return .real(Double(bitPattern: try unsigned(at: offset + 1, size: 8)))
      default: throw .malformed
      }
    case 0x3 where low == 3:
      return .date(Double(bitPattern: try unsigned(at: offset + 1, size: 8)))
    case 0x4:
      return .data(Array(bytes[try range(at: offset, low, size: 1)]))
    case 0x5, 0x7:
      return .text(String(decoding: bytes[try range(at: offset, low, size: 1)], as: UTF8.self))
    case 0x6:
      let range = try range(at: offset, low, size: 2)
      let units = stride(from: range.lowerBound, to: range.upperBound, by: 2).map {
        UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
      }
      return .text(String(decoding: units, as: UTF16.self))
    case 0x8:
      guard let number = Self.integer(bytes, at: offset + 1, size: low + 1) else {
        throw .malformed
      }
      return .reference(number)
    case 0xA, 0xB, 0xC:
      return .array(try references(in: try range(at: offset, low, size: referenceSize)))
    case 0xD:
      let all = try references(in: try range(at: offset, low, size: 2 * referenceSize))
      return .dictionary(
        keys: Array(all[..<(all.count / 2)]), values: Array(all[(all.count / 2)...]))
    default:
      throw .malformed
    }
  }

  // MARK: Parts

  /// The contents of the object whose marker is at `offset`: as many elements of `size` as the low half of the marker
  /// says, or the integer after it.
  private mutating func range(
    at offset: Int, _ low: Int, size: Int
  ) throws(Problem) -> Range<Int> {
    var count = low
    var start = offset + 1
    if low == 0x0F {
      guard start < offsets.lowerBound, bytes[start] >> 4 == 1 else { throw .malformed }
      let width = 1 << Int(bytes[start] & 0x0F)
      guard width <= 8, let value = Self.integer(bytes, at: start + 1, size: width) else {
        throw .malformed
      }
      count = value
      start += 1 + width
    }
    guard start <= offsets.lowerBound, count <= (offsets.lowerBound - start) / size else {
      throw .malformed
    }
    try spend(count * size)
    return start..<start + count * size
  }

  private func references(in range: Range<Int>) throws(Problem) -> [Int] {
    var numbers: [Int] = []
    numbers.reserveCapacity(range.count / referenceSize)
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: referenceSize) {
      guard let number = Self.integer(bytes, at: offset, size: referenceSize) else {
        throw .malformed
      }
      numbers.append(number)
    }
    return numbers
  }

  /// Integers of up to 8 bytes, and the lower half of 16-byte ones, which is how large unsigned integers are written.
  private func wideInteger(at offset: Int, size: Int) throws(Problem) -> Object {
    switch size {
    case 1, 2, 4: return .integer(Int64(try unsigned(at: offset, size: size)))
    case 8: return .integer(Int64(bitPattern: try unsigned(at: offset, size: 8)))
    case 16:
      let isPositive = try unsigned(at: offset, size: 8) == 0
      let lower = try unsigned(at: offset + 8, size: 8)
      return isPositive && lower > UInt64(Int64.max)
        ? .unsigned(lower) : .integer(Int64(bitPattern: lower))
    default: throw .malformed
    }
  }

  private func unsigned(at offset: Int, size: Int) throws(Problem) -> UInt64 {
    guard offset >= 0, offset + size <= bytes.count else { throw .malformed }
    return bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A big-endian number that fits an `Int`; `nil` where there is none.
  private static func integer(_ bytes: [UInt8], at offset: Int, size: Int) -> Int? {
    guard offset >= 0, offset <= bytes.count - size else { return nil }
    var value: UInt64 = 0
    for byte in bytes[offset..<offset + size] {
      guard value >> 56 == 0 else { return nil }
      value = value << 8 | UInt64(byte)
    }
    // Far below what sums and products of sizes could overflow.
    return value < 1 << 40 ? Int(value) : nil
  }
}
