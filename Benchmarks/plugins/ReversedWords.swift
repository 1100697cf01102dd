/// "a b c" becomes "c b a". Works on bytes, so that the benchmark measures the database and not the text.
func reversedWords(_ text: String) -> String {
  var text = text
  return text.withUTF8 { bytes in
    String(unsafeUninitializedCapacity: bytes.count) { target in
      var (written, end) = (0, bytes.count)
      while end >= 0 {
        let space = bytes[..<end].lastIndex(of: 0x20) ?? -1
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
}
