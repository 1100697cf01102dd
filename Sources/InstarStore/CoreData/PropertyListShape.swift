internal import Foundation

/// What a binary property list is made of, looked at before it is read.
///
/// Objects of a property list refer to each other by number. That allows lists that lead back to
/// themselves, and lists of a few hundred bytes whose values, written out, would fill any memory.
/// Foundation reads the second kind until it ends, which it does not.
struct PropertyListShape {
  /// Lists within lists. Metadata of an app has two or three.
  static let depthLimit = 32
  /// Values, each counted as often as something refers to it, and 64 bytes of text or data as one
  /// more.
  static let weightLimit = 200_000

  private let bytes: [UInt8]
  private let objectCount: Int
  private let top: Int
  private let offsetTable: Int
  private let offsetSize: Int
  private let referenceSize: Int
  /// By object; 0 for one that is being weighed.
  private var weights: [Int: Int] = [:]

  /// Whether the bytes are a binary property list that leads nowhere outside itself, not back to
  /// itself, and is of a bounded size when it is written out.
  static func isBounded(_ data: Data) -> Bool {
    guard var shape = PropertyListShape([UInt8](data)) else { return false }
    return shape.weigh(shape.top, depth: 0) != nil
  }

  /// The last 32 bytes say where the objects are.
  private init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: Array("bplist00".utf8)), bytes.count >= 8 + 1 + 32 else { return nil }
    self.bytes = bytes
    let trailer = bytes.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.integer(bytes, at: trailer + 8, size: 8),
      let top = Self.integer(bytes, at: trailer + 16, size: 8),
      let table = Self.integer(bytes, at: trailer + 24, size: 8),
      count > 0, count <= trailer, top < count, table >= 9,
      table <= trailer, (trailer - table) / offsetSize >= count
    else { return nil }
    objectCount = count
    self.top = top
    offsetTable = table
  }

  /// - Returns: `nil` where the object cannot be allowed.
  private mutating func weigh(_ object: Int, depth: Int) -> Int? {
    if let known = weights[object] { return known > 0 ? known : nil }
    guard depth <= Self.depthLimit, object < objectCount,
      let offset = Self.integer(bytes, at: offsetTable + object * offsetSize, size: offsetSize),
      offset >= 8, offset < offsetTable
    else { return nil }
    weights[object] = 0
    guard let weight = weigh(at: offset, depth: depth), weight <= Self.weightLimit else {
      return nil
    }
    weights[object] = weight
    return weight
  }

  private mutating func weigh(at offset: Int, depth: Int) -> Int? {
    let marker = bytes[offset]
    let low = Int(marker & 0x0F)
    switch marker >> 4 {
    case 0x0: return [0x0, 0x8, 0x9].contains(low) ? 1 : nil
    case 0x1: return low <= 4 ? leaf(at: offset + 1, count: 1 << low) : nil
    case 0x2: return low == 2 || low == 3 ? leaf(at: offset + 1, count: 1 << low) : nil
    case 0x3: return low == 3 ? leaf(at: offset + 1, count: 8) : nil
    case 0x8: return leaf(at: offset + 1, count: low + 1)
    case 0x4, 0x5, 0x6:
      guard let (count, start) = counted(at: offset) else { return nil }
      return leaf(at: start, count: marker >> 4 == 0x6 ? count * 2 : count)
    case 0xA, 0xC, 0xD:
      guard let (count, start) = counted(at: offset) else { return nil }
      let references = marker >> 4 == 0xD ? count * 2 : count
      guard references <= (offsetTable - start) / referenceSize else { return nil }
      var weight = 1
      for index in 0..<references {
        guard
          let object = Self.integer(
            bytes, at: start + index * referenceSize, size: referenceSize),
          let below = weigh(object, depth: depth + 1)
        else { return nil }
        weight += below
        guard weight <= Self.weightLimit else { return nil }
      }
      return weight
    default: return nil
    }
  }

  private func leaf(at start: Int, count: Int) -> Int? {
    start <= offsetTable && count <= offsetTable - start ? 1 + count / 64 : nil
  }

  /// The number of what an object holds, and where that begins: in the marker, or, where that is
  /// full, in an integer behind it.
  private func counted(at offset: Int) -> (count: Int, start: Int)? {
    let low = Int(bytes[offset] & 0x0F)
    guard low == 0x0F else { return (low, offset + 1) }
    guard offset + 1 < offsetTable, bytes[offset + 1] >> 4 == 0x1 else { return nil }
    let size = 1 << Int(bytes[offset + 1] & 0x0F)
    guard size <= 8, let count = Self.integer(bytes, at: offset + 2, size: size),
      count <= offsetTable
    else { return nil }
    return (count, offset + 2 + size)
  }

  /// An unsigned number, the highest byte first; `nil` where it is not whole, or too large to be a
  /// place in anything.
  private static func integer(_ bytes: [UInt8], at offset: Int, size: Int) -> Int? {
    guard offset >= 0, size <= bytes.count, offset <= bytes.count - size else { return nil }
    var value: UInt64 = 0
    for byte in bytes[offset..<(offset + size)] { value = value << 8 | UInt64(byte) }
    return value <= UInt64(UInt32.max) ? Int(value) : nil
  }
}
