internal import Foundation

/// What a binary property list is made of, looked at before Foundation reads it.
///
/// Objects of a property list refer to each other by number. That allows lists that lead back to
/// themselves, and lists of a few hundred bytes whose values, written out, would fill any memory.
/// Foundation reads the second kind until it ends, which it does not.
enum PropertyListShape {
  /// Lists within lists. Metadata of an app has two or three.
  private static let depthLimit = 32

  /// Whether the bytes are a binary property list that does not lead back to itself, and is of a
  /// bounded size when each value is counted as often as something refers to it.
  static func isBounded(_ data: Data) -> Bool {
    do {
      var list = try BinaryPropertyList([UInt8](data))
      return try isBounded(list.root, in: &list, depth: 0)
    } catch {
      return false
    }
  }

  /// The reader's budget ends what has no end, or too many.
  private static func isBounded(
    _ object: Int, in list: inout BinaryPropertyList, depth: Int
  ) throws(BinaryPropertyList.Problem) -> Bool {
    guard depth <= depthLimit else { return false }
    let elements: [Int]
    switch try list.object(at: object) {
    case .array(let numbers): elements = numbers
    case .dictionary(let keys, let values): elements = keys + values
    default: return true
    }
    for element in elements {
      guard try isBounded(element, in: &list, depth: depth + 1) else { return false }
    }
    return true
  }
}
