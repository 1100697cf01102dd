/// Unpacks raw DEFLATE (RFC 1951): how Core Data packs the archived model of a store.
///
/// Input is hostile until it is unpacked: output is bounded, every read is checked, and the time is in proportion to
/// input and output.
struct Inflate {
  /// Why the input is refused.
  enum Problem: Error, Equatable {
    case truncated, malformed
    /// More than the limit would come out.
    case tooLarge
  }

  /// - Parameter limit: the most bytes that may come out.
  static func bytes(of input: [UInt8], limit: Int) throws(Problem) -> [UInt8] {
    var inflate = Inflate(input: input, limit: limit)
    try inflate.run()
    return inflate.output
  }

  private let input: [UInt8]
  private let limit: Int
  private var position = 0
  private var bits: UInt32 = 0
  private var bitCount = 0
  private var output: [UInt8] = []

  private init(input: [UInt8], limit: Int) {
    self.input = input
    self.limit = limit
  }

  private mutating func run() throws(Problem) {
    var isLast = false
    while !isLast {
      isLast = try read(1) == 1
      switch try read(2) {
      case 0: try copyStored()
      case 1: try decode(literals: Self.fixedLiterals, distances: Self.fixedDistances)
      case 2:
        let (literals, distances) = try readTables()
        try decode(literals: literals, distances: distances)
      default: throw .malformed
      }
    }
  }

  /// Bits come in from the low end of each byte.
  private mutating func read(_ count: Int) throws(Problem) -> Int {
    while bitCount < count {
      guard position < input.count else { throw .truncated }
      bits |= UInt32(input[position]) << UInt32(bitCount)
      position += 1
      bitCount += 8
    }
    let value = bits & ((1 << UInt32(count)) - 1)
    bits >>= UInt32(count)
    bitCount -= count
    return Int(value)
  }

  private mutating func copyStored() throws(Problem) {
    bits = 0
    bitCount = 0
    guard position + 4 <= input.count else { throw .truncated }
    let length = Int(input[position]) | Int(input[position + 1]) << 8
    let check = Int(input[position + 2]) | Int(input[position + 3]) << 8
    guard length == ~check & 0xFFFF else { throw .malformed }
    position += 4
    guard position + length <= input.count else { throw .truncated }
    guard output.count + length <= limit else { throw .tooLarge }
    output += input[position..<position + length]
    position += length
  }

  // MARK: Huffman codes

  /// A canonical code: how many symbols have each length, and the symbols ordered by length.
  private struct Code {
    var counts = [Int](repeating: 0, count: 16)
    var symbols: [Int] = []

    /// A code without symbols.
    init() {}

    /// - Parameter lengths: of each symbol's code in bits, at most 15; 0 for a symbol that does not occur.
    init?(lengths: [Int]) {
      for length in lengths { counts[length] += 1 }
      counts[0] = 0
      var free = 1
      for length in 1...15 {
        free = free * 2 - counts[length]
        // More codes than there is room for.
        if free < 0 { return nil }
      }
      for length in 1...15 where counts[length] > 0 {
        symbols += lengths.indices.filter { lengths[$0] == length }
      }
    }
  }

  private mutating func symbol(_ code: Code) throws(Problem) -> Int {
    var value = 0
    var first = 0
    var index = 0
    for length in 1...15 {
      value |= try read(1)
      let count = code.counts[length]
      if value - first < count { return code.symbols[index + value - first] }
      index += count
      first = (first + count) << 1
      value <<= 1
    }
    throw .malformed
  }

  private mutating func decode(literals: Code, distances: Code) throws(Problem) {
    while true {
      let symbol = try symbol(literals)
      if symbol < 256 {
        guard output.count < limit else { throw .tooLarge }
        output.append(UInt8(symbol))
        continue
      }
      if symbol == 256 { return }
      guard symbol - 257 < Self.lengthBases.count else { throw .malformed }
      let length =
        try Self.lengthBases[symbol - 257] + read(Self.lengthExtraBits[symbol - 257])
      let distanceSymbol = try self.symbol(distances)
      guard distanceSymbol < Self.distanceBases.count else { throw .malformed }
      let distance =
        try Self.distanceBases[distanceSymbol] + read(Self.distanceExtraBits[distanceSymbol])
      guard distance <= output.count else { throw .malformed }
      guard output.count + length <= limit else { throw .tooLarge }
      // The copy may run into what it has just written.
      for _ in 0..<length { output.append(output[output.count - distance]) }
    }
  }

  private mutating func readTables() throws(Problem) -> (literals: Code, distances: Code) {
    let literalCount = try read(5) + 257
    let distanceCount = try read(5) + 1
    let lengthCount = try read(4) + 4
    var lengths = [Int](repeating: 0, count: 19)
    for index in 0..<lengthCount { lengths[Self.lengthOrder[index]] = try read(3) }
    guard let lengthCode = Code(lengths: lengths) else { throw .malformed }
    lengths = []
    while lengths.count < literalCount + distanceCount {
      let symbol = try symbol(lengthCode)
      switch symbol {
      case 0...15: lengths.append(symbol)
      case 16:
        guard let last = lengths.last else { throw .malformed }
        lengths += [Int](repeating: last, count: try read(2) + 3)
      case 17: lengths += [Int](repeating: 0, count: try read(3) + 3)
      default: lengths += [Int](repeating: 0, count: try read(7) + 11)
      }
    }
    guard lengths.count == literalCount + distanceCount, lengths[256] != 0,
      let literals = Code(lengths: Array(lengths[..<literalCount])),
      let distances = Code(lengths: Array(lengths[literalCount...]))
    else { throw .malformed }
    return (literals, distances)
  }

  // The tables of RFC 1951, sections 3.2.5 to 3.2.7.
  private static let lengthOrder = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
  ]
  private static let lengthBases = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
    163, 195, 227, 258,
  ]
  private static let lengthExtraBits = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
  ]
  private static let distanceBases = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
    3073, 4097, 6145, 8193, 12289, 16385, 24577,
  ]
  private static let distanceExtraBits = [
    0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13,
    13,
  ]
  private static let fixedLiterals = fixedCode(
    [Int](repeating: 8, count: 144) + [Int](repeating: 9, count: 112)
      + [Int](repeating: 7, count: 24) + [Int](repeating: 8, count: 8))
  private static let fixedDistances = fixedCode([Int](repeating: 5, count: 30))

  private static func fixedCode(_ lengths: [Int]) -> Code {
    Code(lengths: lengths) ?? Code()
  }
}
