internal import Foundation

/// A property list as values that Foundation writes again with the same types.
///
/// Foundation's own reader is not used for binary ones: a few hundred bytes in which each list holds the next one
/// many times keep it busy for ever, and a set with an archive's reference in it ends the process. XML, which no
/// framework writes but a tool may leave, can say neither, and Foundation bounds its depth.
enum PropertyListValue {
  /// Lists within lists. Metadata of an app has two or three.
  private static let depthLimit = 32

  /// XML takes Foundation a third of a second a megabyte.
  private static let xmlLimitBytes = 1 << 20

  /// The dictionary that a property list is.
  ///
  /// - Returns: `nil` where it is none, is damaged, leads back to itself or is made to exhaust its
  ///   reader, and where it holds what only archives do.
  static func dictionary(_ data: Data) -> [String: Any]? {
    if isXML(data) { return xmlDictionary(data) }
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
    case .unsigned(let value): return value
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

  // MARK: XML

  /// Foundation reads a third format as well, which is no more than a text.
  private static func isXML(_ data: Data) -> Bool {
    let mark = Data([0xEF, 0xBB, 0xBF])
    let text = data.starts(with: mark) ? data.dropFirst(mark.count) : data
    let start = text.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return ["<?xml", "<plist", "<!DOCTYPE"].contains { start.starts(with: Data($0.utf8)) }
  }

  private static func xmlDictionary(_ data: Data) -> [String: Any]? {
    guard data.count <= xmlLimitBytes,
      let list = try? PropertyListSerialization.propertyList(from: data, format: nil)
    else { return nil }
    return value(ofXML: list, depth: 0) as? [String: Any]
  }

  /// The same value in the types that the reader of binary lists gives; `nil` for what only archives hold.
  private static func value(ofXML value: Any, depth: Int) -> Any? {
    guard depth <= depthLimit else { return nil }
    // A truth value converts to a number, and some numbers to truth values.
    if type(of: value) == Bool.self { return value }
    switch value {
    case is String, is Data, is Date: return value
    case let number as NSNumber:
      // Apart from `Int(exactly:)`: 2.0 was written as a real number.
      let isReal = ["d", "f"].contains(String(cString: number.objCType))
      return isReal ? number.doubleValue : number.intValue
    case let elements as [Any]:
      var values: [Any] = []
      for element in elements {
        guard let element = self.value(ofXML: element, depth: depth + 1) else { return nil }
        values.append(element)
      }
      return values
    case let entries as [String: Any]:
      var values: [String: Any] = [:]
      for (key, element) in entries {
        guard let element = self.value(ofXML: element, depth: depth + 1) else { return nil }
        values[key] = element
      }
      return values
    default: return nil
    }
  }
}
