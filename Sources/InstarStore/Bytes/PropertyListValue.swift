internal import Foundation

/// Reads a property list as values that Foundation writes again with the same types.
///
/// Foundation's reader is not used for binary lists: it does not finish on a few hundred bytes in which each list holds
/// the next one many times, and it ends the process on a set that contains an archive's reference. XML, which only
/// tools write, can express neither, and Foundation bounds its depth.
enum PropertyListValue {
  /// The deepest nesting that is read. An app's metadata has two or three levels.
  private static let depthLimit = 32

  /// Foundation needs a third of a second per megabyte of XML.
  private static let xmlLimitBytes = 1 << 20

  /// Returns the dictionary that a property list holds.
  ///
  /// - Returns: `nil` where the list is damaged, cyclic, too expensive to read or not a dictionary, and where it
  ///   contains what only archives may contain.
  static func dictionary(_ data: Data) -> [String: Any]? {
    if isXML(data) { return xmlDictionary(data) }
    do {
      var list = try BinaryPropertyList([UInt8](data))
      return try value(list.root, in: &list, depth: 0) as? [String: Any]
    } catch {
      return nil
    }
  }

  /// The reader's budget stops cycles and excessive lists.
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

  /// Foundation also reads a third format, which any text is.
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

  /// Converts a value to the types of the binary reader; `nil` for what only archives contain.
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
