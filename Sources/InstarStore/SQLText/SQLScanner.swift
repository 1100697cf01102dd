/// Finds where the tokens of a text end, by the rules of SQLite's tokenizer.
struct SQLScanner {
  let bytes: [UInt8]

  /// Returns the kind of the token that begins at `start`, and the index after it.
  func token(at start: Int) -> (kind: SQLToken.Kind, end: Int) {
    let byte = bytes[start]
    let next = start + 1 < bytes.count ? bytes[start + 1] : 0
    return switch byte {
    case UInt8(ascii: "("): (.open, start + 1)
    case UInt8(ascii: ")"): (.close, start + 1)
    case UInt8(ascii: ","): (.comma, start + 1)
    case UInt8(ascii: "'"): (.text, endOfQuoted(from: start, by: byte))
    case UInt8(ascii: "\""), UInt8(ascii: "`"): (.quoted, endOfQuoted(from: start, by: byte))
    case UInt8(ascii: "["): (.quoted, endOfQuoted(from: start, by: UInt8(ascii: "]")))
    case UInt8(ascii: "-") where next == byte: (.space, endOfLine(from: start))
    case UInt8(ascii: "/") where next == UInt8(ascii: "*"): (.space, endOfComment(from: start))
    case _ where Self.isSpace(byte): (.space, end(from: start, while: Self.isSpace))
    case _ where Self.isWord(byte): (.word, end(from: start, while: Self.isWord))
    default: (.other, start + 1)
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte >= 0x80 || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
      || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }

  private func end(from start: Int, while belongs: (UInt8) -> Bool) -> Int {
    bytes[start...].firstIndex { !belongs($0) } ?? bytes.count
  }

  private func endOfLine(from start: Int) -> Int {
    bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
  }

  /// A doubled quote belongs to the quoted text, except for brackets.
  private func endOfQuoted(from start: Int, by close: UInt8) -> Int {
    var index = start + 1
    while index < bytes.count {
      if bytes[index] == close {
        let isDoubled =
          close != UInt8(ascii: "]") && index + 1 < bytes.count && bytes[index + 1] == close
        if !isDoubled { return index + 1 }
        index += 1
      }
      index += 1
    }
    return bytes.count
  }

  /// The index after the mark that ends a comment. `/*/` does not.
  private func endOfComment(from start: Int) -> Int {
    var index = start + 2
    while index + 1 < bytes.count {
      if bytes[index] == UInt8(ascii: "*"), bytes[index + 1] == UInt8(ascii: "/") {
        return index + 2
      }
      index += 1
    }
    return bytes.count
  }
}
