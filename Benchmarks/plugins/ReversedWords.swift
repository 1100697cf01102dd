/// "a b c" becomes "c b a". Works on bytes, so that the benchmark measures the database and not the text.
func reversedWords(_ text: String) -> String {
  var text = text
  return text.withUTF8 { reversedWords($0.span) }
}

/// The same of UTF-8 bytes.
func reversedWords(_ bytes: Span<UInt8>) -> String {
  String(unsafeUninitializedCapacity: bytes.count) { target in
    var (written, end) = (0, bytes.count)
    while end >= 0 {
      var space = end - 1
      while space >= 0, bytes[space] != 0x20 { space -= 1 }
      for index in (space + 1)..<end {
        target[written] = bytes[index]
        written += 1
      }
      if space >= 0 {
        target[written] = 0x20
        written += 1
      }
      end = space
    }
    return written
  }
}
