internal import CCompression

/// Unpacks raw DEFLATE (RFC 1951), in which Core Data packs the archived model of a store.
enum DeflateReader {
  /// Why the input is refused.
  enum Problem: Error, Equatable {
    case truncated, malformed
    /// The output would exceed the limit.
    case tooLarge
  }

  /// - Parameter limit: The most bytes that the output may have.
  static func bytes(of input: [UInt8], limit: Int) throws(Problem) -> [UInt8] {
    var result = instar_inflate_malformed
    // One byte more than the limit tells a full output from one that is too large.
    let output = [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
      result = instar_inflate(input, input.count, buffer.baseAddress, limit + 1, &count)
    }
    guard output.count <= limit else { throw .tooLarge }
    switch result {
    case instar_inflated: return output
    case instar_inflate_truncated: throw .truncated
    case instar_inflate_too_large: throw .tooLarge
    default: throw .malformed
    }
  }
}
