internal import Foundation

/// A binary property list as values that Foundation writes again with the same types.
///
/// Foundation's own reader is not used: a few hundred bytes in which each list holds the next one
/// many times keep it busy for ever, and a set with an archive's reference in it ends the process.
enum PropertyListValue {
  /// Lists within lists. Metadata of an app has two or three.
  private static let depthLimit = 32

  /// The dictionary that a property list is.
  ///
  /// - Returns: `nil` where it is none, is damaged, leads back to itself or is made to exhaust its
  ///   reader, and where it holds what only archives do.
  static func dictionary(_ data: Data) -> [String: Any]? {
    do {
      var list = try BinaryPropertyList([UInt8](data))
      return try value(list.root, in: &list, depth: 0) as? [String: Any]
    } catch {
      return nil
    }
  }

  /// The reader's budget ends what has no end, or too many.
  private static func value(
    _ object: Int, in list: inout BinaryPropertyList, depth: Int
  ) throws(BinaryPropertyList.Problem) -> Any {
    guard depth <= depthLimit else { throw .exhausting }
    switch try list.object(at: object) {
    case .boolean(let value): return value
    case .integer(let value): return Int(value)
    case .real(let value): return value
    case .date(let seconds): return Date(timeIntervalSinceReferenceDate: seconds)
    case .data(let bytes): return Data(bytes)
    case .text(let text): return text
    case .array(let elements):
      var values: [Any] = []
      for element in elements {
        values.append(try value(element, in: &list, depth: depth + 1))
      }
      return values
    case .dictionary(let keys, let elements):
      var values: [String: Any] = [:]
      for (key, element) in zip(keys, elements) {
        guard case .text(let name) = try list.object(at: key) else { throw .malformed }
        values[name] = try value(element, in: &list, depth: depth + 1)
      }
      return values
    case .null, .reference: throw .malformed
    }
  }
}
